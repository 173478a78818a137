package site

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the examples are in Berlin, whatever the machine has

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/device/fake"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/node/devices"
)

const examplesFolder = "../../../docs/examples"

// row is a line of a day.csv, whose form the test of rules try checks.
type row struct {
	at    time.Duration // since the beginning of the day
	point string
	value string // "" for a point that cannot be read
}

// example is a configuration of docs/examples with its day.
type example struct {
	name string
	cfg  *config.Site // its devices are fakes
	day  time.Time
	rows []row
}

func readExamples(t *testing.T, berlin *time.Location) (all []example) {
	files, err := filepath.Glob(examplesFolder + "/*/agentsite.yaml")
	if err != nil || len(files) != 12 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		cfg, _, _, err := config.LoadFile(file, fake.Drivers(AllDrivers()))
		if err != nil {
			t.Fatal(err)
		}
		e := example{name: filepath.Base(filepath.Dir(file)), cfg: cfg}
		f, err := os.Open(filepath.Join(filepath.Dir(file), "day.csv"))
		if err != nil {
			t.Fatal(err)
		}
		r := csv.NewReader(f)
		r.Comment = '#'
		records, err := r.ReadAll()
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records[1:] {
			at, err := time.ParseInLocation("2006-01-02 15:04:05", rec[0], berlin)
			if err != nil {
				at, err = time.ParseInLocation("2006-01-02 15:04", rec[0], berlin)
			}
			if err != nil {
				t.Fatal(err)
			}
			if e.rows == nil {
				e.day = at
			}
			e.rows = append(e.rows, row{at.Sub(e.day), rec[1], rec[2]})
		}
		all = append(all, e)
	}
	return all
}

// applyOnly is an output that is not read back, which would take most of the time of a day.
type applyOnly struct{ device.Actuator }

// display notes which rule a text is of.
type display struct {
	*fake.Device
	s *exampleSite
}

func (d display) Show(ctx context.Context, point, text string) error {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	d.s.acted[d.s.texts[text]] = true
	return d.Device.Show(ctx, point, text)
}

// exampleSite is an example that runs: the real hub, node, rules and guard, over fakes.
type exampleSite struct {
	t       *testing.T
	fakes   map[string]*fake.Device
	points  map[string]config.Points
	guard   *guard.Guard
	policy  map[string]guard.Policy
	sensors []string
	reads   map[string]bool // outputs that depend on a reading, by a rule or by requires
	began   time.Time
	end     func()

	mu      sync.Mutex
	changes []outputChange
	acted   map[string]bool   // by principal: it moved or showed something
	texts   map[string]string // which principal shows a text
}

// outputChange is a new value of an output.
type outputChange struct {
	at     time.Duration
	output string
	value  device.Value
}

// The site is the journal of its node, and the recorder of its hub.
func (s *exampleSite) Replay(node.Asked) (*node.Outcome, error) { return nil, nil }
func (s *exampleSite) Begin(a node.Asked) (func(node.Outcome), *node.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acted[a.Who] = true
	return func(node.Outcome) {}, nil, nil
}
func (s *exampleSite) Add(node.Asked, node.Outcome)          {}
func (s *exampleSite) Deny(string, string, device.FaultKind) {}
func (s *exampleSite) Recent(string) []node.Recorded         { return nil }
func (s *exampleSite) Record(device.Reading)                 {}

