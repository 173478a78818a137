//go:build e2e && linux

package internet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	libp2p "github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	ma "github.com/multiformats/go-multiaddr"
)

// localRelay is agentsite relay on this machine's loopback.
type localRelay struct {
	at  peer.AddrInfo
	cmd *exec.Cmd
	log bytes.Buffer
}

func startLocalRelay(t testing.TB) *localRelay {
	t.Helper()
	r := &localRelay{cmd: exec.Command(harness.Need(t, "the program", harness.Program), "relay", "--json", "--data", harness.TempDir(t), "--listen", "127.0.0.1:0")}
	r.cmd.Stderr = &r.log
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.cmd.Process.Kill(); r.cmd.Wait() })
	var said struct{ Addresses []string }
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		t.Fatal(err)
	}
	all, err := p2p.ParsePeers(said.Addresses)
	if err != nil {
		t.Fatal(err)
	}
	r.at = all[0]
	return r
}

// resident is how many MB of memory the relay takes.
func (r *localRelay) resident(t testing.TB) float64 {
	return harness.Status(t, r.cmd.Process.Pid, "VmRSS:") / 1024
}

// goroutines ends the relay and returns how many it had.
func (r *localRelay) goroutines() int {
	r.cmd.Process.Signal(syscall.SIGQUIT)
	r.cmd.Wait()
	return strings.Count(r.log.String(), "\ngoroutine ")
}

// callers connects so many hosts to the relay, fifty from each address, and one of twenty by
// QUIC, for which all have one. Each does something then.
func (r *localRelay) callers(t testing.TB, n int, does func(*p2p.Host) error) []*p2p.Host {
	t.Helper()
	all := make([]*p2p.Host, n)
	var coming sync.WaitGroup
	turns := make(chan bool, 8)
	for i := range all {
		listen, kind := fmt.Sprintf("/ip4/127.0.1.%d/tcp/0", 1+i/50), ma.P_TCP
		if i%20 == 0 {
			listen, kind = fmt.Sprintf("/ip4/127.0.1.%d/udp/0/quic-v1", 1+i/50), ma.P_QUIC_V1
		}
		at := peer.AddrInfo{ID: r.at.ID}
		for _, a := range r.at.Addrs {
			if _, err := a.ValueForProtocol(kind); err == nil {
				at.Addrs = append(at.Addrs, a)
			}
		}
		turns <- true
		coming.Go(func() {
			defer func() { <-turns }()
			h, err := p2p.New(p2p.Options{Key: identity.New(), Listen: []string{listen}})
			if err != nil {
				t.Error(err)
				return
			}
			all[i] = h
			err = h.Connect(t.Context(), at)
			for try := 1; err != nil && try < 4; try++ { // on a busy machine a handshake takes too long; this skips the back-off
				err = h.Connect(libp2p.WithForceDirectDial(t.Context(), "again"), at)
			}
			if err := errors.Join(err, does(h)); err != nil {
				t.Error(err)
			}
		})
	}
	coming.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

func nothing(*p2p.Host) error { return nil }

func leave(all []*p2p.Host) {
	var leaving sync.WaitGroup
	for _, h := range all {
		leaving.Go(func() { h.Close() })
	}
	leaving.Wait()
}

// TestRelayMemory: a minute after strangers have disconnected, a relay takes at most a fifth
// more memory than before them. Go keeps what goroutines that ended had, and pages that are
// not all empty.
func TestRelayMemory(t *testing.T) {
	r := startLocalRelay(t)
	leave(r.callers(t, 20, nothing)) // what the program touches of itself is no memory of theirs
	before := r.resident(t)
	strangers := r.callers(t, harness.Workload(200, 2000), nothing)
	most := r.resident(t)
	leave(strangers)
	gone := time.Now()
	defer func() {
		t.Logf("%d strangers: %.1f MB before, %.1f with them, %.1f after %v", len(strangers), before, most, r.resident(t), time.Since(gone).Round(time.Second))
	}()
	harness.WaitFor(t, time.Minute, "the memory is given back", func() bool { return r.resident(t) <= 1.2*before })
}

// BenchmarkRelayPlaces measures the memory of a relay with a thousand reservations.
func BenchmarkRelayPlaces(b *testing.B) {
	r := startLocalRelay(b)
	before := r.resident(b)
	sites := r.callers(b, harness.Workload(100, 1000), func(h *p2p.Host) error {
		_, err := circuit.Reserve(b.Context(), h, r.at)
		return err
	})
	defer leave(sites)
	with := r.resident(b)
	b.ReportMetric(float64(len(sites)), "places")
	b.ReportMetric(before, "before-MB")
	b.ReportMetric(with, "with-MB")
	b.ReportMetric((with-before)*1024/float64(len(sites)), "kB/place")
	b.ReportMetric(float64(r.goroutines()), "goroutines")
	b.ReportMetric(0, "ns/op")
}
