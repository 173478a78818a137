package hosting

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/llm"
	"agentsite/agents/remote"
	"agentsite/agents/rule"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/sim"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/history"
	"agentsite/node/hosted"
	"agentsite/node/identity"
	"agentsite/node/tasks"
)

const yearConfig = `site: { name: barn }
devices:
  lamp: { driver: sim, model: relay }
  valve: { driver: sim, model: relay }
agents:
  morning: { kind: rule, may: set lamp, at: "7:00", do: [ { set: { lamp/relay: on }, for: 1m } ] }
  beds:
    kind: routine
    may: set valve
    steps: [ { set: { valve/relay: on }, for: 1m, wait: true }, { wait: 30m }, { set: { valve/relay: on }, for: 1m } ]
`

// yard is the site that the agents of a year move. Its own clock is the true one.
type yard struct {
	agents.Site
	mu    sync.Mutex
	moved map[string][]time.Time // by output
}

func (y *yard) Points(context.Context, agents.Principal, agents.SiteRequest) (agents.PointList, error) {
	return agents.PointList{Points: []agents.Point{{Point: "lamp/relay", Kind: device.KindSwitch, Safe: device.Bool(false)}, {Point: "valve/relay", Kind: device.KindSwitch, Safe: device.Bool(false)}}}, nil
}

