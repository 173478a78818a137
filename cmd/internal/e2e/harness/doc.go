// Package harness starts real programs for the whole-system tests: sites and their guards,
// emulated boards, persons with keys, laptops and relays in network namespaces. Nothing but
// the tests in the folders beside it may import it.
package harness
