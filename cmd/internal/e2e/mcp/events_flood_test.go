//go:build e2e && linux

package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/events"
	"agentsite/device"
)

// identities collects the IDs of what happened, and finds one thing with two IDs, and one ID of two things.
type identities struct {
	mu    sync.Mutex
	ids   map[string]string // by what happened
	what  map[string]string // by ID
	wrong []string
}

func (s *identities) add(o events.Occurrence) {
	what := fmt.Sprintf("%s %s %s %s", o.Name, o.Data.Output, o.Data.Value, o.Timestamp)
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := s.ids[what]; ok && id != o.EventID {
		s.wrong = append(s.wrong, what+" is "+id+" and "+o.EventID)
	}
	if other, ok := s.what[o.EventID]; ok && other != what {
		s.wrong = append(s.wrong, o.EventID+" is "+what+" and "+other)
	}
	s.ids[what], s.what[o.EventID] = o.EventID, what
}

// told collects the events that one way tells.
type told struct {
	all       *identities
	seen      map[string]bool // IDs
	truncated bool
	last      bool // the last move was told
}

func (s *told) add(o events.Occurrence) {
	s.all.add(o)
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.seen[o.EventID] = true
	s.last = s.last || o.Data.Output == "last/level"
}

func (s *told) cut(truncated bool) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.truncated = s.truncated || truncated
}

func (s *told) over() bool { s.all.mu.Lock(); defer s.all.mu.Unlock(); return s.last }

