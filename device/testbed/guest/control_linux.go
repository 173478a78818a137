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

// serve is the control: what the host may do to the board. Chips are told and
// broken by name; the rest of the machine is files and programs.
//
//	GET  /chip?name=tmp102                        what an observer sees of a chip
//	POST /tell?name=tmp102&what=temperature&value=21.5
//	POST /state?name=tmp102&to=deaf               ok, deaf or absent
//	POST /stuck?on=true                           the whole bus
//	POST /plug?in=false                           the bridge that carries it
//	GET, PUT /file?path=/sys/…                    any file
//	PUT  /file?path=/sys/…&pause=10ms             its lines, one write for each
//	GET  /list?path=/sys/…                        a folder
//	GET  /kernel                                  the kernel's log
//	POST /run ["/agentsite","scan"]               a program, to its end
//	GET  /node                                    the site's process
//	POST /start, /signal?number=9                 wait for the end after a signal
//	POST /hit?pid=7&number=9&path=/sys/…&says=0   how long, in ns, until a file says so
func serve(port string, b *bench) error {
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
	handle("GET /chip", func(r *http.Request) (any, error) { return b.Look(r.FormValue("name")) })
	handle("POST /tell", func(r *http.Request) (any, error) {
		value, err := strconv.ParseFloat(r.FormValue("value"), 64)
		if err != nil {
			return nil, err
		}
		return nil, b.Tell(r.FormValue("name"), r.FormValue("what"), value)
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
			return nil, os.WriteFile(r.FormValue("path"), text, 0o755)
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
	handle("GET /kernel", func(*http.Request) (any, error) { return KernelLog() })
	handle("POST /run", func(r *http.Request) (any, error) {
		var args []string
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			return nil, err
		}
		if len(args) == 0 {
			return nil, errors.New("name a program")
		}
		return b.Run(r.Context(), args)
	})
	handle("GET /node", func(*http.Request) (any, error) { return b.Node() })
	handle("POST /start", func(*http.Request) (any, error) { return nil, b.Start() })
	handle("POST /signal", func(r *http.Request) (any, error) {
		n, err := strconv.Atoi(r.FormValue("number"))
		if err != nil {
			return nil, err
		}
		return nil, b.Signal(unix.Signal(n))
	})
	handle("POST /hit", func(r *http.Request) (any, error) {
		pid, err := strconv.Atoi(r.FormValue("pid"))
		if err != nil {
			return nil, err
		}
		number, err := strconv.Atoi(r.FormValue("number"))
		if err != nil {
			return nil, err
		}
		took, err := Hit(pid, unix.Signal(number), r.FormValue("path"), r.FormValue("says"))
		return took.Nanoseconds(), err
	})
	return http.ListenAndServe(net.JoinHostPort(address, port), mux)
}
