//go:build linux

// Command init is the init process of the SD-card image. It supervises the site, as systemd
// does elsewhere; under other names it runs the helpers that it starts. It listens on no port.
//
// It mounts the card's partitions, decides when a site is healthy, and installs and rolls
// back versions of the image. It talks to the site only by sd_notify(3) and the command line.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Set when an image is built, as in agentsite: the version and sequence of the release, and two
// keys. One of them must sign an update.
var version, sequence, releaseKeys string

func main() {
	switch {
	case os.Getpid() == 1:
		boot()
	case filepath.Base(os.Args[0]) == "modprobe": // called by the kernel
		fail(modprobe(os.Args[len(os.Args)-1]))
	case slices.Equal(os.Args[1:], []string{"clock"}):
		fail(syncClock())
	case slices.Equal(os.Args[1:], []string{"wifi"}):
		fail(joinWiFi())
	default:
		fail(fmt.Errorf("this is the image's init process; do not run it by hand"))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}
