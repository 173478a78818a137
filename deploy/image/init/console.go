//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// openConsoles has what this process and its children say come out on the screen and what
// else the kernel talks on. A screen that does not move on, such as after Scroll Lock, loses
// lines: nobody may be held up who says something.
func openConsoles() {
	nowhere, _ = os.Open(os.DevNull)
	r, w, err := os.Pipe()
	if err != nil {
		return
	}
	os.Stdout, os.Stderr = w, w
	names, _ := os.ReadFile("/sys/class/tty/console/active")
	var all []chan []byte
	for _, name := range strings.Fields(string(names)) {
		tty, err := os.OpenFile("/dev/"+name, os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		lines := make(chan []byte, 64)
		go func() {
			for line := range lines {
				tty.Write(line)
			}
		}()
		all = append(all, lines)
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

// say tells whoever looks at a console.
func say(format string, args ...any) {
	io.WriteString(os.Stderr, "image: "+fmt.Sprintf(format, args...)+"\n")
}
