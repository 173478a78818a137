//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	screen = "tty1" // the visible terminal after the start
	logs   = "tty2" // Alt and F2
)

// screenTaken is closed when the site's readings use the screen.
var screenTaken = make(chan struct{})

// openConsoles copies the output of this process and its children to the kernel's consoles,
// including the screen until screenTaken, and to a second terminal. A console that does not
// accept output, such as after Scroll Lock, loses lines, so that no writer blocks.
func openConsoles() {
	devNull, _ = os.Open(os.DevNull)
	r, w, err := os.Pipe()
	if err != nil {
		return
	}
	os.Stdout, os.Stderr = w, w
	active, _ := os.ReadFile("/sys/class/tty/console/active")
	var all []chan []byte
	for _, name := range append(strings.Fields(string(active)), logs) {
		tty, err := os.OpenFile("/dev/"+name, os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		lines := make(chan []byte, 64)
		all = append(all, lines)
		go func() {
			for line := range lines {
				select {
				case <-screenTaken:
					if name == screen {
						continue
					}
				default:
				}
				tty.Write(line)
			}
		}()
	}
	go func() {
		for {
			text := make([]byte, 4096)
			n, err := r.Read(text)
			if err != nil {
				return
			}
			for _, lines := range all {
				select {
				case lines <- text[:n]:
				default:
				}
			}
		}
	}()
}

// showSite shows the site's readings, and how to claim the site, on the screen.
func showSite() {
	tty, err := os.OpenFile("/dev/"+screen, os.O_WRONLY, 0)
	if err != nil {
		return // no screen
	}
	close(screenTaken)
	keep(process{argv: []string{program, "console"}, env: siteEnv, user: siteUser, out: tty})
}

// logf logs to the consoles.
func logf(format string, args ...any) {
	io.WriteString(os.Stderr, "image: "+fmt.Sprintf(format, args...)+"\n")
}
