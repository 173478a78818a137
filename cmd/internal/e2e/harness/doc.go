// Package harness starts real programs for the whole-system tests: sites and their guards,
// emulated boards, persons with keys, laptops and relays in network namespaces. Nothing but
// the tests in the folders beside it may import it.
//
// The tests build with the tag release, too, but the programs that they start are built without it: a
// release refuses outputs_file, by which the tests see where an output is. What differs by that tag is
// tested in device/sim.
package harness
