//go:build !unix

package main

import "os"

// stopSignals are none here: agentsite stop does the same.
func stopSignals() <-chan os.Signal { return nil }
