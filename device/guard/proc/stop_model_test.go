package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

// world is a site, its guards and its disk, in which everything happens step by step.
type world struct {
	t      *testing.T
	box    *box
	button *mushroom
	policy guard.Policy
	latch  guard.Latch
	dir    string

	mu     sync.Mutex
	guards []*stepped
	free   bool // guards start without being let

	keeper *Keeper
	alive  *bool // of the site that has the keeper
	end    context.CancelFunc
	ended  chan struct{}

	asked, reset bool
	leave        context.CancelFunc
	answer       chan error
	must         bool // the stop must hold
}

// stepped is a guard's process that waits for a signal at each step of its start: before it reads
// the latch, before it serves, before its hello and before its first state. The connection is
// buffered, as sockets are.
type stepped struct {
	step           chan struct{}
	freeze, killed chan struct{}
	freezing, kill func()
	toGuard        chan []byte
	toSite         chan []byte
}

func newStepped() *stepped {
	s := &stepped{step: make(chan struct{}, 4), freeze: make(chan struct{}), killed: make(chan struct{}), toGuard: make(chan []byte, 1000), toSite: make(chan []byte, 1000)}
	s.freezing, s.kill = sync.OnceFunc(func() { close(s.freeze) }), sync.OnceFunc(func() { close(s.killed) })
	return s
}

// wait is a step of the start.
func (s *stepped) wait() bool {
	select {
	case <-s.freeze:
		<-s.killed
	case <-s.killed:
	case <-s.step:
		return true
	}
	return false
}

// wireEnd is one end of the connection.
type wireEnd struct {
	in   <-chan []byte
	out  chan<- []byte
	gone chan struct{} // closed when either end is
	shut func()
	rest []byte
}

func (e *wireEnd) Write(b []byte) (int, error) {
	select {
	case <-e.gone:
		return 0, io.ErrClosedPipe
	case e.out <- bytes.Clone(b):
		return len(b), nil
	}
}

func (e *wireEnd) Read(b []byte) (int, error) {
	if len(e.rest) == 0 {
		select {
		case <-e.gone:
			return 0, io.EOF
		case e.rest = <-e.in:
		}
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *wireEnd) Close() error { e.shut(); return nil }

// connect joins the site's end to the guard's, which is slow to begin and may freeze.
func (s *stepped) connect() (ours, its *wireEnd) {
	gone := make(chan struct{})
	shut := sync.OnceFunc(func() { close(gone) })
	fromSite, fromGuard := make(chan []byte, 1000), make(chan []byte, 1000)
	carry := func(from <-chan []byte, to chan<- []byte, held int) {
		for {
			var b []byte
			select {
			case <-gone:
				return
			case b = <-from:
			}
			if held--; held >= 0 && !s.wait() {
				return
			}
			select {
			case <-s.freeze:
				return
			default:
				to <- b
			}
		}
	}
	go carry(fromSite, s.toGuard, 0)
	go carry(fromGuard, s.toSite, 2)
	return &wireEnd{in: s.toSite, out: fromSite, gone: gone, shut: shut}, &wireEnd{in: s.toGuard, out: fromGuard, gone: gone, shut: shut}
}

// quickDir is a folder in memory where there is one: a stop waits for its disk.
func quickDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "stop")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, box: &box{}, button: &mushroom{deaf: true, changed: make(chan struct{})}, dir: quickDir(t), answer: make(chan error, 1)}
	if err := errors.Join(os.Mkdir(filepath.Join(w.dir, "data"), 0o700), os.Mkdir(filepath.Join(w.dir, "run"), 0o700)); err != nil {
		t.Fatal(err)
	}
	w.latch = guard.Latch{File: filepath.Join(w.dir, "data", "armed"), Flag: filepath.Join(w.dir, "run", "stopped")}
	if err := w.latch.Arm(); err != nil {
		t.Fatal(err)
	}
	w.policy = guard.NewPolicy("box", w.box.Describe().Points[0])
	w.policy.MinOff, w.policy.Rest = 0, 0
	return w
}

