// Package rooms holds the house to its plan: a test that fails when an import
// breaks the table of what each room may know.
package rooms
