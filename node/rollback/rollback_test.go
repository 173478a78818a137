package rollback_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/push"
	"agentsite/node/rollback"
	"agentsite/node/state"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	old    = "old"
	new1   = "new"
	edited = "edited"
	length = 60 // seconds
)

var owner = agents.Principal{ID: "owner", Owner: true}

var errDead = errors.New("the process is dead")

// disk outlives processes.
type disk struct {
	file   string // of the configuration
	record []byte
	full   bool // records cannot be written
	steps  int
	crash  int  // the step at which the process dies; 0 for none
	after  bool // it has done the step
}

type noJournal struct{ node.Journal }

func (noJournal) Add(node.Asked, node.Outcome) {}

// process is a run of the site.
type process struct {
	*acts.Site
	*disk
	m       *rollback.Manager
	ctx     context.Context
	kill    context.CancelFunc
	ended   chan struct{} // Run has returned
	mu      sync.Mutex    // of used: the site reads it while Reload runs
	used    string        // the text in use
	restart bool          // the change needs a restart
	reload  error
	sick    map[string]string // once the new text is in use
	notes   []string
}

// step is an access to the disk, before or after which the process may die.
func (p *process) step(do func() error) error {
	if p.ctx.Err() != nil {
		return errDead
	}
	p.steps++
	if p.steps != p.crash {
		return do()
	}
	if p.after {
		do()
	}
	p.kill()
	return errDead
}

