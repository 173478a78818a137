package access

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestFarEnds: whoever passes a grant on may end it when they like, and each end has a form in JSON: a grant without one
// would keep the owner from the list of all.
func TestFarEnds(t *testing.T) {
	k := keys(3)
	g := grant(t, "read fan", k[0], k[1])
	for _, end := range []int64{lastSecond, lastSecond + 1, 1 << 40, 1<<63 - 1} {
		far, err := g.Delegate(k[1], Block{Audience: k[2].ID(), Permissions: words(t, "read fan"), Until: end})
		wants(t, err, "")
		if _, err := far.Until().MarshalJSON(); err != nil || far.Until().Unix() != lastSecond || far.Expired(time.Now()) {
			t.Errorf("%d: %v, %v", end, far.Until(), err)
		}
	}
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 14*3600), time.FixedZone("west", -12*3600)} {
		for _, text := range []string{"9999-12-31", "9999-12-31T23:59:59-14:00"} {
			if until, err := ParseUntil(text, time.Now().In(zone)); err == nil {
				t.Errorf("%s in %v: %v", text, zone, until)
			}
		}
		if until, err := ParseUntil("9999-12-29", time.Now().In(zone)); err != nil {
			t.Errorf("%v: %v, %v", zone, until, err)
		}
	}
}

// logged collects the output of the default logger.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

// TestEnding: the log, and OnEnding, tell of a permission in the week before its end, again on the last day, and at each
// start; they tell nothing of one that never ends.
func TestEnding(t *testing.T) {
	var log logged
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		k := keys(6)
		var s shelf
		b := s.open(t, k[0].ID())
		b.OnEnd = func() {}
		told := make(map[string]int)
		b.OnEnding = func(who string, grant Hash, until time.Time) {
			b.NameOf(who) // no lock is held
			if told[who]++; time.Until(until) <= 0 || grant == (Hash{}) {
				t.Errorf("%s %v %v", who, grant, until)
			}
		}
		if err := b.Claim(Owner{ID: k[1].ID()}); err != nil {
			t.Fatal(err)
		}
		const day = 24 * time.Hour
		for i, length := range []time.Duration{0, 7 * day, day, 30 * day} {
			block := Block{Audience: k[i+2].ID(), Permissions: words(t, "read *")}
			if length > 0 {
				block.Until = time.Now().Add(length).Unix()
			}
			g, err := Issue(k[1], block)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.AddGrant(g.Bytes()); err != nil {
				t.Fatal(err)
			}
		}
		run := func(length time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), length)
			defer cancel()
			b.Run(ctx)
		}
		want := func(counts ...int) {
			t.Helper()
			for i, n := range counts {
				if got := log.count("who=" + k[i+2].ID().String()); got != n {
					t.Errorf("permission %d is logged %d times, want %d", i, got, n)
				}
				if got := told[k[i+2].ID().String()]; got != n {
					t.Errorf("permission %d is told %d times, want %d", i, got, n)
				}
			}
		}
		run(time.Minute)
		want(0, 0, 1, 0)
		run(4 * time.Hour)
		want(0, 1, 2, 0)
		run(10 * time.Hour) // it starts again, within the week
		want(0, 2, 4, 0)
		run(9 * day)
		want(0, 4, 5, 0)
		run(19 * day)
		want(0, 4, 5, 1)
		run(day)
		want(0, 4, 5, 3)
	})
}
