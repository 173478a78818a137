// Package devices opens, samples, retries, reloads and closes a site's devices, and runs the
// process that moves its outputs: the guard's. Devices with outputs and emergency stops are
// open in that process only; the site's own process has all others.
//
// It imports device/..., node and node/config.
// The list of drivers, the board and the files of the data folder are passed in.
package devices
