// Package ops has the commands for a machine that need no running site. It scans for parts,
// prepares and diagnoses the machine, reads the configuration's pinout and the journal, and updates
// the program.
//
// It may import device/..., node/... and discovery/.... To diagnose a running site it may also
// import agents, transport/rpc and transport/owner with its client. The list of drivers and the
// connection to that site are passed in, so that it knows no carrier.
package ops
