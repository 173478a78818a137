package scan

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/sysfs"
)

// TestSeek: drivers seek at once, for a bounded time, beside the search of the buses; and not when only wired parts are
// looked for.
func TestSeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		asked := 0
		hung := make(chan struct{})
		defer close(hung)
		drivers := []driver.Driver{
			{Name: "quick", Seek: func(context.Context) ([]driver.Found, error) {
				asked++
				return []driver.Found{{Where: "kitchen.local", What: "node", Name: "kitchen", YAML: "{ driver: quick }"}, {Where: "bath.local"}}, nil
			}},
			{Name: "slow", Seek: func(ctx context.Context) ([]driver.Found, error) { <-ctx.Done(); return nil, ctx.Err() }},
			{Name: "none"},
			{Name: "partial", Seek: func(ctx context.Context) ([]driver.Found, error) {
				<-ctx.Done()
				return []driver.Found{{Where: "hall.local"}}, nil
			}},
			{Name: "hung", Seek: func(ctx context.Context) ([]driver.Found, error) { <-hung; return nil, nil }},
			{Name: "broken", Seek: func(ctx context.Context) ([]driver.Found, error) { panic("a defect") }},
		}
		var waited [][]string
		s := Scan{Board: board.On(board.Machine{Root: root}), Root: sysfs.Root(root), Drivers: drivers, Waiting: func(d []string) {
			synctest.Wait()
			waited = append(waited, d)
		}}
		begun := time.Now()
		found, trouble := s.Run(t.Context())
		if took := time.Since(begun); took < seekTime || took > seekTime+time.Second {
			t.Errorf("it took %v", took)
		}
		i := slices.IndexFunc(found, func(f Found) bool { return f.Where == "kitchen.local" })
		if i < 0 || len(found[i].Devices) != 1 || found[i].Devices[0].Name != "kitchen" || found[i].Confidence != Likely {
			t.Errorf("%+v", found)
		}
		if i = slices.IndexFunc(found, func(f Found) bool { return f.Where == "bath.local" }); i < 0 || len(found[i].Devices) != 0 {
			t.Errorf("%+v", found)
		}
		if !slices.ContainsFunc(found, func(f Found) bool { return f.Where == "hall.local" }) {
			t.Errorf("%+v", found)
		}
		for _, name := range []string{"slow", "hung", "broken"} {
			if !slices.ContainsFunc(trouble, func(f driver.Finding) bool { return f.Subject == name && f.Severity == driver.Note }) {
				t.Errorf("%s: %+v", name, trouble)
			}
		}
		if len(waited) != 1 || !slices.Contains(waited[0], "slow") || slices.Contains(waited[0], "none") {
			t.Errorf("waited for %v", waited)
		}
		s.Wired = true
		s.Run(t.Context())
		s.Wired, s.Buses = false, []string{"i2c-1"}
		s.Run(t.Context())
		if asked != 1 || len(waited) != 1 {
			t.Errorf("asked %d times, waited %d times", asked, len(waited))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.Buses = nil
		if _, trouble = s.Run(ctx); !slices.ContainsFunc(trouble, func(f driver.Finding) bool { return f.Says == errors.New("context canceled").Error() }) {
			t.Errorf("%+v", trouble)
		}
	})
}
