package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, folder string) *Journal {
	t.Helper()
	j, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// crash leaves the journal as it is, as a kill does.
func (j *Journal) crash() { j.file.Close() }

func call(key string) Call {
	return Call{Who: "local", Tool: "switch_output", Args: []byte(`{"on":true}`), Key: key}
}

func entries(t testing.TB, folder string) []Entry {
	t.Helper()
	var all []Entry
	if _, err := Read(folder, func(e Entry) error { all = append(all, e); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestReplay(t *testing.T) {
	folder := t.TempDir()
	j := open(t, folder)
	ticket, replay, err := j.Begin(call("a"))
	if replay != nil || err != nil {
		t.Fatal(replay, err)
	}
	if _, _, err := j.Begin(call("a")); !errors.Is(err, ErrPending) {
		t.Errorf("while it is made: %v", err)
	}
	if err := j.End(ticket, Outcome{Value: []byte(`{"value":true}`)}); err != nil {
		t.Fatal(err)
	}
	begun, _, err := j.Begin(call("never ended"))
	if err != nil || begun.seq == 0 {
		t.Fatal(err)
	}
	ask := func(when string) {
		t.Helper()
		if _, replay, err := j.Begin(call("a")); err != nil || replay == nil || string(replay.Value) != `{"value":true}` {
			t.Errorf("%s: %v, %v", when, replay, err)
		}
		other := call("a")
		other.Args = []byte(`{"on":false}`)
		if _, _, err := j.Begin(other); !errors.Is(err, ErrReused) {
			t.Errorf("%s, with other arguments: %v", when, err)
		}
		another := call("a")
		another.Who = "token:1"
		if ticket, replay, err := j.Begin(another); replay != nil || err != nil && when == "at once" {
			t.Errorf("%s, by somebody else: %v, %v, %v", when, ticket, replay, err)
		}
	}
	ask("at once")
	j.crash()
	j = open(t, folder)
	defer j.crash()
	ask("after a crash")
	if _, _, err := j.Begin(call("never ended")); !errors.Is(err, ErrUnknown) {
		t.Errorf("a call that the crash overtook: %v", err)
	}
}

func TestFailuresAreRememberedToo(t *testing.T) {
	j := open(t, t.TempDir())
	defer j.crash()
	ticket, _, _ := j.Begin(call("a"))
	j.End(ticket, Outcome{Fault: "busy", Says: "held by another"})
	if _, replay, err := j.Begin(call("a")); err != nil || replay == nil || replay.Fault != "busy" {
		t.Errorf("%v, %v", replay, err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		j := open(t, folder)
		long := bytes.Repeat([]byte("x"), maxValue)
		for i := range maxBytes/maxValue + 10 {
			ticket, _, err := j.Begin(call(fmt.Sprint(i)))
			if err != nil {
				t.Fatal(err)
			}
			j.End(ticket, Outcome{Value: long})
		}
		if j.memory.bytes > maxBytes || len(j.memory.order) != maxBytes/maxValue+10 {
			t.Errorf("it holds %d calls of %d bytes", len(j.memory.order), j.memory.bytes)
		}
		if _, _, err := j.Begin(call("0")); !errors.Is(err, ErrUnknown) {
			t.Errorf("a call whose outcome is forgotten: %v", err)
		}
		ticket, _, _ := j.Begin(call("longer"))
		j.End(ticket, Outcome{Value: append(long, 'x')})
		if _, _, err := j.Begin(call("longer")); !errors.Is(err, ErrUnknown) {
			t.Errorf("a result that is too long: %v", err)
		}
		time.Sleep(remembered + time.Second)
		if _, replay, err := j.Begin(call("longer")); err != nil || replay != nil {
			t.Errorf("a day later: %v, %v", replay, err)
		}
		if len(j.memory.order) != 1 {
			t.Errorf("%d calls are still known", len(j.memory.order))
		}
		j.crash()
		// After a restart the clock is not trusted: everything is known for another day.
		j = open(t, folder)
		defer j.crash()
		if _, replay, err := j.Begin(call("25")); err != nil || replay == nil {
			t.Errorf("after a restart: %v, %v", replay, err)
		}
	})
}

// TestNobodyForgetsForAnother: a caller with any number of keys evicts only its own.
func TestNobodyForgetsForAnother(t *testing.T) {
	m := newMemory()
	m.put(memoryKey("ann", "first"), &remembering{who: "ann"})
	for i := range 2 * maxKeys {
		m.put(memoryKey("bob", fmt.Sprint(i)), &remembering{who: "bob"})
	}
	if m.calls[memoryKey("ann", "first")] == nil || len(m.order) != maxKeys || len(m.calls) != maxKeys || m.count["ann"] != 1 || m.count["bob"] != maxKeys-1 {
		t.Errorf("%d calls, %v", len(m.calls), m.count)
	}
	if m.calls[memoryKey("bob", fmt.Sprint(maxKeys))] != nil || m.calls[memoryKey("bob", fmt.Sprint(2*maxKeys-1))] == nil {
		t.Error("it is not the oldest that are forgotten")
	}
}

// TestMemoryShares: a caller with long outcomes evicts none of another's calls, which a repeated
// call would make again.
func TestMemoryShares(t *testing.T) {
	m := newMemory()
	add := func(who string, n int, value []byte) {
		r := &remembering{who: who, at: time.Now()}
		m.put(memoryKey(who, fmt.Sprint(n)), r)
		m.complete(r, Outcome{Value: value}, false)
	}
	const few = 200
	for n := range few {
		add("ann", n, []byte(`{"value":true}`))
	}
	for n := range 2 * maxBytes / maxValue {
		add("bob", n, bytes.Repeat([]byte("x"), maxValue))
	}
	if m.count["ann"] != few || m.count["bob"] == 0 || m.bytes > maxBytes {
		t.Errorf("%v, %d bytes", m.count, m.bytes)
	}
}

// written is a journal of a few entries, closed in order, and its one segment.
func writeTestSegment(t testing.TB) (folder, segment string) {
	folder = t.TempDir()
	j := open(t, folder)
	for i := range 5 {
		ticket, _, err := j.Begin(call(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		j.End(ticket, Outcome{Value: []byte(`{}`)})
	}
	finish(t, j)
	files, err := segments(folder)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	return folder, files[0]
}

func finish(t testing.TB, j *Journal) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func none(Entry) error { return nil }

// TestEveryByteCounts changes each byte of a journal and of its anchor in turn. TestCut cuts the
// journal at every byte; the rest is missing, or zeros as after a loss of power. Without an anchor
// beyond the cut, writing goes on after the last whole entry. With one, the cut is detected.
// TestCutAtASegment cuts power in the first bytes of a new segment. TestOpensLater: with a disk
// that fails at the start, writes are refused until the disk works.
func TestSegments(t *testing.T) {
	folder := t.TempDir()
	j := open(t, folder)
	says := strings.Repeat("x", maxSays)
	for range (maxSegments + 2) * segmentSize / maxSays {
		if err := j.Note(says); err != nil {
			t.Fatal(err)
		}
	}
	j.crash()
	report, err := Read(folder, none)
	if err != nil || report.Segments != maxSegments || report.First == 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	files, _ := segments(folder)
	if err := os.Remove(files[3]); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(folder, none); !errors.Is(err, ErrDamaged) {
		t.Errorf("a segment is missing: %v", err)
	}
	j = open(t, folder) // which looks at the end alone
	j.crash()
}

func TestDenialsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		j := open(t, folder)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- j.Run(ctx) }()
		for range 10_000 {
			j.Deny("token:1", "switch_output", "denied")
		}
		for i := range 1000 {
			j.Deny(fmt.Sprint("token:", i), "switch_output", "denied")
		}
		if len(entries(t, folder)) != 0 {
			t.Error("they were written at once")
		}
		time.Sleep(flushEvery + time.Second)
		all := entries(t, folder)
		sum := 0
		for _, e := range all {
			sum += e.Count
		}
		if len(all) > maxDenials+1 || sum != 11_000 {
			t.Errorf("%d denials in %d entries", sum, len(all))
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := j.Note("late"); err == nil {
			t.Error("it is written after its end")
		}
	})
}

// TestDiskFails: a call that cannot be written is not begun, and all goes on once it can. TestDone:
// a call that did not wait for the disk is there soon, and has no key.
func TestDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		j := open(t, folder)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- j.Run(ctx) }()
		j.Add(call("a"), Outcome{Value: []byte(`{}`)})
		synctest.Wait()
		all := entries(t, folder)
		if len(all) != 1 || all[0].Kind != Done || all[0].Who != "local" || string(all[0].Args) != `{"on":true}` || string(all[0].Value) != `{}` {
			t.Errorf("%+v", all)
		}
		if replay, err := j.Replay(call("a")); replay != nil || err != nil {
			t.Errorf("%v, %v", replay, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestActsOnce has callers retry through crashes at random moments: whatever
// happens, no call is made twice and none that was answered is missing.
func TestActsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		folder, err := os.MkdirTemp("", "journal")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(folder)
		j, err := Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		made := map[string]int{}      // calls acted on, by key
		answered := map[string]bool{} // and told so
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key")
			ticket, replay, err := j.Begin(call(key))
			switch {
			case replay != nil && !answered[key] && made[key] == 0:
				t.Fatalf("%s is replayed and was never made", key)
			case err == nil && replay == nil:
				moment := rapid.SampledFrom([]string{"before", "acted", "torn", "done"}).Draw(t, "moment")
				if moment != "before" {
					made[key]++
				}
				whole := j.size
				if moment == "torn" || moment == "done" {
					j.End(ticket, Outcome{Value: []byte(key)})
				}
				answered[key] = answered[key] || moment == "done"
				if moment == "done" && rapid.Bool().Draw(t, "goes on") {
					continue
				}
				if moment == "torn" { // the result never reached the disk whole
					cut := rapid.Int64Range(whole, j.size-1).Draw(t, "cut")
					if err := j.file.Truncate(cut); err != nil {
						t.Fatal(err)
					}
				}
				j.crash()
				if j, err = Open(folder); err != nil {
					t.Fatal(err)
				}
			}
			if made[key] > 1 {
				t.Fatalf("%s was made %d times", key, made[key])
			}
			if answered[key] {
				if _, replay, err := j.Begin(call(key)); err != nil || replay == nil || string(replay.Value) != key {
					t.Fatalf("%s was answered and is now %v, %v", key, replay, err)
				}
			}
		}
		j.crash()
		if _, err := Read(folder, none); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzRead(f *testing.F) {
	_, segment := writeTestSegment(f)
	b, err := os.ReadFile(segment)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:headerSize+20])
	f.Fuzz(func(t *testing.T, b []byte) {
		folder := t.TempDir()
		if err := os.WriteFile(segmentName(folder, 1), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(folder, none); err != nil {
			return
		}
		j, err := Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		defer j.crash()
		if err := j.Note("on it goes"); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(folder, none); err != nil {
			t.Fatalf("what was read and written on cannot be read: %v", err)
		}
	})
}

// TestClockYearsOff: whatever the clock's time and steps, a key identifies its call and the chain
// is valid.
func TestClockYearsOff(t *testing.T) {
	const years = 10 * 365 * 24 * time.Hour
	for _, off := range []time.Duration{-years, years} {
		folder := t.TempDir()
		j := open(t, folder)
		e := intent(call("a"))
		e.At = time.Now().Add(off).UnixMilli() // as a board without a clock would write it
		seq, err := j.write(e, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.write(Entry{Kind: Result, Of: seq, Value: []byte(`{}`), At: e.At}, false); err != nil {
			t.Fatal(err)
		}
		if _, err := j.write(Entry{Kind: Event, Says: "the clock was set", At: time.Now().Add(-off).UnixMilli()}, false); err != nil {
			t.Fatal(err)
		}
		j.crash()
		j = open(t, folder)
		if replay, err := j.Replay(call("a")); err != nil || replay == nil || string(replay.Value) != `{}` {
			t.Errorf("%v off: %v, %v", off, replay, err)
		}
		j.crash()
	}
}
