// Package site is the wiring: the one package that imports all others, plain and sequential. Run
// runs a whole site; the other functions are for the command line.
package site
