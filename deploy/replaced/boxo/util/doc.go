// Package util is empty: tests of modules that we use import it, and `go mod tidy` wants it
// to be there.
package util