// site starts a site.
func (w *world) site() {
	alive := true
	w.alive = &alive
	w.keeper = NewKeeper([]guard.Policy{w.policy}, w.latch, func() (Process, error) { return w.spawn(&alive) })
	ctx, cancel := context.WithCancel(context.Background())
	w.end, w.ended = cancel, make(chan struct{})
	go func(k *Keeper, ended chan struct{}) { k.Run(ctx); close(ended) }(w.keeper, w.ended)
	synctest.Wait()
}

func (w *world) spawn(alive *bool) (Process, error) {
	if !*alive {
		return Process{}, errors.New("the site is dead")
	}
	s := newStepped()
	ours, its := s.connect()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.guards = append(w.guards, s)
	if w.free {
		for range cap(s.step) {
			s.step <- struct{}{}
		}
	}
	ended := make(chan error, 1)
	go func() {
		defer its.Close()
		if !s.wait() {
			ended <- errors.New("killed")
			return
		}
		g, err := guard.New([]guard.Actuated{{Actuator: w.box, Policies: []guard.Policy{w.policy}}}, w.latch)
		if err != nil {
			ended <- err
			return
		}
		driving, stop := context.WithCancel(context.Background())
		driven := make(chan error, 1)
		go func() { driven <- g.Run(driving) }()
		if s.wait() {
			ctx, cancel := context.WithCancel(context.Background())
			go func() { <-s.killed; cancel() }()
			follow := func(ctx context.Context, _ []byte) (map[string]device.Device, error) {
				return map[string]device.Device{}, g.Change(ctx, []guard.Actuated{{Actuator: w.box, Policies: []guard.Policy{w.policy}}})
			}
			err = Serve(ctx, its, g, Equipment{Follow: follow, Buttons: []Button{{Device: w.button, Name: "button/pressed", Point: "pressed"}}})
		}
		stop()
		ended <- errors.Join(err, <-driven)
	}()
	return Process{Conn: ours, Kill: s.kill, Wait: func() error { defer s.kill(); return <-ended }}, nil
}

// guard is the process that was started last.
func (w *world) guard() *stepped {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.guards[len(w.guards)-1]
}

// steps returns the possible events, each with a few steps of its own.
func (w *world) steps() map[string][]func() {
	let := func() {
		select {
		case w.guard().step <- struct{}{}:
		default:
		}
	}
	start := []func(){let, let, let, let}
	kill := func() { w.guard().kill() }
	press := func(on bool) func() {
		return func() {
			w.button.mu.Lock()
			w.button.pressed = on
			w.button.mu.Unlock()
		}
	}
	return map[string][]func(){
		"stop": {
			func() {
				w.asked, w.must = true, true
				ctx, cancel := context.WithCancel(context.Background())
				w.leave = cancel
				k, alive, answer := w.keeper, w.alive, w.answer
				go func() {
					err := k.Stop(ctx)
					if *alive {
						answer <- err
					}
				}()
			},
			func() { w.leave() },
		},
		"starting": start,
		"killed":   append([]func(){kill, func() { time.Sleep(restartFirst) }}, start...),
		"frozen":   append([]func(){func() { w.guard().freezing() }, func() { time.Sleep(4 * time.Second) }}, start...),
		"replaced": append([]func(){func() {
			k := w.keeper
			go k.Replace(context.Background(), []guard.Policy{w.policy}, func() error { return nil })
		}}, start...),
		"changed": append([]func(){func() {
			k, text := w.keeper, []byte("a plan")
			go k.Change(context.Background(), Change{[]guard.Policy{w.policy}, text, text, text, func() error { return nil }})
		}}, start...),
		"site killed": append([]func(){func() {
			if w.asked && len(w.answer) == 0 {
				w.must = false // nobody was told that it is stopped
			}
			*w.alive = false
			w.keeper.latch = guard.Latch{File: filepath.Join(w.dir, "nowhere", "armed")}
			w.end()
			w.guard().kill()
			<-w.ended
			synctest.Wait()
			w.site()
		}}, start...),
		"button":       {press(true), press(false)},
		"disk fails":   {func() { os.Rename(filepath.Join(w.dir, "data"), filepath.Join(w.dir, "away")) }, func() { os.Rename(filepath.Join(w.dir, "away"), filepath.Join(w.dir, "data")) }},
		"killed again": {kill},
		"reset": {func() {
			w.must, w.reset = w.must && !w.asked, w.asked
			k := w.keeper
			go k.Reset(context.Background())
		}},
	}
}

