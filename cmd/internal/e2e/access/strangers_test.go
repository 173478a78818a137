//go:build e2e

package access

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"
	"agentsite/transport/mcp/client"
	"agentsite/transport/p2p"
	"agentsite/transport/rpc"

	libp2p "github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

const (
	strangersEnv = "E2E_STRANGERS" // the addresses to call; the test program itself is the strangers
	strangers    = 200
)

// TestManyStrangers: two hundred strangers, each with its own key, connect, open streams, send
// garbage, stay, and reconnect after evictions. The owner's existing connection, and a new caller
// that retries for at most ten seconds, are served as if there were no strangers, and the site stays
// small.
func TestManyStrangers(t *testing.T) {
	r := startOwned(t, "  den: { driver: sim, model: climate }\n")
	before := newCaller(t, r.owner, r.id, r.peers)
	alone := before.p99(t, 300)

	log := startAttack(t, strangersEnv, strings.Join(r.peers, ",")+","+r.id.PeerID())
	harness.WaitFor(t, 2*time.Minute, "all strangers have come", func() bool { return strings.Contains(log.String(), "all have come") })

	const limit = 50 * time.Millisecond
	among := harness.CheckOrdinaryDeadline(t, limit, func() time.Duration { return before.p99(t, 1000) })
	begun := time.Now()
	later := newCaller(t, r.owner, r.id, r.peers)
	// It comes from the strangers' network, whose handshakes may take all slots at a moment: it
	// retries, as commands with --wait do.
	harness.WaitFor(t, 10*time.Second, "a new caller is served", func() bool {
		_, err := later.Ask(t.Context(), "read_points", []byte(`{"points":["den/temperature"]}`))
		return err == nil
	})
	reached := time.Since(begun)
	laters := harness.CheckOrdinaryDeadline(t, limit, func() time.Duration { return later.p99(t, 300) })
	t.Logf("p99 of the owner's calls: %v alone, %v among %d strangers; by another connection that came among them after %v: %v; resident %.1f MB",
		alone, among, strangers, reached.Round(time.Millisecond), laters, harness.Status(t, r.Cmd.Process.Pid, "VmRSS:")/1024)
	if mb := harness.Status(t, r.Cmd.Process.Pid, "VmRSS:") / 1024; mb > 64 {
		t.Errorf("the site is %.1f MB large", mb)
	}
}

// caller is somebody with a key, over libp2p.
type caller struct {
	*client.Client
	host *p2p.Host
}

func newCaller(t *testing.T, key identity.Key, id identity.ID, at []string) *caller {
	t.Helper()
	h, err := p2p.New(p2p.Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return &caller{client.New(h.Caller(id, func() []string { return at }, rpc.CBOR), "e2e", "1"), h}
}

// p99 calls n times, one after the other, and returns how long nearly all took at most.
func (c *caller) p99(t *testing.T, n int) time.Duration {
	t.Helper()
	var took []time.Duration
	for range n {
		begun := time.Now()
		if _, err := c.Ask(t.Context(), "read_points", []byte(`{"points":["den/temperature"]}`)); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[n*99/100]
}

// runStrangers is the strangers' process. It runs until its input ends.
func runStrangers(where string) {
	words := strings.Split(where, ",")
	var full []string
	for _, at := range words[:len(words)-1] {
		full = append(full, at+"/p2p/"+words[len(words)-1])
	}
	sites, err := p2p.ParsePeers(full)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var came, again atomic.Int64
	var all sync.WaitGroup
	for range strangers {
		h, err := p2p.New(p2p.Options{Key: identity.New()})
		if err != nil {
			panic(err)
		}
		all.Go(func() {
			for first := true; ctx.Err() == nil; first = false {
				if h.Network().Connectedness(sites[0].ID) != libp2p.Connected {
					one, stop := context.WithTimeout(ctx, 10*time.Second)
					if h.Connect(one, sites[0]) == nil && !first {
						again.Add(1)
					}
					stop()
				}
				annoy(ctx, h, sites[0].ID)
				if first && came.Add(1) == strangers {
					fmt.Println("all have come")
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		})
	}
	os.Stdin.Read(make([]byte, 1))
	cancel()
	all.Wait()
	fmt.Println("connections that they made again:", again.Load())
	os.Exit(0)
}

// annoy opens streams of every kind, says nonsense on some, and leaves all open.
func annoy(ctx context.Context, h *p2p.Host, who peer.ID) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	names := slices.Collect(func(yield func(protocol.ID) bool) {
		for name := range spoken {
			if !yield(protocol.ID(name)) {
				return
			}
		}
	})
	for i, name := range names {
		s, err := h.NewStream(ctx, who, name)
		if err != nil {
			continue
		}
		s.SetDeadline(time.Now().Add(5 * time.Second))
		nonsense := make([]byte, 1<<(4+i%10))
		rand.Read(nonsense)
		s.Write(nonsense)
	}
}
