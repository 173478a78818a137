// Package ops is what the command line does on a machine without the site that may run
// there: it scans for parts, prepares the machine, diagnoses it, reads the configuration's
// pinout and the journal, and updates the program.
//
// It may import device/..., node/... and discovery/..., and no carrier or protocol. The list
// of drivers is passed in.
package ops
