//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	screen = "tty1" // what is on it when nobody has touched the keyboard
	logs   = "tty2" // behind Alt and F2
)

// screenTaken is closed when the screen belongs to the site.
var screenTaken = make(chan struct{})

// openConsoles has what this process and its children say come out on what the kernel talks
// on: the screen as long as nobody else writes there, and a second one behind it. One that
// does not move on, such as after Scroll Lock, loses lines: nobody may be held up who says
// something.
func openConsoles() {
	nowhere, _ = os.Open(os.DevNull)
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

// showSite has the site's readings, and how to claim it, on the screen.
func showSite() {
	tty, err := os.OpenFile("/dev/"+screen, os.O_WRONLY, 0)
	if err != nil {
		return // no screen
	}
	close(screenTaken)
	keep(process{argv: []string{program, "console"}, env: siteEnv, user: siteUser, out: tty})
}

// say tells whoever looks at a console.
func say(format string, args ...any) {
	io.WriteString(os.Stderr, "image: "+fmt.Sprintf(format, args...)+"\n")
}