func (y *yard) Watch(ctx context.Context, _ agents.Principal, _ agents.WatchRequest, emit func(agents.Update) error) error {
	if err := emit(agents.Update{Readings: []agents.Reading{{Point: "lamp/relay", Value: device.Bool(false), Quality: device.Good, Detail: new(agents.OutputDetail)}}}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (y *yard) Move(_ context.Context, _ agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	if r.Value.IsZero() {
		return agents.Output{Output: r.Output}, nil
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.moved[r.Output] = append(y.moved[r.Output], time.Now())
	return agents.Output{Output: r.Output, Value: r.Value, Left: 60}, nil
}

// all returns the true times at which an output was moved.
func (y *yard) all(output string) []time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.Clone(y.moved[output])
}

// anybody lets everybody ask.
type anybody struct{ tasks.Node }

func (anybody) Ask(
	_ agents.Principal, _ string, _ any, _ agents.Terms, wrong error,
) (end func(any, error), err error) {
	return func(any, error) {}, wrong
}
func (anybody) MayAsk(agents.Principal, string) error      { return nil }
func (anybody) Owner(agents.Principal) error               { return nil }
func (anybody) Account(p agents.Principal) (string, error) { return p.ID, nil }
func (anybody) May(agents.Principal, agents.Ask) error     { return nil }

// reading is a stored reading: its number in its value.
type reading struct {
	at  time.Time // true
	run *yearRun
}

// yearRun is a run of the site. right is set once its clock was: then its readings have their times.
type yearRun struct {
	right bool
	lost  time.Time // when the power was cut; zero otherwise
}

// year is a site whose clocks go wrong, with its data folder.
type year struct {
	*testing.T
	rng *rand.Rand
	dir string
	key identity.Key

	book, meter  []byte
	mu           sync.Mutex    // of the next two and of meter, which a running site uses, too
	machine      time.Duration // how far its clock is ahead of the true one
	synchronised bool

	access  *access.Store
	history *history.History
	tasks   *tasks.Manager
	yard    *yard
	end     func()
	run     *yearRun

	readings []reading
	since    time.Time // since when the clock is right, without a break; zero while it is not
	asked    int
}

// now returns the site's time.
func (y *year) now() time.Time { t, _ := y.access.Now(); return t }

// right reports whether the site's clock is, and knows it.
func (y *year) right() bool {
	t, sure := y.access.Now()
	return sure && time.Until(t).Abs() < 2*time.Second
}

func (y *year) start() {
	cfg, err := config.Parse("a.yaml", []byte(yearConfig), []driver.Driver{sim.Driver()})
	if err != nil {
		y.Fatal(err)
	}
	y.access, err = access.NewStore(access.Options{
		Site: y.key.ID(), Build: yearBegin, Access: y.book, Counts: y.meter,
		SystemClock: y.clock,
		SaveAccess:  func(b []byte) error { y.book = b; return nil }, SaveCounts: y.saveCounts,
	})
	if err != nil {
		y.Fatal(err)
	}
	y.history = history.New(map[string]device.Point{"a/t": {Kind: device.KindMeasurement}})
	y.history.Now = y.access.Now
	if err := y.history.Open(filepath.Join(y.dir, "history"), history.Options{Recorded: y.access.Recorded}); err != nil {
		y.Fatal(err)
	}
	manager := hosted.New(hosted.Options{
		Site: y.yard, Kinds: kinds(worlds{rules: rule.World{Now: y.access.Now, Untested: true}, sites: remote.NewSites(nil), models: new(llm.World)}),
		Permit: y.access.SetHosted, Tell: func(map[string]node.Hosted) {}, Link: func([]agent.Link) {}, Keep: func([]string) error { return nil }, OnChange: func() { y.tasks.Recheck() },
	})
	y.tasks = tasks.New(tasks.Options{Folder: filepath.Join(y.dir, "tasks"), Node: anybody{}, Site: y.yard, Workers: manager.Workers, Now: y.access.Now})
	if err := manager.Apply(cfg); err != nil {
		y.Fatal(err)
	}
	ctx, cancel := context.WithCancel(y.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context){manager.Run, y.tasks.Run, y.access.Run, func(ctx context.Context) { y.history.Run(ctx) }} {
		running.Go(func() { run(ctx) })
	}
	y.end = func() { cancel(); running.Wait() }
	y.run = new(yearRun)
	synctest.Wait()
}

func (y *year) clock() (time.Time, bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return time.Now().Add(y.machine), y.synchronised
}

func (y *year) setClock(ahead time.Duration, synchronised bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.machine, y.synchronised = ahead, synchronised
}

func (y *year) saveCounts(b []byte) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.meter = b
	return nil
}

// stop ends the run: a loss of power takes back what the end of the site writes.
func (y *year) stop(power bool) {
	// That a clock was a few days ahead at the end shows only if the site is not off for as long.
	if ahead := time.Until(y.now()); ahead > 2*time.Second && ahead < 10*24*time.Hour {
		y.run.right = false
	}
	if power {
		y.run.lost = time.Now()
		y.mu.Lock()
		kept, meter := y.dir+".kept", y.meter
		y.mu.Unlock()
		if err := os.CopyFS(kept, os.DirFS(y.dir)); err != nil {
			y.Fatal(err)
		}
		y.end()
		y.meter = meter
		if err := errors.Join(os.RemoveAll(y.dir), os.Rename(kept, y.dir)); err != nil {
			y.Fatal(err)
		}
	} else {
		y.end()
	}
	y.since = time.Time{}
}

// wait lets true time pass, with a reading every few hours.
func (y *year) wait(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(time.Until(end), yearEvery))
		y.history.Record(device.Reading{Point: "a/t", Value: device.Number(float64(len(y.readings))), Quality: device.Good, At: time.Now()})
		y.readings = append(y.readings, reading{time.Now(), y.run})
		if !y.right() {
			y.since = time.Time{}
		} else if y.run.right = true; y.since.IsZero() {
			y.since = time.Now()
		}
	}
}

var yearBegin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of synctest

// yearEvery is how often there is a reading.
var yearEvery = 6 * time.Hour

