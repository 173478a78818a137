package journal

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestRepeats: no rate limits renewals and releases, so they must neither wear out the card nor
// push other calls out of the journal. None of them is missing.
func TestRepeats(t *testing.T) {
	renewed := Call{Who: "rule:frost", Tool: "switch_output", Args: []byte(`{"on":true,"output":"house/heater"}`)}
	held := Outcome{Value: []byte(`{"output":"house/heater","value":true}`)}
	for _, tt := range []struct {
		name             string
		every            time.Duration
		times            int
		entries, anchors int // at most
		do               func(j *Journal)
	}{
		{"an output that is held for a day", 40 * time.Second, 2160, 150, 2, func(j *Journal) { j.Add(renewed, held) }},
		{"renewals without end", time.Millisecond, 100_000, 2, 2, func(j *Journal) { j.Add(renewed, held) }},
		{"a move that is refused for a day", time.Minute, 1440, 1440, 6, func(j *Journal) { j.Deny("rule:frost", "switch_output", "unsafe") }},
	} {
		synctest.Test(t, func(t *testing.T) {
			folder := t.TempDir()
			j, err := Open(folder)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- j.Run(ctx) }()
			anchors, last := 0, uint64(0)
			for range tt.times {
				tt.do(j)
				time.Sleep(tt.every)
				synctest.Wait()
				j.mu.Lock()
				if j.anchored != last {
					anchors, last = anchors+1, j.anchored
				}
				j.mu.Unlock()
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			entries, calls := 0, 0
			if _, err := Read(folder, func(e Entry) error { entries, calls = entries+1, calls+max(1, e.Count); return nil }); err != nil {
				t.Error(err)
			}
			if entries > tt.entries || anchors > tt.anchors || calls != tt.times {
				t.Errorf("%s: %d entries of %d calls, %d anchors", tt.name, entries, calls, anchors)
			}
		})
	}
}

// TestRepeatsInOrder: counted repetitions are written before the next move of that output, after
// which the same call is no repetition. Different calls are each written.
func TestRepeatsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		j, err := Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- j.Run(ctx) }()
		do := func(who, output string) {
			j.Add(Call{Who: who, Tool: "release_output", Args: []byte(`{"output":"` + output + `"}`)}, Outcome{})
			synctest.Wait()
		}
		for range 3 {
			do("ann", "a/b")
		}
		do("ann", "a/c")
		do("bob", "a/b")
		ticket, _, err := j.Begin(Call{Who: "ann", Tool: "switch_output", Args: []byte(`{"on":true,"output":"a/b"}`)})
		if err != nil {
			t.Fatal(err)
		}
		j.End(ticket, Outcome{})
		do("ann", "a/b")
		do("ann", "a/c")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		var got []string
		if _, err := Read(folder, func(e Entry) error {
			text := string(e.Kind) + " " + e.Who
			if e.Count > 1 {
				text += " again"
			}
			got = append(got, text)
			return nil
		}); err != nil {
			t.Error(err)
		}
		want := []string{"done ann", "done ann", "done bob", "done ann again", "intent ann", "result ", "done ann", "done ann"}
		if len(got) != len(want) {
			t.Fatalf("%q", got)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%d: %q, want %q", i, got[i], want[i])
			}
		}
	})
}
