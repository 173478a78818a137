// Package proc runs a guard in its own process, and connects the site to it.
//
// A process that serves a network and collects garbage cannot keep deadlines of
// milliseconds, and after a crash it leaves a relay on. So Serve runs in a second process,
// which has only the outputs. The site's Keeper starts, calls and replaces it. One connection
// carries the few messages of message.go. If it ends or is silent, the outputs go to safe.
//
// All decisions are device/guard's. The caller decides how a process is started, and which
// devices it has.
package proc
