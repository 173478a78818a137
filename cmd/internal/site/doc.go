// Package site is the wiring: the one room that imports everything, plain and
// sequential. Run is a whole site; the rest is what the command line needs of it.
package site
