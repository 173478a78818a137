// Package proc puts a guard into a process of its own and the site in touch with it.
//
// A process that serves a network and collects its garbage cannot keep a deadline of
// milliseconds, and one that is killed leaves a relay where it is. So Serve runs in a
// second process, which has the outputs and nothing else, and the site's Keeper
// starts it, asks it and replaces it. Between them is one connection with the few
// messages of message.go. Its end, or silence on it, means safe.
//
// Devices, policies and times are as in device/guard; nothing is decided twice. How a
// process is started, and which devices it has, is the wiring's concern.
package proc
