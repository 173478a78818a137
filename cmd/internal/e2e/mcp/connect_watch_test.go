//go:build e2e

package mcp

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/transport/rpc"
)

// connectStream starts agentsite connect, and returns a client of its standard input and output.
func connectStream(t *testing.T, connect *exec.Cmd) *rpc.StreamClient {
	t.Helper()
	in, err := connect.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := connect.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	connect.Stderr = os.Stderr
	if err := connect.Start(); err != nil {
		t.Fatal(err)
	}
	stream := rpc.NewStreamClient(struct {
		io.Reader
		io.WriteCloser
	}{out, in}, rpc.JSON)
	var running sync.WaitGroup
	running.Go(func() { stream.Run() })
	t.Cleanup(func() {
		in.Close()
		running.Wait()
		connect.Wait()
	})
	return stream
}

// values are the parameters of notifications/agentsite/values (docs/wire.md).
type values struct {
	Points []struct {
		Point string `json:"point"`
	} `json:"points"`
	Readings []struct {
		Index   int    `json:"i"`
		Value   any    `json:"value"`
		Quality string `json:"quality"`
		Output  struct {
			Left float64 `json:"seconds_left"`
		} `json:"output"`
	} `json:"readings"`
	Approvals []struct {
		Handle string `json:"handle"`
	} `json:"approvals"`
	Sites []struct {
		Site    string `json:"site"`
		Stopped bool   `json:"emergency_stop"`
	} `json:"sites"`
	Missed []struct {
		Site string `json:"site"`
	} `json:"not_answered"`
}

// board is the state of a watcher.
type board struct {
	mu      sync.Mutex
	points  []string
	shown   map[string]string // by address: value, quality unless good, and whether there is a lease
	waiting []string          // the handles of calls that wait for an approval
	stopped []string
	missed  []string
}

func (b *board) heard(method string, p rpc.Raw) {
	var v values
	if method != "notifications/agentsite/values" || p.Decode(&v) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if v.Points != nil {
		b.points, b.shown = nil, make(map[string]string)
		for _, p := range v.Points {
			b.points = append(b.points, p.Point)
		}
	}
	for _, r := range v.Readings {
		says := fmt.Sprintf("%v%s", r.Value, r.Quality)
		if r.Output.Left > 0 {
			says += " held"
		}
		b.shown[b.points[r.Index]] = says
	}
	if v.Approvals != nil {
		b.waiting = nil
		for _, a := range v.Approvals {
			b.waiting = append(b.waiting, a.Handle)
		}
	}
	if v.Sites != nil {
		b.stopped = nil
		for _, s := range v.Sites {
			if s.Stopped {
				b.stopped = append(b.stopped, s.Site)
			}
		}
	}
	if v.Missed != nil {
		b.missed = nil
		for _, m := range v.Missed {
			b.missed = append(b.missed, m.Site)
		}
	}
}

// TestConnectWatch: one subscription through connect brings the values of ten sites, their leases, calls
// that wait for an owner, and which are stopped, and says so when one of them goes and comes back.
func TestConnectWatch(t *testing.T) {
	t.Parallel() // it waits, mostly
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprint("site-", i))
	}
	h := harness.StartConnectedSites(t, append(names, "stranger")...)
	c, b := connectStream(t, h.Command(t)), new(board)
	meta := map[string]any{"io.modelcontextprotocol/protocolVersion": rpc.Revision, "io.modelcontextprotocol/clientCapabilities": struct{}{}}
	call := func(ctx context.Context, id uint64, method string, params map[string]any, note func(string, rpc.Raw)) (rpc.Raw, error) {
		params["_meta"] = meta
		if note != nil {
			params["_meta"] = map[string]any{"agentsite/values": 0.1}
			maps.Copy(params["_meta"].(map[string]any), meta)
		}
		return c.Call(ctx, rpc.Request{ID: rpc.NumberID(id), Method: method, Params: params, Version: rpc.Revision}, note)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := call(ctx, 1, "subscriptions/listen", map[string]any{"notifications": struct{}{}}, b.heard)
		ended <- err
	}()
	await := func(what string, ok func() bool) {
		t.Helper()
		defer func() {
			if t.Failed() {
				t.Log(b.shown, b.waiting, b.stopped, b.missed)
			}
		}()
		harness.WaitFor(t, 30*time.Second, what, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return ok()
		})
	}
	await("all are told of", func() bool {
		for _, name := range names {
			if says, told := b.shown[name+"/"+name+"/temperature"]; !told || strings.Contains(says, "stale") || b.shown[name+"/box/relay"] != "false" {
				return false
			}
		}
		return len(b.missed) == 0
	})
	id := uint64(1)
	use := func(tool string, args map[string]any) {
		t.Helper()
		id++
		if _, err := call(t.Context(), id, "tools/call", map[string]any{"name": tool, "arguments": args}, nil); err != nil {
			t.Fatal(err)
		}
	}
	use("switch_output", map[string]any{"output": "site-3/box/relay", "on": true, "for_seconds": 60})
	await("the relay is on, and held", func() bool { return b.shown["site-3/box/relay"] == "true held" })
	h.Sites["site-3"].Kill(t)
	await("the site is missed", func() bool {
		return slices.Equal(b.missed, []string{"site-3"}) && b.shown["site-3/box/relay"] == "" && b.shown["site-4/box/relay"] == "false"
	})
	h.Restart(t, "site-3")
	await("the site is there again, and its relay is safe", func() bool { return len(b.missed) == 0 && b.shown["site-3/box/relay"] == "false" })

	config, err := os.ReadFile(filepath.Join(h.Sites["site-5"].Folder, "agentsite.yaml"))
	if err == nil {
		err = os.WriteFile(filepath.Join(h.Sites["site-5"].Folder, "agentsite.yaml"), append(config, "\n  gate: { driver: sim, model: relay, min_off: 0, confirm: owner }\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.MustCLI(t, "reload", "--site", "site-5")
	await("the new output is told of", func() bool { return b.shown["site-5/gate/relay"] == "false" })
	use("switch_output", map[string]any{"output": "site-5/gate/relay", "on": true})
	await("its call waits for an owner", func() bool { return len(b.waiting) == 1 })
	h.MustCLI(t, "approve", "--deny", b.waiting[0], "--site", "site-5")
	await("the call waits no more", func() bool { return len(b.waiting) == 0 })
	use("emergency_stop", map[string]any{"site": "site-6"})
	await("one site is stopped", func() bool { return slices.Equal(b.stopped, []string{"site-6"}) })
	for point := range b.shown {
		if !strings.HasPrefix(point, "site-") {
			t.Errorf("told of %q", point)
		}
	}
	cancel()
	<-ended
}
