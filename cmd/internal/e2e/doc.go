// Package e2e holds what tests of the whole system share. Nothing but tests may
// import it.
package e2e
