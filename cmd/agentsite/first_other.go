//go:build !linux

package main

func runAsFirst() (code int, first bool) { return 0, false }
