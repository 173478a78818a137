package main

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"agentsite/device/testbed"

	"golang.org/x/sys/unix"
)

// serve serves the control interface, by which a test changes the board from the host:
// chips by their names, the rest of the machine by files and programs.
//
//	GET  /chip?name=tmp102                        the state of a chip
//	POST /input?name=tmp102&quantity=temperature&value=21.5
//	POST /state?name=tmp102&to=unresponsive       ok, unresponsive, absent or hung
//	POST /stuck?on=true                           holds a line of the bus low
//	POST /plug?in=false                           the USB bridge
//	GET, PUT /file?path=/sys/…                    any file
//	PUT  /file?path=/sys/…&pause=10ms             one write for each line
//	PUT  /file?path=/it.key&secret=true           a file that others cannot read
//	GET  /list?path=/sys/…                        a folder
//	POST /advertise                               Bluetooth advertisers near the board: address, random or public, data
//	POST /radio-off                               takes the Bluetooth controller away until the next /advertise
//	GET  /kernel                                  the kernel's log
//	POST /run ["/agentsite","scan"]               runs a program until it exits
//	GET  /site                                    the site's process
//	POST /start, /signal?number=9                 waits for the exit after a signal
//	POST /signal-until?pid=7&number=9&path=/sys/…&content=0   the time in ns
func serve(port string, b *emulator) error {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(r *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			out, err := do(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			json.NewEncoder(w).Encode(out)
		})
	}
	handle("GET /chip", func(r *http.Request) (any, error) { return b.Inspect(r.FormValue("name")) })
	handle("POST /input", func(r *http.Request) (any, error) {
		value, err := strconv.ParseFloat(r.FormValue("value"), 64)
		if err != nil {
			return nil, err
		}
		return nil, b.SetInput(r.FormValue("name"), r.FormValue("quantity"), value)
	})
	handle("POST /state", func(r *http.Request) (any, error) {
		return nil, b.SetState(r.FormValue("name"), testbed.State(r.FormValue("to")))
	})
	handle("POST /stuck", func(r *http.Request) (any, error) {
		on, err := strconv.ParseBool(r.FormValue("on"))
		if err == nil {
			b.SetStuck(on)
		}
		return nil, err
	})
	handle("POST /plug", func(r *http.Request) (any, error) {
		in, err := strconv.ParseBool(r.FormValue("in"))
		if err == nil {
			err = b.Plug(in)
		}
		return nil, err
	})
	handle("GET /file", func(r *http.Request) (any, error) {
		text, err := os.ReadFile(r.FormValue("path"))
		return string(text), err
	})
	handle("PUT /file", func(r *http.Request) (any, error) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if r.FormValue("pause") == "" {
			mode := os.FileMode(0o755)
			if r.FormValue("secret") != "" {
				mode = 0o600
			}
			return nil, os.WriteFile(r.FormValue("path"), text, mode)
		}
		pause, err := time.ParseDuration(r.FormValue("pause"))
		for line := range strings.Lines(string(text)) {
			if err != nil {
				break
			}
			err = os.WriteFile(r.FormValue("path"), []byte(line), 0)
			time.Sleep(pause)
		}
		return nil, err
	})
	handle("GET /list", func(r *http.Request) (any, error) {
		entries, err := os.ReadDir(r.FormValue("path"))
		names := []string{}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names, err
	})
	handle("POST /advertise", func(r *http.Request) (any, error) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		return advertise(string(text))
	})
	handle("POST /radio-off", func(*http.Request) (any, error) { return nil, unplugRadio() })
	handle("GET /kernel", func(*http.Request) (any, error) { return KernelLog() })
	handle("POST /run", func(r *http.Request) (any, error) {
		var args []string
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			return nil, err
		}
		if len(args) == 0 {
			return nil, errors.New("no program named")
		}
		return b.Run(r.Context(), args)
	})
	handle("GET /site", func(*http.Request) (any, error) { return b.SiteProcess() })
	handle("POST /start", func(*http.Request) (any, error) { return nil, b.Start() })
	handle("POST /signal", func(r *http.Request) (any, error) {
		n, err := strconv.Atoi(r.FormValue("number"))
		if err != nil {
			return nil, err
		}
		return nil, b.Signal(unix.Signal(n))
	})
	handle("POST /signal-until", func(r *http.Request) (any, error) {
		pid, err := strconv.Atoi(r.FormValue("pid"))
		if err != nil {
			return nil, err
		}
		number, err := strconv.Atoi(r.FormValue("number"))
		if err != nil {
			return nil, err
		}
		took, err := SignalUntil(pid, unix.Signal(number), r.FormValue("path"), r.FormValue("content"))
		return took.Nanoseconds(), err
	})
	return http.ListenAndServe(net.JoinHostPort(address, port), mux)
}
