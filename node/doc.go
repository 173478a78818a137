// Package node is the single entry point to a site. It makes a principal of a key or a
// token that a carrier proved, authorises each operation, has it journalled and executed, and notifies the
// watchers. It also keeps every point's latest reading: one goroutine per device samples or
// watches, and nothing flows back.
//
// It knows agents, devices and principals. It knows no protocol, no chip and no
// rule of an output's own: those are the guard's.
package node
