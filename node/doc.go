// Package node is the one door. It makes a principal of a carrier's evidence,
// decides whether it may, has it done and tells the watchers. Beside the door it
// keeps every point's latest reading: one goroutine per device samples or
// watches, and nothing flows back.
//
// It knows agents, devices and principals. It knows no protocol, no chip and no
// rule of an output's own: those are the guard's.
package node