func (w *world) move() error {
	_, err := w.keeper.Move(context.Background(), "ann", relayName, device.Bool(true), time.Minute)
	return err
}

// verdict lets everything come to rest, and fails unless the stop that must hold holds,
// for this site and for the next.
func (w *world) verdict() error {
	os.Rename(filepath.Join(w.dir, "away"), filepath.Join(w.dir, "data"))
	w.button.mu.Lock()
	w.button.pressed = false
	w.button.mu.Unlock()
	w.mu.Lock()
	w.free = true
	for _, s := range w.guards {
		for len(s.step) < cap(s.step) {
			s.step <- struct{}{}
		}
	}
	w.mu.Unlock()
	time.Sleep(30 * time.Second)
	synctest.Wait()
	if w.leave != nil {
		defer w.leave()
	}
	answered := len(w.answer) > 0 && <-w.answer == nil
	var all []string
	for _, when := range []string{"", " in the next site"} {
		if w.must || answered && !w.reset {
			err := w.move()
			if err != nil && device.AsFault(err).Kind != device.Unsafe { // it found the guard frozen
				time.Sleep(10 * time.Second)
				err = w.move()
			}
			switch {
			case !w.keeper.Stopped():
				all = append(all, "it is not stopped"+when)
			case err == nil || device.AsFault(err).Kind != device.Unsafe:
				all = append(all, fmt.Sprintf("a move says %v%s", err, when))
			}
			if w.box.isOn() {
				all = append(all, "the relay is on"+when)
			}
			if w.latch.Armed() {
				all = append(all, "the disk is armed"+when)
			}
		}
		w.end()
		<-w.ended
		if when == "" {
			w.site()
			time.Sleep(time.Second)
		}
	}
	synctest.Wait()
	if all != nil {
		return errors.New(strings.Join(all, ", "))
	}
	return nil
}

// TestNoStopIsLost runs all orders of the steps of a stop and of concurrent events. After an
// acknowledged stop, or while the site lives, the machine, the disk and every later guard are
// stopped.
func TestNoStopIsLost(t *testing.T) {
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	runs, lost := 0, map[string]int{}
	var examples []string
	for _, first := range []string{"starting", "killed", "frozen", "replaced", "changed", "site killed"} {
		for _, second := range []string{"", "button", "disk fails", "killed again", "reset"} {
			lengths := func() (all []int) {
				w := &world{}
				for _, name := range []string{"stop", first, second} {
					all = append(all, len(w.steps()[name]))
				}
				return all
			}()
			orders(lengths, func(order []int) {
				runs++
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					all := w.steps()
					scripts := [][]func(){all["stop"], all[first], all[second]}
					w.free = first != "starting"
					w.site()
					w.free = false
					for _, who := range order {
						scripts[who][0]()
						scripts[who] = scripts[who][1:]
						synctest.Wait()
					}
					if err := w.verdict(); err != nil {
						what := first + ", " + second
						if lost[what]++; lost[what] == 1 {
							examples = append(examples, fmt.Sprintf("%s, in the order %v: %v", what, order, err))
						}
					}
				})
			})
		}
	}
	t.Logf("%d orders", runs)
	if examples != nil {
		t.Errorf("stops were lost so many times: %v; the first of each: %s", lost, strings.Join(examples, "\n"))
	}
}

// orders calls try with every order of the steps of several scripts, each of which keeps
// its own.
func orders(lengths []int, try func(order []int)) {
	var next func(left, order []int)
	next = func(left, order []int) {
		done := true
		for i, n := range left {
			if n > 0 {
				done = false
				rest := slices.Clone(left)
				rest[i]--
				next(rest, append(slices.Clone(order), i))
			}
		}
		if done {
			try(order)
		}
	}
	next(lengths, nil)
}
