// Package site is the wiring: the one package that imports all others, plain and
// sequential. Run runs a whole site; the rest is what the command line needs of it.
package site
