package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// oneReader fails where two goroutines read at once.
type oneReader struct {
	net.Conn
	t       *testing.T
	reading atomic.Bool
}

func (r *oneReader) Read(b []byte) (int, error) {
	if r.reading.Swap(true) {
		r.t.Error("two goroutines read at once")
	}
	defer r.reading.Store(false)
	return r.Conn.Read(b)
}

// TestInline: whatever requests take, one goroutine reads, each is read at most
// twice inlineLimit after it was sent, each is answered once, and all have ended when Serve returns.
func TestInline(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) { useInline(t, rand.New(rand.NewPCG(7, seed))) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// useInline makes the requests of one schedule. It runs in a bubble of synctest: its pauses are virtual.
func useInline(t *testing.T, r *rand.Rand) {
	var started, ended atomic.Int64
	s := &Stream{Dispatcher: NewDispatcher(map[string]Method{"take": func(ctx context.Context, c *Call) (any, error) {
		started.Add(1)
		defer ended.Add(1)
		var d int64
		if err := c.Params.Decode(&d); err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(d))
		return d, nil
	}})}
	some := func() time.Duration { // often about when inlineLimit is looked at
		return max(inlineLimit*time.Duration(r.IntN(6))/2+time.Duration(r.IntN(3)-1), 0)
	}
	near, far := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- s.Serve(ctx, &oneReader{Conn: near, t: t})
		if started.Load() != ended.Load() {
			t.Errorf("Serve returned after %d of %d requests", ended.Load(), started.Load())
		}
	}()
	answers := make(map[int]int)
	var hearing sync.WaitGroup
	hearing.Go(func() {
		for lines := bufio.NewScanner(far); lines.Scan(); {
			var m struct{ ID, Result *int }
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.ID == nil || m.Result == nil {
				t.Errorf("%s: %v", lines.Bytes(), err)
				continue
			}
			answers[*m.ID]++
		}
	})
	said := 0
	for range r.IntN(20) {
		time.Sleep(some())
		text := ""
		for range 1 + r.IntN(3)/2 { // two in one piece, now and then
			text += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"take","params":%d}`+"\n", said, some())
			said++
		}
		begun := time.Now()
		if _, err := io.WriteString(far, text); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begun); waited > 2*inlineLimit {
			t.Errorf("request %d was read after %v", said, waited)
		}
	}
	switch r.IntN(3) {
	case 0:
		cancel()
	case 1:
		time.Sleep(time.Second)
		synctest.Wait()
		for id := range said {
			if answers[id] != 1 {
				t.Errorf("request %d has %d answers", id, answers[id])
			}
		}
	}
	if r.IntN(2) == 0 {
		time.Sleep(some())
	}
	cancelled := ctx.Err() != nil
	if !cancelled {
		far.Close()
	}
	if err := <-done; err != nil && err != io.ErrClosedPipe { // the peer left before an answer
		t.Error(err)
	}
	far.Close()
	hearing.Wait()
	if cancelled {
		for id := range said {
			if answers[id] > 1 {
				t.Errorf("request %d has %d answers", id, answers[id])
			}
		}
	}
}
