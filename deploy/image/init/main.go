//go:build linux

// Command init is the image's system: the first process, which keeps the site running as
// systemd does elsewhere, and under other names what it starts. Nothing in it listens.
//
// It knows where a card's partitions are, when a site is well, and how one version of the
// image takes the place of another. What a site does stands elsewhere, and it is only ever
// spoken to by sd_notify(3) and its command line.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Set when an image is built, as agentsite's own: which release this is, and either of whose
// signatures makes a newer one.
var version, sequence, releaseKeys string

func main() {
	switch {
	case os.Getpid() == 1:
		boot()
	case filepath.Base(os.Args[0]) == "modprobe": // as the kernel calls it
		fail(modprobe(os.Args[len(os.Args)-1]))
	case slices.Equal(os.Args[1:], []string{"clock"}):
		fail(keepClock())
	case slices.Equal(os.Args[1:], []string{"wifi"}):
		fail(joinWiFi())
	default:
		fail(fmt.Errorf("this is the image's first process, and nothing to run by hand"))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}