func (d *disk) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(d.file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func start(t *testing.T, d *disk, restart bool, sick map[string]string, reload error) *process {
	p := &process{disk: d, restart: restart, sick: sick, reload: reload, ended: make(chan struct{})}
	p.ctx, p.kill = context.WithCancel(t.Context())
	change := func(do func(string, []byte, []byte) error) func(string, []byte, []byte) error {
		return func(file string, from, to []byte) error { return p.step(func() error { return do(file, from, to) }) }
	}
	says := ""
	p.m, says = rollback.Open(rollback.Options{
		Read: func() ([]byte, error) { return d.record, nil },
		Write: func(text []byte) error {
			return p.step(func() error {
				if d.full {
					return errors.New("no space left on device")
				}
				d.record = bytes.Clone(text)
				return nil
			})
		},
		Rewrite: change(state.Rewrite), Restore: change(state.Restore),
		Restart: func() { time.AfterFunc(time.Second, p.kill) },
	})
	if says != "" {
		p.notes = append(p.notes, says)
	}
	p.used = d.text(t)
	p.Site = &acts.Site{
		Node: node.New(node.Parts{Hub: node.NewHub(nil, nil, agents.PointURI), Journal: noJournal{}}), Configuration: d.file,
		Phones: new(push.Store),
		Check: func(context.Context, []byte) ([]error, error) {
			if restart {
				return nil, config.ErrRestart
			}
			return nil, nil
		},
		Rewrite: change(state.Rewrite),
		Reload: func(context.Context) error {
			return p.step(func() error {
				now := d.text(t)
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.reload != nil && now == new1 {
					if device.AsFault(p.reload).Kind == device.Offline {
						p.used = now
					}
					return p.reload
				}
				p.used = now
				return nil
			})
		},
		Trials: p.m,
		Problems: func(context.Context) map[string]string {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.used == new1 {
				return p.sick
			}
			return nil
		},
	}
	s := rollback.Site{
		Reload: p.Site.Reload, Problems: p.Problems, Turn: &p.Configuring,
		NotKept: func(s string) { p.notes = append(p.notes, s) },
	}
	go func() { p.m.Run(p.ctx, s); close(p.ended) }()
	return p
}

// call calls an owner's operation.
func call[P, R any](p *process, name string, params P) (out R, err error) {
	for _, row := range p.Operations() {
		if row.Name == name {
			var answer any
			answer, err = row.Do(p.ctx, owner, func(v any) error { *v.(*P) = params; return nil })
			if err == nil && p.ctx.Err() == nil {
				return answer.(R), nil
			}
			return out, cmp.Or(p.ctx.Err(), err)
		}
	}
	return out, errors.New(name + " is no operation")
}

func (p *process) configure(t *testing.T) error {
	_, err := call[acts.NewConfiguration, acts.Configuration](p, string(acts.ConfigureAct), acts.NewConfiguration{
		Text: new1, Digest: rollback.Digest([]byte(p.text(t))), Trial: length, Restart: p.restart,
	})
	return err
}

func (p *process) confirm(back bool) (rollback.Status, error) {
	return call[rollback.Confirmation, rollback.Status](p, string(rollback.ConfirmAct),
		rollback.Confirmation{Digest: rollback.Digest([]byte(new1)), Back: back})
}

func (p *process) status(t *testing.T) rollback.Status {
	t.Helper()
	s, err := call[acts.None, rollback.Status](p, string(rollback.TrialAct), acts.None{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newDisk(t *testing.T, folder string) *disk {
	t.Helper()
	d := &disk{file: filepath.Join(folder, "site.yaml")}
	if err := os.WriteFile(d.file, []byte(old), 0o640); err != nil {
		t.Fatal(err)
	}
	os.Remove(d.file + state.Before)
	return d
}

// TestTrial: a configuration stays only if an owner confirms it while the site is well.
func TestTrial(t *testing.T) {
	sick := map[string]string{"climate": "is missing"}
	for name, tt := range map[string]struct {
		restart, confirm, back, full bool
		sick                         map[string]string
		reload                       error
		edited                       bool
		want                         rollback.State
		within                       time.Duration
	}{
		"confirmed":                   {confirm: true, want: rollback.Kept, within: 11 * time.Second},
		"confirmed after a restart":   {restart: true, confirm: true, want: rollback.Kept, within: 13 * time.Second},
		"not confirmed":               {want: rollback.RolledBack, within: (length + 2) * time.Second},
		"not reached after a restart": {restart: true, want: rollback.RolledBack, within: (length + 4) * time.Second},
		"taken back":                  {confirm: true, back: true, want: rollback.RolledBack, within: 2 * time.Second},
		"a device is worse":           {confirm: true, sick: sick, want: rollback.RolledBack, within: 12 * time.Second},
		"a device is missing at once": {
			reload: device.Faultf(device.Offline, "it is"), want: rollback.RolledBack, within: time.Second,
		},
		"not taken": {
			reload: device.Faultf(device.Invalid, "no"), want: rollback.RolledBack, within: time.Second,
		},
		"written by somebody":        {edited: true, want: rollback.Replaced, within: (length + 2) * time.Second},
		"confirmed, but overwritten": {confirm: true, edited: true, want: rollback.Replaced, within: 13 * time.Second},
		"confirmed on a full disk": {
			confirm: true, full: true, want: rollback.RolledBack, within: (length + 2) * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				d := newDisk(t, folder)
				p := start(t, d, tt.restart, tt.sick, tt.reload)
				defer func() { p.kill(); <-p.ended }()
				begun := time.Now()
				if err := p.configure(t); (err != nil) != (tt.reload != nil) {
					t.Fatal(err)
				}
				if tt.restart {
					if _, err := p.confirm(false); device.AsFault(err).Kind != device.Busy {
						t.Errorf("confirmed before the restart: %v", err)
					}
					<-p.ended
					p = start(t, d, true, tt.sick, nil)
				}
				synctest.Wait()
				if s := p.status(t); tt.reload == nil && s.State != rollback.Running {
					t.Fatalf("%+v", s)
				}
				if err := p.configure(t); tt.reload == nil && device.AsFault(err).Kind != device.Busy {
					t.Errorf("a trial in a trial: %v", err)
				}
				if tt.edited {
					if err := os.WriteFile(d.file, []byte(edited), 0o640); err != nil {
						t.Fatal(err)
					}
				}
				d.full = tt.full
				if tt.confirm {
					if s, err := p.confirm(tt.back); tt.full != (err != nil) || err == nil && s.State != tt.want {
						t.Errorf("%+v %v", s, err)
					}
				} else {
					for p.m.Running() {
						time.Sleep(time.Second)
					}
				}
				if tt.restart && !tt.confirm { // for the one before
					<-p.ended
					p = start(t, d, true, nil, nil)
				}
				s, want := p.status(t),
					map[rollback.State]string{rollback.Kept: new1, rollback.RolledBack: old, rollback.Replaced: edited}[tt.want]
				if s.State != tt.want || d.text(t) != want || time.Since(begun) > tt.within {
					t.Errorf("%+v, %s in the file after %v", s, d.text(t), time.Since(begun))
				}
				if tt.want == rollback.Kept && time.Since(begun) < 10*time.Second {
					t.Errorf("kept after %v, before it was well for long enough", time.Since(begun))
				}
				if tt.want != rollback.Replaced && p.used != want {
					t.Errorf("%s is in use", p.used)
				}
				if tt.want == rollback.RolledBack && s.Because == "" {
					t.Error("it does not say why")
				}
			})
		})
	}
}

// TestBegin: a trial has a length within the limits, and ends by itself where nothing follows its beginning.
func TestBegin(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, folder)
		p := start(t, d, false, nil, nil)
		defer func() { p.kill(); <-p.ended }()
		trial := rollback.Trial{File: d.file, Digest: rollback.Digest([]byte(new1)), Before: old}
		for _, trial.Seconds = range []float64{9, 3601, -1} {
			if err := p.m.Begin(trial, nil); device.AsFault(err).Kind != device.Invalid {
				t.Errorf("a trial of %v s: %v", trial.Seconds, err)
			}
		}
		synctest.Wait()
		trial.Seconds = length
		if err := p.m.Begin(trial, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep((length + 2) * time.Second)
		if s := p.status(t); s.State != rollback.RolledBack {
			t.Errorf("%+v", s)
		}
	})
}