// Watch emits the outputs' values as the guard's process does, and keeps them.
func (s *exampleSite) Watch(ctx context.Context, emit func(device.Reading)) error {
	told := make(map[string]device.Value)
	for {
		changed := s.guard.Changed()
		for _, o := range s.guard.Status() {
			if before, seen := told[o.Output]; seen && before == o.Value {
				continue
			}
			told[o.Output] = o.Value
			s.mu.Lock()
			s.changes = append(s.changes, outputChange{time.Since(s.began), o.Output, o.Value})
			s.mu.Unlock()
			emit(o.Reading())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// startExample runs an example from a time of its day on.
func startExample(t *testing.T, e example, from time.Duration) *exampleSite {
	s := &exampleSite{
		t: t, began: time.Now().Add(-from), fakes: make(map[string]*fake.Device), points: make(map[string]config.Points),
		policy: make(map[string]guard.Policy), reads: make(map[string]bool), acted: make(map[string]bool),
		texts: make(map[string]string),
	}
	plan, err := devices.NewPlan(e.cfg)
	if err != nil {
		t.Fatal(err)
	}
	var actuated []guard.Actuated
	var sources []node.Source
	var published []node.Device
	for _, d := range e.cfg.Devices {
		opened, err := d.Config.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		of := opened.(*fake.Device)
		points, err := d.Points(of.Describe())
		if err != nil {
			t.Fatal(err)
		}
		s.fakes[d.Name], s.points[d.Name] = of, points
		published = append(published, node.Device{
			Name: d.Name, Device: display{of, s}, Busy: device.NewMutex(), Description: points.Description,
		})
		if len(points.Outputs) == 0 {
			source := node.Source{
				Name: d.Name, Device: of, Every: d.Every, Period: d.Period(),
				Convert: make(map[string]func(float64) float64),
			}
			for _, m := range points.Measurements {
				source.Convert[m.Point.Name] = m.Convert
			}
			sources, s.sensors = append(sources, source), append(s.sensors, d.Name)
			continue
		}
		others := func(p guard.Policy) bool { return !strings.HasPrefix(p.Output, d.Name+"/") }
		limits := slices.DeleteFunc(plan.Policies(), others)
		for _, p := range limits {
			s.policy[p.Output], s.reads[p.Output] = p, p.Requires.Point != ""
		}
		actuated = append(actuated, guard.Actuated{Actuator: applyOnly{of}, Policies: limits})
	}
	latch := guard.Latch{File: filepath.Join(t.TempDir(), "armed")}
	if err := latch.Arm(); err != nil {
		t.Fatal(err)
	}
	if s.guard, err = guard.New(actuated, latch); err != nil {
		t.Fatal(err)
	}
	s.push(e.rows, -1, from) // the first readings
	hub := node.NewHub(s.guard, s, agents.PointURI)
	n := node.New(node.Parts{Hub: hub, Journal: s})
	if err := n.Replace(node.Site{Name: e.cfg.Name, Outputs: s.guard, Devices: published}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.guard.Run(ctx) })
	running.Go(func() { hub.Sample(ctx, sources, s) })
	synctest.Wait()
	rules := s.startRules(ctx, e, n, &running)
	s.end = func() {
		cancel()
		for _, r := range rules {
			r.End()
		}
		running.Wait()
	}
	return s
}

// startRules runs the rules of an example by the clock of its day.
func (s *exampleSite) startRules(
	ctx context.Context, e example, n *node.Node, running *sync.WaitGroup,
) (all []*rule.Rule) {
	w := rule.World{
		Now:   func() (time.Time, bool) { return e.day.Add(time.Since(s.began)), true },
		Place: e.cfg.Place, Holidays: e.cfg.Holidays, Untested: true,
	}
	w.Points, w.Open = e.cfg.Described()
	kind, ranks := rule.Kind(w), make(map[string]node.Hosted)
	for _, a := range e.cfg.Agents {
		r := kind.New().(*rule.Rule)
		if err := a.Decode(r); err != nil {
			s.t.Fatal(err)
		}
		used, err := r.Define()
		if err != nil {
			s.t.Fatal(err)
		}
		for _, c := range used.Calls {
			if c.Ask.Op == agents.OpMove && r.When != "" && len(used.Reads) > 0 {
				s.reads[c.Ask.Points[0]] = true
			}
		}
		self := principal.Agent(rule.KindName, a.Name)
		for _, step := range r.Do {
			for _, text := range step.Show {
				s.texts[text] = self.ID
			}
		}
		ranks[self.ID] = node.Hosted{Rank: used.Rank}
		running.Add(1)
		r.Begin(ctx, self, n, func(err error) {
			if ctx.Err() == nil {
				s.t.Errorf("%s ended: %v", a.Name, err)
			}
			running.Done()
		})
		all = append(all, r)
	}
	n.ReplaceAgents(ranks)
	return all
}

// push has the fakes read what the rows after one time and up to another say.
func (s *exampleSite) push(rows []row, after, to time.Duration) {
	for _, r := range rows {
		if r.at <= after || r.at > to {
			continue
		}
		name, point, _ := device.SplitAddress(r.point)
		points := s.points[name]
		p, _ := points.Description.Point(point)
		if p.Kind == device.KindEvent && r.at < to { // of before the start
			continue
		}
		v := device.Text(r.value)
		switch n, err := strconv.ParseFloat(r.value, 64); {
		case r.value == "":
			if err := s.fakes[name].Fault(point, "recorded so"); err != nil {
				s.t.Error(err)
			}
			continue
		case p.Kind == device.KindMeasurement && err == nil:
			for _, m := range points.Measurements {
				if m.Point.Name == point {
					n = m.Raw(n)
				}
			}
			v = device.Number(n)
		case p.Kind == device.KindState && len(p.Values) == 0:
			v = device.Bool(r.value == "on")
		}
		if err := s.fakes[name].Push(point, v); err != nil {
			s.t.Errorf("%s: %v", r.point, err)
		}
	}
}

// pass lets the day go on to a time.
func (s *exampleSite) pass(rows []row, to time.Duration) {
	for {
		now := time.Since(s.began)
		next := to
		for _, r := range rows {
			if r.at > now && r.at < next {
				next = r.at
			}
		}
		time.Sleep(next - now)
		s.push(rows, now, next)
		if next == to {
			synctest.Wait()
			return
		}
	}
}

// away returns the outputs that are not at their safe values.
func (s *exampleSite) away(which func(output string) bool) (all []string) {
	for _, o := range s.guard.Status() {
		name, point, _ := device.SplitAddress(o.Output)
		if safe := s.policy[o.Output].Safe; which(o.Output) && (o.Value != safe || s.fakes[name].Value(point) != safe) {
			all = append(all, fmt.Sprintf("%s at %v", o.Output, o.Value))
		}
	}
	return all
}

// passToMove lets the day go on until an output has left safe, which another run saw at first: a reading in the
// same moment may be taken a period later.
func (s *exampleSite) passToMove(e example, first time.Duration, which func(output string) bool) {
	for s.pass(e.rows, first); first > 0 && s.away(which) == nil; s.pass(e.rows, time.Since(s.began)+time.Second) {
		if time.Since(s.began) > first+2*time.Minute {
			s.t.Fatalf("at %v no output is away from safe", first)
		}
	}
}

// checkLimits: no output was away from safe for longer than its max_on.
func (s *exampleSite) checkLimits() {
	since := make(map[string]time.Duration)
	for _, c := range append(slices.Clone(s.changes), outputChange{at: time.Since(s.began)}) {
		for output, from := range since {
			if most := s.policy[output].MaxOn; most > 0 && c.at-from-time.Second > most {
				s.t.Errorf("%s was away from safe from %v to %v, and max_on is %v", output, from, c.at, most)
			}
		}
		if _, is := since[c.output]; c.output != "" && c.value == s.policy[c.output].Safe {
			delete(since, c.output)
		} else if c.output != "" && !is {
			since[c.output] = c.at
		}
	}
}

// idleRules are the rules that have nothing to do on their day.
var idleRules = map[string]bool{"thermostat/frost": true}

func every(string) bool { return true }

// TestExamples runs each configuration of docs/examples for its day on fakes, with the real hub, rules and
// guard: no output is away from safe for too long, all are safe at the end, and each rule acted. When all
// sensors are dead for an hour, what depends on them is safe; after a stop everything is, until the reset.
func TestExamples(t *testing.T) {
	t.Setenv("TZ", "UTC") // or rules read the machine's zone, and not time.Local
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	local := time.Local
	time.Local = berlin
	defer func() { time.Local = local }()
	const day = 24 * time.Hour
	for _, e := range readExamples(t, berlin) {
		t.Run(e.name, func(t *testing.T) {
			var first time.Duration // when an output that depends on a reading leaves safe
			synctest.Test(t, func(t *testing.T) {
				s := startExample(t, e, 0)
				defer s.end()
				s.pass(e.rows, day)
				s.checkLimits()
				if away := s.away(every); away != nil {
					t.Errorf("at the end of the day: %v", away)
				}
				for _, c := range s.changes {
					if first == 0 && c.at > time.Minute && s.reads[c.output] && c.value != s.policy[c.output].Safe {
						first = c.at
					}
				}
				for _, a := range e.cfg.Agents {
					name := principal.Agent(rule.KindName, a.Name).ID
					if idle := idleRules[e.name+"/"+a.Name]; s.acted[name] == idle {
						t.Errorf("%s acted: %v", name, !idle)
					}
				}
			})
			if first == 0 && e.name != "kiosk" { // which acts by events alone
				t.Fatal("no output depends on a reading")
			}
			synctest.Test(t, func(t *testing.T) { deadSensors(t, e, first) })
			synctest.Test(t, func(t *testing.T) { stopAndReset(t, e, first) })
		})
	}
}

// deadSensors has no sensor answer for an hour, soon after an output that depends on one has left safe.
func deadSensors(t *testing.T, e example, first time.Duration) {
	s := startExample(t, e, max(0, first-40*time.Minute))
	defer s.end()
	depends := func(output string) bool { return s.reads[output] }
	s.passToMove(e, first, depends)
	for _, name := range s.sensors {
		s.fakes[name].Lose()
	}
	s.pass(e.rows, time.Since(s.began)+5*time.Minute)
	for range 55 {
		if away := s.away(depends); away != nil {
			t.Errorf("at %v, without a reading since %v: %v", time.Since(s.began), first, away)
			return
		}
		s.pass(nil, time.Since(s.began)+time.Minute)
	}
}

// stopAndReset stops everything while an output is away from safe, and resets that three hours later.
func stopAndReset(t *testing.T, e example, first time.Duration) {
	s := startExample(t, e, max(0, first-40*time.Minute))
	defer s.end()
	s.passToMove(e, first, func(output string) bool { return s.reads[output] })
	if err := s.guard.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 60 {
		s.pass(e.rows, time.Since(s.began)+3*time.Minute)
		if away := s.away(every); away != nil || !s.guard.Stopped() {
			t.Fatalf("at %v, after a stop: %v", time.Since(s.began), away)
		}
	}
	_, _, stops := s.guard.State()
	if err := s.guard.Reset(stops); err != nil || s.guard.Stopped() {
		t.Errorf("the stop is not reset: %v", err)
	}
}
