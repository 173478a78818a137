package remote

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// board is a site that is asked for updates.
type board struct {
	*Updater
	away      []string
	busy      error
	old       error
	find      error
	stage     func(context.Context) error
	staged    int
	restarted int
	failed    int // updates
}

func newBoard(t *testing.T, cannot string) *board {
	b := &board{}
	b.Updater = New(Parts{
		Version: "v1", Cannot: cannot, Status: func() (Status, error) { return Status{Proven: true}, nil },
		Find: func(context.Context, string, string) (Offer, error) {
			return Offer{Version: "v2", Size: 10, Old: b.old, Stage: func(ctx context.Context, progress func(int64)) error {
				b.staged++
				progress(10)
				if b.stage != nil {
					return b.stage(ctx)
				}
				return nil
			}}, b.find
		},
		Away: func() []string { return b.away }, Busy: func() error { return b.busy },
		Problems: func(context.Context) map[string]string { return nil },
		Restart:  func() { b.restarted++ }, Note: func(string) {}, Failed: func(string) { b.failed++ },
		Own: func(_ agents.Principal, _, _ string, do func() error) error { return do() },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { b.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return b
}

func (b *board) ask(t *testing.T, w Wanted) (Version, device.FaultKind) {
	v, err := b.update(t.Context(), agents.Principal{}, w)
	synctest.Wait()
	if err != nil {
		return v, device.AsFault(err).Kind
	}
	return v, ""
}

func (b *board) state(t *testing.T) WorkState {
	v, err := b.version(t.Context(), agents.Principal{}, Look{})
	if err != nil || v.Work == nil {
		t.Fatal(v, err)
	}
	return v.Work.State
}

// TestUpdate: the site restarts once for an update that it has staged, and for nothing else.
func TestUpdate(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*board)
		want   Wanted
		kind   device.FaultKind
		staged int
		ends   int
	}{
		"newer":             {kind: "", staged: 1, ends: 1},
		"not newer":         {change: func(b *board) { b.old = errors.New("it is here") }, kind: device.Invalid},
		"no channel":        {change: func(b *board) { b.find = errors.New("no route") }, kind: device.Unavailable},
		"an output is away": {change: func(b *board) { b.away = []string{"pump"} }, kind: device.Unsafe},
		"away, and now": {
			change: func(b *board) { b.away = []string{"pump"} }, want: Wanted{Now: true}, staged: 1, ends: 1,
		},
		"a trial runs": {change: func(b *board) { b.busy = device.Faultf(device.Busy, "a trial") }, kind: device.Busy},
		"a damaged download": {
			change: func(b *board) { b.stage = func(context.Context) error { return errors.New("hash") } }, staged: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBoard(t, "")
				if tt.change != nil {
					tt.change(b)
				}
				if _, kind := b.ask(t, tt.want); kind != tt.kind || b.staged != tt.staged || b.restarted != tt.ends {
					t.Errorf("%q, staged %d times, restarted %d", kind, b.staged, b.restarted)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		if _, kind := newBoard(t, "no package").ask(t, Wanted{}); kind != device.Denied {
			t.Error(kind)
		}
	})
}

// TestOneAtATime: a second update is refused while one is under way, and a minute after one that failed.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t, "")
		b.stage = func(context.Context) error { time.Sleep(2 * time.Minute); return errors.New("cut") }
		if v, kind := b.ask(t, Wanted{}); kind != "" || v.Work.Version != "v2" {
			t.Fatal(v, kind)
		}
		for range 2 { // at once, and when only the download goes on
			if _, kind := b.ask(t, Wanted{}); kind != device.Busy {
				t.Error(kind)
			}
			time.Sleep(pause + time.Second)
		}
		time.Sleep(time.Minute)
		b.stage = func(context.Context) error { return errors.New("cut") }
		if b.state(t) != Failed || b.failed != 1 {
			t.Error(b.state(t))
		}
		if _, kind := b.ask(t, Wanted{}); kind != "" {
			t.Error(kind)
		}
		if _, kind := b.ask(t, Wanted{}); kind != device.Busy {
			t.Error(kind)
		}
		if b.staged != 2 || b.restarted != 0 {
			t.Error(b.staged, b.restarted)
		}
	})
}

// TestAgain: an update that was not found is none under way.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t, "")
		b.find = errors.New("no route")
		if _, kind := b.ask(t, Wanted{}); kind != device.Unavailable {
			t.Error(kind)
		}
		time.Sleep(pause)
		b.find = nil
		if _, kind := b.ask(t, Wanted{}); kind != "" || b.restarted != 1 {
			t.Errorf("%q, restarted %d times", kind, b.restarted)
		}
	})
}

// TestAwayMeanwhile: the restart waits for an output that leaves safe during the download, and not for ever.
func TestAwayMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t, "")
		b.stage = func(context.Context) error { b.away = []string{"pump"}; return nil }
		b.ask(t, Wanted{})
		time.Sleep(time.Minute)
		if b.restarted != 0 || b.state(t) != Waits {
			t.Error(b.restarted, b.state(t))
		}
		time.Sleep(safeTimeout)
		if b.restarted != 0 || b.state(t) != Failed || b.failed != 1 {
			t.Error(b.restarted, b.state(t))
		}
	})
}