// TestKnown: what was wrong before the trial does not end it, and something else does.
func TestKnown(t *testing.T) {
	for other, want := range map[string]rollback.State{"": rollback.Kept, "lamp": rollback.RolledBack} {
		folder := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			p := start(t, newDisk(t, folder), false, map[string]string{"pump": "is missing"}, nil)
			defer func() { p.kill(); <-p.ended }()
			p.used = new1 // it was so before
			if err := p.configure(t); err != nil {
				t.Fatal(err)
			}
			if other != "" {
				p.mu.Lock()
				p.sick = map[string]string{"pump": "is missing", other: "is missing"}
				p.mu.Unlock()
			}
			if s, err := p.confirm(false); err != nil || s.State != want {
				t.Errorf("with %q: %+v, %v", other, s, err)
			}
		})
	}
}

// TestCrash: whenever the process dies, however often, and whatever the disk does, the file has in the end one of both
// texts, the new one only if an owner confirmed it; and an owner who was told that it is kept finds it so.
func TestCrash(t *testing.T) {
	folder := t.TempDir()
	var crashes, kept int
	rapid.Check(t, func(r *rapid.T) {
		restart, confirm := rapid.Bool().Draw(r, "restart"), rapid.Bool().Draw(r, "confirm")
		sick := rapid.Bool().Draw(r, "sick")
		at := rapid.SliceOfN(rapid.IntRange(1, 8), 1, 4).Draw(r, "crashes")
		after := rapid.Bool().Draw(r, "after")
		down := rapid.IntRange(0, 500).Draw(r, "seconds down")
		confirmAt := rapid.IntRange(0, length+5).Draw(r, "confirmed at")
		var failed string
		synctest.Test(t, func(t *testing.T) {
			d := newDisk(t, folder)
			d.crash, d.after = at[0], after
			var problems map[string]string
			if sick {
				problems = map[string]string{"pump": "does not follow"}
			}
			p := start(t, d, restart, problems, nil)
			begun := p.configure(t) == nil
			told, asked := false, false
			for life := 0; ; life++ {
				if confirm && life < 3 {
					select {
					case <-p.ctx.Done():
					case <-time.After(time.Duration(confirmAt) * time.Second):
						s, err := p.confirm(false)
						asked = true
						told = told || err == nil && s.State == rollback.Kept
					}
				}
				select {
				case <-p.ctx.Done(): // a crash, or the restart that was asked for
				case <-time.After(3 * length * time.Second):
				}
				if p.ctx.Err() == nil {
					break
				}
				crashes++
				<-p.ended
				time.Sleep(time.Duration(down) * time.Second)
				d.steps, d.crash = 0, 0
				if life+1 < len(at) {
					d.crash = at[life+1]
				}
				p = start(t, d, restart, problems, nil)
			}
			s := p.status(t)
			text := d.text(t)
			switch {
			case s.State == rollback.Running:
				failed = "the trial never ends"
			case text != old && text != new1:
				failed = "the file has " + text
			case text == new1 && (s.State != rollback.Kept || !asked || sick):
				failed = "the new text stays without a confirmation: " + string(s.State)
			case told && text != new1:
				failed = "what was kept is lost"
			case s.State == rollback.Kept && text != new1:
				failed = "kept, and the file has " + text
			case p.used != text:
				failed = p.used + " is in use, and in the file " + text
			case begun && s.State == "":
				failed = "the trial is forgotten"
			}
			if told {
				kept++
			}
			p.kill()
			<-p.ended
		})
		if failed != "" {
			r.Fatal(failed)
		}
	})
	if crashes < 20 || kept == 0 {
		t.Errorf("%d crashes, %d kept", crashes, kept)
	}
}

// TestDamagedRecord: a record that cannot be read keeps no site from starting.
func TestDamagedRecord(t *testing.T) {
	d := newDisk(t, t.TempDir())
	d.record = []byte(`{"state":"running","file`)
	p := start(t, d, false, nil, nil)
	defer func() { p.kill(); <-p.ended }()
	if p.m.Running() || d.text(t) != old || slices.ContainsFunc(p.notes, func(s string) bool { return s != "" }) {
		t.Error(p.notes)
	}
}

// TestOneStart: a change that needs a restart is tried by one start of the site; the next one has the text before.
func TestOneStart(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, folder)
		p := start(t, d, true, nil, nil)
		if err := p.configure(t); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{new1, old} {
			<-p.ended
			if p = start(t, d, true, nil, nil); p.used != want {
				t.Errorf("%s is in use, want %s", p.used, want)
			}
			p.kill() // as a configuration does that crashes the site
		}
		<-p.ended
	})
}
