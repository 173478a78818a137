package expr

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"agentsite/device"
)

// plan are the points of the tests.
var plan = map[string]Point{
	"climate/temperature":     {Kind: device.KindMeasurement, Unit: "Cel"},
	"far/climate/temperature": {Kind: device.KindMeasurement, Unit: "Cel"},
	"bed-2/soil":              {Kind: device.KindMeasurement, Unit: "%"},
	"lamp/level":              {Kind: device.KindLevel, Unit: "%"},
	"meter/total":             {Kind: device.KindMeasurement},
	"tank/depth":              {Kind: device.KindMeasurement, Unit: "m"},
	"door/open":               {Kind: device.KindState},
	"door/position":           {Kind: device.KindState, Values: []string{"open", "closed", "off", "half open"}},
	"lamp/on":                 {Kind: device.KindSwitch},
	"button/press":            {Kind: device.KindEvent},
	"screen/line":             {Kind: device.KindText},
	"later/point":             {},
}

func lookup(address string) (Point, bool) {
	p, ok := plan[address]
	return p, ok
}

func planNames() (names []string) {
	for name := range plan {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// compile compiles a condition by itself.
func compile(text string, lookup func(string) (Point, bool)) (*Program, error) {
	return new(Uses).Compile(text, lookup, planNames)
}

func mustCompile(t testing.TB, text string) *Program {
	t.Helper()
	p, err := compile(text, lookup)
	if err != nil {
		t.Fatalf("%s:\n%v", text, err)
	}
	return p
}

// sample is a reading; age < 0: never read.
type sample struct {
	value device.Value
	age   time.Duration
	known bool
}

// world is what a site knows at an instant, by names; passed is how long that has been so.
type world struct {
	samples map[string]sample
	windows map[string]float64 // "mean climate/temperature 10m0s"; missing: unknown
	t       time.Time          // zero: not known
	noSun   bool
	passed  time.Duration
}

func (w *world) sample(address string) sample {
	s, ok := w.samples[address]
	if !ok {
		return sample{age: -1}
	}
	if s.age >= 0 {
		s.age += w.passed
	}
	return s
}

func (w *world) clock() (time.Time, bool) { return w.t.Add(w.passed), !w.t.IsZero() }

// sun returns times that differ from day to day.
func (w *world) sun() (rise, set time.Time, known bool) {
	t, known := w.clock()
	y, m, d := t.Date()
	rise = time.Date(y, m, d, 5, d, 7, d, t.Location())
	return rise, time.Date(y, m, d, 19, 2*d, 11, 0, t.Location()), known && !w.noSun
}

func windowKey(f string, address string, length time.Duration) string {
	return fmt.Sprint(f, " ", address, " ", length)
}

// env is a world for one program.
type env struct {
	*world
	points  []string
	windows []Window
}

func (w *world) of(p *Program) *env { return &env{w, p.Points(), p.Windows()} }

func (e *env) Reading(i int) (device.Value, time.Duration, bool) {
	s := e.sample(e.points[i])
	return s.value, s.age, s.known
}

func (e *env) Window(i int) (float64, bool) {
	w := e.windows[i]
	n, ok := e.world.windows[windowKey(w.Func.String(), e.points[w.Point], w.Length)]
	return n, ok
}

func (e *env) Clock() (time.Time, bool)          { return e.clock() }
func (e *env) Sun() (time.Time, time.Time, bool) { return e.sun() }

func zone(name string) *time.Location {
	l, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return l
}

// zones have changes of 1 h, of 1 h at midnight, of 30 min, and none.
var zones = []*time.Location{zone("Europe/Berlin"), zone("America/Havana"), zone("Australia/Lord_Howe"), time.UTC, zone("Asia/Kathmandu")}

// randomWorld is often near a change of the zone's offset.
func randomWorld(r *rand.Rand) *world {
	w := &world{samples: map[string]sample{}, windows: map[string]float64{}, noSun: r.IntN(6) == 0}
	if r.IntN(8) > 0 {
		at := time.Date(2026, 1, 1, 0, 0, r.IntN(365*86400), 0, zones[r.IntN(len(zones))])
		if _, change := at.ZoneBounds(); !change.IsZero() && r.IntN(2) == 0 {
			at = change.Add(time.Duration(r.IntN(12*3600)-6*3600) * time.Second)
		}
		w.t = at.Truncate([]time.Duration{1, time.Second, time.Minute, time.Hour}[r.IntN(4)])
		if r.IntN(3) == 0 {
			w.t = w.t.Add(time.Duration(r.IntN(1e9)))
		}
	}
	for name, p := range plan {
		if r.IntN(8) == 0 {
			continue
		}
		s := sample{age: time.Duration(r.IntN(900)) * time.Second, known: r.IntN(6) > 0}
		switch {
		case p.Kind == device.KindMeasurement || p.Kind == device.KindLevel:
			s.value = device.Number(randomNumber(r))
		case p.Kind == device.KindState && p.Values != nil:
			s.value = device.Text(p.Values[r.IntN(len(p.Values))])
		case p.Kind == device.KindText:
			s.value = device.Text("hello")
		default:
			s.value = device.Bool(r.IntN(2) == 0)
		}
		if r.IntN(20) == 0 {
			s.value = []device.Value{{}, device.Text("open"), device.Number(1), device.Bool(true)}[r.IntN(4)]
		}
		w.samples[name] = s
		for _, f := range windowNames {
			for _, l := range windowLengths {
				if r.IntN(8) > 0 {
					w.windows[windowKey(f, name, l)] = randomNumber(r)
				}
			}
		}
	}
	return w
}

var windowLengths = []time.Duration{10 * time.Minute, 90 * time.Second, 24 * time.Hour}
