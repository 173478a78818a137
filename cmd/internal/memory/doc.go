// Package memory bounds what Go's garbage collector lets this process take of a board's memory.
//
// It imports nothing of ours.
package memory