// upset makes one of the clocks go wrong, or right, or ends the site for a while.
func (y *year) upset() {
	day := 24 * time.Hour
	wrong := time.Duration(1+y.rng.IntN(500)) * day
	switch y.rng.IntN(8) {
	case 0: // the network is there, and right
		y.setClock(0, true)
	case 1: // or gone
		y.setClock(y.machine, false)
	case 2: // or lies
		y.setClock(wrong, true)
		if y.rng.IntN(2) == 0 {
			y.setClock(-wrong, y.synchronised)
		}
	case 3, 4: // the site is off: its machine begins with the time of its image, a right one, or any
		y.stop(y.rng.IntN(2) == 0)
		y.setClock(time.Until(yearBegin), false)
		switch y.rng.IntN(4) {
		case 0:
			y.setClock(wrong, y.synchronised)
		case 1:
			y.setClock(0, true)
		}
		time.Sleep(time.Duration(y.rng.Int64N(int64(2 * day))))
		y.start()
	case 5: // an owner's machine is wrong, which the site bounds
		before := y.now()
		if err := y.access.AdvanceClock(time.Now().Add(wrong)); err != nil {
			y.Fatal(err)
		}
		if ahead := y.now().Sub(before); ahead > 7*day && y.run.right {
			y.Fatalf("an owner's command moved the clock by %v", ahead)
		}
	case 6: // an owner sets it, wrong
		if err := y.access.SetClock(time.Now().Add(wrong), true); err != nil {
			y.Fatal(err)
		}
		y.wait(time.Duration(y.rng.Int64N(int64(2 * time.Hour))))
		if y.rng.IntN(3) == 0 {
			y.stop(y.rng.IntN(2) == 0)
			y.setClock(time.Until(yearBegin), false)
			y.start()
		}
		fallthrough
	case 7: // or right
		if err := y.access.SetClock(time.Now(), true); err != nil {
			y.Fatal(err)
		}
	}
}

// checkPast compares what the history answers with what was recorded.
func (y *year) checkPast() {
	y.Helper()
	now := y.now()
	recent := 0
	for _, r := range y.readings {
		if r.run == y.run && time.Since(r.at) < 12*time.Hour-time.Minute {
			recent++
		}
	}
	all, err := y.history.Query(history.Query{Address: "a/t", From: now.Add(-12 * time.Hour), To: now.Add(time.Second), Step: time.Hour})
	if err != nil {
		y.Fatal(err)
	}
	for _, s := range all {
		recent -= s.Good
	}
	if recent > 0 {
		y.Fatalf("%v, by its clock %v: %d readings of this run are not there", time.Now(), now, recent)
	}
	if !y.run.right || !y.right() {
		return
	}
	at, last := make(map[int]time.Time), time.Time{}
	y.history.Samples("a/t", yearBegin.AddDate(-20, 0, 0), yearBegin.AddDate(20, 0, 0), func(t time.Time, v float64, _ bool) bool {
		if t.After(now.Add(5*time.Second)) || t.Before(last.Add(-5*time.Second)) {
			y.Fatalf("%v: reading %v is at %v, the one before at %v", now, v, t, last)
		}
		at[int(v)], last = t, t
		return true
	})
	for i, r := range y.readings {
		kept := time.Since(r.at) < 6*24*time.Hour
		switch t, ok := at[i]; {
		case ok && r.run.right && t.Sub(r.at).Abs() > 5*time.Second:
			y.Fatalf("%v: reading %d of %v is at %v", now, i, r.at, t)
		case !ok && kept && (r.run.lost.IsZero() || r.run.lost.Sub(r.at) > 2*time.Minute):
			y.Fatalf("%v: reading %d of %v is lost", now, i, r.at)
		}
	}
}

// checkMonths compares how many readings each day had with what the coarser tiers have.
func (y *year) checkMonths() {
	all, err := y.history.Query(history.Query{Address: "a/t", From: yearBegin, To: y.now().Add(time.Hour), Step: 24 * time.Hour})
	if err != nil {
		y.Fatal(err)
	}
	have := make(map[string]int)
	for _, s := range all {
		have[s.At.UTC().Format(time.DateOnly)] = s.Good
	}
	want, wrong := make(map[string]int), make(map[string]bool)
	for _, r := range y.readings {
		day := r.at.UTC().Format(time.DateOnly)
		want[day]++
		// The coarser tiers have the hours of when they were made, and a cut loses a minute.
		wrong[day] = wrong[day] || !r.run.right || !r.run.lost.IsZero()
	}
	for day, n := range want {
		if !wrong[day] && have[day] < n {
			y.Errorf("on %s there were %d readings, and %d are there", day, n, have[day])
		}
	}
}

