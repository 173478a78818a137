//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// startNetworks brings loopback up, and starts time synchronization, Wi-Fi and a DHCP client
// for each network interface.
func startNetworks() {
	if err := up("lo"); err != nil {
		logf("loopback is not up: %v", err)
	}
	unix.Sethostname([]byte("agentsite"))
	go keep(process{argv: []string{"/init", "clock"}})
	go keep(process{argv: []string{"/init", "wifi"}})
	go func() { // USB interfaces appear at any time
		known := map[string]bool{"lo": true}
		for {
			all, _ := filepath.Glob("/sys/class/net/*")
			for _, path := range all {
				name := filepath.Base(path)
				if known[name] {
					continue
				}
				known[name] = true
				if strings.HasPrefix(name, "eth") || strings.HasPrefix(name, "usb") || strings.HasPrefix(name, "wlan") {
					go keep(process{argv: []string{"/bin/dhcp", "-interface", name}})
				}
			}
			time.Sleep(2 * time.Second)
		}
	}()
}

// up sets an interface up, as "ip link set up".
func up(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// keep restarts a program until it exits successfully.
func keep(p process) {
	for {
		r, err := start(p)
		if err != nil {
			logf("%v", err)
		} else if status := <-r.ended; status.Exited() && status.ExitStatus() == 0 {
			return
		}
		time.Sleep(5 * time.Second)
	}
}