// TestTenThousandEvents: 63 outputs are moved 10,000 times as fast as the site takes it, which is more than the history
// keeps. A stream and a poller are told of moves under one ID each, and that some may be missing; a receiver that hangs
// holds up nobody, another caller's calls are answered in the meantime, and the site's memory is bounded. It takes
// half a minute, in which the site stores each move.
func TestTenThousandEvents(t *testing.T) {
	const outputs, moves, memory = 63, 10_000, 32 // MB more; a request is of 64 outputs at most
	hangs, prompt := events.NewReceiver(t), events.NewReceiver(t)
	var y strings.Builder
	fmt.Fprintf(&y, "site: { name: many }\nhttp: { push_hosts: [ %q, %q ] }\ndevices:\n", hangs.Host, prompt.Host)
	y.WriteString("  last: { driver: sim, model: dimmer, min_off: 0s }\n")
	for i := range outputs {
		fmt.Fprintf(&y, "  lamp-%02d: { driver: sim, model: dimmer, min_off: 0s, every: 10s }\n", i)
	}
	site := harness.Start(t, y.String(), hangs.Program()...)
	watcher, _ := site.AddToken(t, "watcher", "read *")
	_, other := site.AddToken(t, "other", "read *")
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer func() { stop(); running.Wait() }()

	all := map[string]any{"name": "output.moved", "arguments": map[string]any{}, "cursor": nil}
	subscribe := func(to *events.Receiver, args map[string]any) {
		t.Helper()
		p := map[string]any{"name": "output.moved", "arguments": args, "cursor": nil,
			"delivery": map[string]any{"mode": "webhook", "url": to.URL, "secret": to.Secret}}
		if r, err := events.Ask(ctx, site, watcher, "events/subscribe", p); err != nil || r.ID == "" {
			t.Fatalf("%v %+v\n%s", err, r, site.Log)
		}
	}
	subscribe(hangs, map[string]any{})
	hangs.Hang()
	subscribe(prompt, map[string]any{"output": "last/level"})

	ids := &identities{ids: map[string]string{}, what: map[string]string{}}
	streamed, polled := &told{all: ids, seen: map[string]bool{}}, &told{all: ids, seen: map[string]bool{}}
	active := make(chan struct{})
	running.Go(func() {
		first := sync.OnceFunc(func() { close(active) })
		err := events.Stream(ctx, site, watcher, all, func(n events.Notification) {
			switch n.Method {
			case "notifications/events/active":
				streamed.cut(n.Params.Truncated)
				first()
			case "notifications/events/event":
				streamed.add(n.Params.Occurrence)
			case "notifications/events/heartbeat":
			default:
				t.Errorf("%+v", n)
			}
		})
		if ctx.Err() == nil {
			t.Errorf("the stream ended: %v", err)
		}
	})
	select {
	case <-active:
	case <-time.After(20 * time.Second):
		t.Fatalf("no stream\n%s", site.Log)
	}
	begin, err := events.Ask(ctx, site, watcher, "events/poll", all)
	if err != nil || len(begin.Events) > 0 || begin.Cursor == nil {
		t.Fatalf("%v %+v", err, begin)
	}
	running.Go(func() {
		for cursor := begin.Cursor; ; {
			p := map[string]any{"name": "output.moved", "arguments": map[string]any{}, "cursor": cursor}
			r, err := events.Ask(ctx, site, watcher, "events/poll", p)
			if ctx.Err() != nil {
				return
			}
			if err != nil || r.Cursor == nil {
				t.Errorf("%v %+v", err, r)
				return
			}
			for _, o := range r.Events {
				polled.add(o)
			}
			polled.cut(r.Truncated)
			if cursor = r.Cursor; !r.HasMore && device.Sleep(ctx, time.Duration(r.NextPollMs)*time.Millisecond) != nil {
				return
			}
		}
	})
	var answered atomic.Int64
	var longest time.Duration
	running.Go(func() {
		for ctx.Err() == nil {
			begun := time.Now()
			r, err := other.Read(ctx, agents.Principal{}, agents.ReadRequest{Points: []string{"last/level"}})
			if ctx.Err() != nil {
				return
			}
			if err != nil || len(r.Readings) != 1 {
				t.Errorf("another caller reads %v, %v", r, err)
				return
			}
			longest = max(longest, time.Since(begun))
			answered.Add(1)
			device.Sleep(ctx, 20*time.Millisecond)
		}
	})

	pid := site.Cmd.Process.Pid
	before, begun := harness.Status(t, pid, "VmRSS:")/1024, time.Now()
	var movers sync.WaitGroup
	seconds := 600.0
	for mover := range 16 {
		c := site.Client(t, true)
		movers.Go(func() {
			for n := mover; n < moves; n += 16 {
				output, value := fmt.Sprintf("lamp-%02d/level", n%outputs), device.Number(float64(1+n/outputs)/2)
				to := agents.MoveRequest{Output: output, Value: value, For: &seconds}
				if _, err := c.Move(ctx, agents.Principal{}, to); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	movers.Wait()
	took := time.Since(begun)
	if _, err := site.Client(t, true).Move(ctx, agents.Principal{}, agents.MoveRequest{
		Output: "last/level", Value: device.Number(1), For: &seconds,
	}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("streamed %d, polled %d\n%s", len(streamed.seen), len(polled.seen), site.Log)
		}
	}()
	harness.WaitFor(t, time.Minute, "the prompt receiver is told", func() bool {
		return slices.ContainsFunc(prompt.Deliveries(), func(d events.Delivery) bool {
			return d.Data.Output == "last/level"
		})
	})
	harness.WaitFor(t, 2*time.Minute, "the last move is streamed and polled", func() bool {
		return streamed.over() && polled.over()
	})
	after, most := harness.Status(t, pid, "VmRSS:")/1024, harness.Status(t, pid, "VmHWM:")/1024
	stop()
	running.Wait()

	t.Logf("%d moves in %v: streamed %d (truncated %v), polled %d (truncated %v), %d messages to the receiver that "+
		"hangs; %d calls of another, the longest %v; %.0f MB before, %.0f after, %.0f at most",
		moves, took.Round(time.Second), len(streamed.seen), streamed.truncated, len(polled.seen), polled.truncated,
		len(hangs.Deliveries()), answered.Load(), longest.Round(time.Millisecond), before, after, most)
	if most > before+memory || answered.Load() < 20 {
		t.Errorf("%.0f MB after %.0f, %d calls", most, before, answered.Load())
	}
	for _, d := range slices.Concat(hangs.Deliveries(), prompt.Deliveries()) {
		if d.Type == "" {
			ids.add(d.Occurrence)
		}
	}
	if len(ids.wrong) > 0 {
		t.Errorf("%d IDs are wrong, such as %s", len(ids.wrong), ids.wrong[0])
	}
	for way, s := range map[string]*told{"the stream": streamed, "the poller": polled} {
		if len(s.seen) > moves+1 || len(s.seen) < moves+1 && !s.truncated {
			t.Errorf("%s has %d of %d, truncated %v", way, len(s.seen), moves+1, s.truncated)
		}
	}
}
