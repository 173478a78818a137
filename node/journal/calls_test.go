package journal

import (
	"errors"
	"fmt"
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
		c := Call{Who: []string{"ann", "bob"}[i%2], Tool: "switch_output", Args: fmt.Appendf(nil, `{"output":"lamp/%d","on":true}`, i%4)}
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
	if _, _, err := Calls(folder, Filter{Limit: 1, Known: head.Last - 1, KnownHash: head.Hash}, time.Now()); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	if _, _, err := Calls(folder, Filter{Limit: 1, Known: head.Last + 1, KnownHash: head.Hash}, time.Now()); device.AsFault(err).Kind != device.Invalid {
		t.Error(err)
	}
}
