package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"agentsite/device"
)

// TestCalls pages through the journal, filters it, and finds a noted entry that is another one.
func TestCalls(t *testing.T) {
	folder := t.TempDir()
	j, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		c := Call{Who: []string{"ann", "bob"}[i%2], Tool: "switch_output"}
		c.Args = fmt.Appendf(nil, `{"output":"lamp/%d","on":true}`, i%4)
		end, _, err := j.Begin(c)
		if err != nil {
			t.Fatal(err)
		}
		if i == 19 {
			continue // it runs
		}
		if err := j.End(end, Outcome{Value: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	calls := func(f Filter) Page {
		t.Helper()
		page, _, err := Calls(folder, f, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	var seen []Item
	var before uint64
	pages := 0
	for more := true; more; pages++ {
		page := calls(Filter{Limit: 6, Before: before})
		seen = append(page.Items, seen...)
		more = page.Older
		before = page.Items[0].Seq
	}
	if len(seen) != 20 || pages != 4 || seen[19].Outcome != noResult || seen[18].Outcome != "done" || seen[0].Seq != 1 {
		t.Errorf("%d in %d pages: %+v", len(seen), pages, seen)
	}
	for want, f := range map[int]Filter{
		10: {Who: "bob"}, 5: {Output: "lamp/3"}, 0: {Output: "lamp/3", Who: "ann"}, 20: {From: time.Now().Add(-time.Hour)},
	} {
		f.Limit = 100
		if page := calls(f); len(page.Items) != want || page.Older {
			t.Errorf("%+v: %d", f, len(page.Items))
		}
	}
	if page := calls(Filter{Limit: 100, To: seen[0].Time}); len(page.Items) != 0 {
		t.Errorf("%+v", page.Items)
	}
	head := calls(Filter{Limit: 1})
	calls(Filter{Limit: 1, Known: head.Last, KnownHash: head.Hash})
	if _, _, err := Calls(folder, Filter{Limit: 1, Known: head.Last - 1, KnownHash: head.Hash}, time.Now()); !errors.Is(err, ErrOther) {
		t.Error(err)
	}
	if _, _, err := Calls(folder, Filter{Limit: 1, Known: head.Last + 1, KnownHash: head.Hash}, time.Now()); !errors.Is(err, ErrOther) {
		t.Error(err) // its end was cut off
	}
	if _, _, err := Calls(folder, Filter{Limit: 1, Known: head.Last}, time.Now()); device.AsFault(err).Kind != device.Invalid {
		t.Error(err)
	}
	if page := calls(Filter{Limit: math.MaxInt}); len(page.Items) != 20 {
		t.Errorf("%+v", page)
	}
}

// TestCallsFrom: no entry is left out because the clock was set back after it.
func TestCallsFrom(t *testing.T) {
	folder := t.TempDir()
	at := time.Now()
	j, err := openAt(folder, func() (time.Time, bool) { return at, true })
	if err != nil {
		t.Fatal(err)
	}
	note := func(ago time.Duration) {
		t.Helper()
		at = time.Now().Add(-ago)
		if err := j.Note(ago.String()); err != nil {
			t.Fatal(err)
		}
	}
	note(time.Minute)
	note(time.Minute)
	note(48 * time.Hour)
	page, _, err := Calls(folder, Filter{Limit: 1, From: time.Now().Add(-time.Hour)}, time.Now())
	if err != nil || len(page.Items) != 1 || page.Items[0].Says != "1m0s" || !page.Older {
		t.Errorf("%+v %v", page, err)
	}
}

// TestRecorderCalls: an owner's page is bounded, one call reads at a time, and a journal without what was
// written is damaged.
func TestRecorderCalls(t *testing.T) {
	folder := t.TempDir()
	r := NewRecorder()
	r.Open(folder)
	for i := range 200 {
		c := Call{Who: "ann", Tool: "show_text", Args: fmt.Appendf(nil, `{"display":"lcd/%d"}`, i)}
		end, _, err := r.Journal.Begin(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.End(end, Outcome{Value: bytes.Repeat([]byte("1"), maxValue)}); err != nil {
			t.Fatal(err)
		}
	}
	page, err := r.Calls(t.Context(), Filter{Limit: MaxPage})
	if err != nil || len(page.Items) == 0 || len(page.Items) > maxPageBytes/maxValue || !page.Older || page.Items[len(page.Items)-1].Seq != 399 {
		t.Errorf("%d, %v", len(page.Items), err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := r.Calls(ctx, Filter{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.reading <- struct{}{}
	if _, err := r.Calls(ctx, Filter{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-r.reading
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Calls(t.Context(), Filter{}); device.AsFault(err).Kind != device.Unavailable {
		t.Error(err)
	}
}
