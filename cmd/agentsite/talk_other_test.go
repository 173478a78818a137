//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

// talk runs a command at a terminal, which is known for Linux only.
func talk(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("talk is for Linux") }

func checkWidths(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("widths is for Linux") }

func transcript(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("transcript is for Linux") }

func interrupted(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("interrupted is for Linux")
}
