// Package zaptest is empty: tests of modules that the program links name it, so that go mod tidy looks for it.
package zaptest
