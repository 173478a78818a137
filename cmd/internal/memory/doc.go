// Package memory sets the memory limit of Go's runtime, so that a site fits on a small board.
//
// It imports nothing of ours.
package memory