// checkMorning: of a day on which the clock was right all the time, the rule made one move, at seven.
func (y *year) checkMorning(day time.Time) {
	seven := time.Date(day.Year(), day.Month(), day.Day(), 7, 0, 0, 0, time.Local)
	if y.since.IsZero() || y.since.After(seven.Add(-3*time.Hour)) || time.Now().Before(seven.Add(time.Minute)) {
		return
	}
	var made []time.Time
	for _, at := range y.yard.all("lamp/relay") {
		renews := len(made) > 0 && at.Sub(made[len(made)-1]) < time.Minute
		if at.After(seven.Add(-3*time.Hour)) && at.Before(seven.Add(3*time.Hour)) && !renews {
			made = append(made, at)
		}
	}
	if len(made) != 1 || made[0].Sub(seven).Abs() > 3*time.Second {
		y.Errorf("on %v the rule moved at %v", seven, made)
	}
}

// checkWaits: the second valve of a routine is never opened before its wait is over, and no step is
// made twice.
func (y *year) checkWaits() {
	all := y.yard.all("valve/relay")
	for i := 1; i < len(all); i++ {
		if wait := all[i].Sub(all[i-1]); wait < 30*time.Minute {
			y.Fatalf("the valve is opened %v after the last time, at %v", wait, all[i])
		}
	}
	if len(all) > 2*y.asked {
		y.Fatalf("%d moves of %d tasks", len(all), y.asked)
	}
}

// TestYear is a year of clocks that are not set, ahead, behind, stepped, of a zone with summer time that
// is changed, with restarts and losses of power between: the history, the rules and the tasks are
// compared with true time.
func TestYear(t *testing.T) {
	seeds := 1
	if os.Getenv("SOAK") != "" {
		seeds, yearEvery = 40, time.Hour
	}
	t.Setenv("TZ", "UTC") // or rules read the machine's zone, and not time.Local
	local := time.Local
	defer func() { time.Local = local }()
	zones := []string{"Europe/Berlin", "America/Santiago", "Asia/Kathmandu"}
	for seed := range seeds {
		dir := filepath.Join(t.TempDir(), "site")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			y := &year{T: t, rng: rand.New(rand.NewPCG(uint64(seed), 7)), dir: dir, key: identity.New(), synchronised: true, yard: &yard{moved: make(map[string][]time.Time)}}
			zone := func(i int) {
				var err error
				if time.Local, err = time.LoadLocation(zones[i%len(zones)]); err != nil {
					t.Skip(err)
				}
			}
			zone(seed)
			y.start()
			defer func() { y.end() }()
			for day := range 365 {
				today := time.Now().In(time.Local)
				if day%120 == 119 {
					y.stop(false)
					zone(seed + day/120 + 1)
					y.start()
				}
				for range 2 {
					if y.rng.IntN(5) == 0 {
						y.asked++
						if _, err := y.tasks.Ask(t.Context(), agents.Principal{ID: "ann", Owner: true}, task.Request{Agent: "beds", Terms: agents.Terms{Key: new(fmt.Sprint("key ", y.asked))}}); err != nil {
							t.Fatal(err)
						}
						time.Sleep(time.Duration(y.rng.Int64N(int64(40 * time.Minute))))
					}
					if y.rng.IntN(3) == 0 {
						y.upset()
						y.checkPast()
						if n := y.rng.IntN(3); n == 0 { // and back soon
							y.wait(time.Duration(y.rng.Int64N(int64(time.Hour))))
							y.upset()
						}
					}
					y.wait(12 * time.Hour)
				}
				synctest.Wait()
				y.checkPast()
				y.checkMorning(today)
				y.checkWaits()
				if t.Failed() {
					t.Fatalf("seed %d, day %d", seed, day)
				}
			}
			if !y.right() {
				y.access.SetClock(time.Now(), true)
			}
			y.wait(time.Hour)
			y.checkMonths()
			right := len(slices.DeleteFunc(slices.Clone(y.readings), func(r reading) bool { return !r.run.right }))
			t.Logf("seed %d: %d readings, %d of runs whose clock was right; %d tasks, %d moves of them, %d by the rule", seed, len(y.readings), right, y.asked, len(y.yard.all("valve/relay")), len(y.yard.all("lamp/relay")))
		})
	}
}
