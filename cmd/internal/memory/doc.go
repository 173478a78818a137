// Package memory bounds what this process takes of a board's memory: the limits of Go's
// garbage collector, and the pages of the program that only its start needed.
//
// It imports nothing of ours.
package memory
