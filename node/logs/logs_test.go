package logs

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask asks the ring as an owner does.
func ask(ctx context.Context, t *testing.T, r *Ring, f Filter) (Page, error) {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	row := r.Operations()[0]
	answer, err := row.Do(
		ctx, agents.Principal{ID: "owner", Owner: true}, func(v any) error { return json.Unmarshal(text, v) },
	)
	p, _ := answer.(Page)
	return p, err
}

func texts(p Page) (all []string) {
	for _, l := range p.Lines {
		all = append(all, l.Level+" "+l.Text)
	}
	return all
}

// TestRead: lines come with their attributes from a level on, once, and all of them after another start.
func TestRead(t *testing.T) {
	r := NewRing()
	log := slog.New(r.Handler(slog.LevelInfo)).With("site", "shed")
	log.Debug("hidden")
	log.Info("one", "a", 1)
	log.WithGroup("g").Warn("two words", "time", "x")
	p, err := ask(t.Context(), t, r, Filter{})
	if got := strings.Join(texts(p), "\n"); err != nil || got != "INFO msg=one site=shed a=1\nWARN msg=\"two words\" "+
		"site=shed g.time=x" {
		t.Errorf("%s, %v", got, err)
	}
	if again, _ := ask(
		t.Context(), t, r, Filter{Run: p.Run, After: p.Last},
	); len(again.Lines) != 0 || again.Last != p.Last {
		t.Errorf("%+v", again)
	}
	if other, _ := ask(t.Context(), t, r, Filter{Run: "earlier", After: p.Last}); len(other.Lines) != 2 {
		t.Errorf("after another start: %+v", other)
	}
	if warned, _ := ask(t.Context(), t, r, Filter{Level: "warn"}); len(warned.Lines) != 1 || warned.Last != p.Last {
		t.Errorf("%+v", warned)
	}
	for _, f := range []Filter{{Level: "loud"}, {Wait: -1}, {Wait: 26}} {
		if _, err := ask(t.Context(), t, r, f); err == nil {
			t.Errorf("%+v is no mistake", f)
		}
	}
	if p, err := ask(t.Context(), t, nil, Filter{}); err != nil || len(p.Lines) != 0 {
		t.Errorf("a site without a ring answers %+v, %v", p, err)
	}
}

// TestBound: the ring keeps the newest lines within its bound, long ones cut, and says that older ones are gone.
func TestBound(t *testing.T) {
	r := NewRing()
	log := slog.New(r.Handler(slog.LevelInfo))
	for range 1000 {
		log.Info("x")
	}
	log.Info(strings.Repeat("ä", 3000))
	r.mu.Lock()
	bytes, held := r.bytes, cap(r.lines)*64
	for _, l := range r.lines {
		held += len(l.Text)
	}
	r.mu.Unlock()
	if bytes > maxBytes || held > 64<<10 {
		t.Errorf("it counts %d bytes and holds %d", bytes, held)
	}
	p, _ := ask(t.Context(), t, r, Filter{})
	if last := p.Lines[len(p.Lines)-1]; !p.Lost || last.Seq != 1001 || len(last.Text) > maxText || len(p.Lines) < 100 {
		t.Errorf("%d lines, lost %t, the last %d with %d bytes", len(p.Lines), p.Lost, last.Seq, len(last.Text))
	}
}

// TestCut: what a cut within a character removes does not count, neither when the line comes nor when it goes.
func TestCut(t *testing.T) {
	r := NewRing()
	log := slog.New(r.Handler(slog.LevelInfo))
	for n := range 4 * 64 {
		log.Info(strings.Repeat("x", n%4) + strings.Repeat("😀", 600))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := 0
	for _, l := range r.lines {
		sum += perLine + len(l.Text)
	}
	if r.bytes != sum {
		t.Errorf("it counts %d bytes and holds %d", r.bytes, sum)
	}
}

// TestWait: a request waits for a line of its level, as long as it says.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRing()
		log := slog.New(r.Handler(slog.LevelInfo))
		begun := time.Now()
		time.AfterFunc(3*time.Second, func() { log.Info("no") })
		time.AfterFunc(5*time.Second, func() { log.Warn("yes") })
		p, err := ask(t.Context(), t, r, Filter{Level: "warn", Wait: 20})
		if err != nil || len(p.Lines) != 1 || p.Lost || time.Since(begun) != 5*time.Second {
			t.Errorf("%+v, %v after %v", p, err, time.Since(begun))
		}
		p, err = ask(t.Context(), t, r, Filter{Run: p.Run, After: p.Last, Wait: 20})
		if err != nil || len(p.Lines) != 0 || time.Since(begun) != 25*time.Second {
			t.Errorf("%+v, %v after %v", p, err, time.Since(begun))
		}
	})
}

// TestRingCountsWhatItKeeps has lines that are cut within a character, whose rest is shorter than the part that was
// cut.
func TestRingCountsWhatItKeeps(t *testing.T) {
	r := NewRing()
	for range maxBytes + 1 {
		r.add(time.Time{}, slog.LevelInfo, []byte(strings.Repeat("€", maxText)))
	}
	if lines, _ := r.since(0); len(lines) < maxBytes/(2*maxText) || r.bytes > maxBytes {
		t.Errorf("it keeps %d lines", len(lines))
	}
}
