package acts

import (
	"context"
	"maps"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
)

// Import is the request of ImportAct. Without readings it is checked whether they may follow. The
// readings of an hour of UTC belong in one call.
type Import struct {
	Point    string        `json:"point"`
	Readings []PastReading `json:"readings,omitzero"` // in the order of time
	Dry      bool          `json:"dry_run,omitzero"`  // answers what it would do, and does nothing
}

// PastReading is one reading, or several together, in the point's unit.
type PastReading struct {
	Time  time.Time `json:"time"` // of the first
	Min   float64   `json:"min"`
	Mean  float64   `json:"mean"`
	Max   float64   `json:"max"`
	Last  float64   `json:"last"`
	Count int       `json:"count"`
}

// Summary returns the reading as the history takes it.
func (r PastReading) Summary() device.Summary {
	return device.Summary{At: r.Time, Min: r.Min, Mean: r.Mean, Max: r.Max, Last: r.Last, Count: r.Count, Good: r.Count}
}

// imported answers ImportAct.
type imported struct {
	Imported int `json:"imported"` // how many readings; those in hours that the site has are left out
}

// importer returns the method of ImportAct. An import is many calls, of which the journal has one a
// minute for each point.
func (s *Site) importer() op.Method[Import, imported] {
	var mu sync.Mutex
	noted := make(map[string]time.Time)
	fresh := func(who, point string) bool {
		mu.Lock()
		defer mu.Unlock()
		maps.DeleteFunc(noted, func(_ string, at time.Time) bool { return time.Since(at) > time.Minute })
		key := who + " " + point
		_, had := noted[key]
		if !had {
			noted[key] = time.Now()
		}
		return !had
	}
	return func(_ context.Context, who agents.Principal, p Import) (out imported, err error) {
		var readings []device.Summary
		for _, r := range p.Readings {
			readings = append(readings, r.Summary())
		}
		add := func() (err error) {
			out.Imported, err = s.Import(p.Point, readings)
			return err
		}
		switch {
		case p.Dry:
			out.Imported, err = s.WouldImport(p.Point, readings)
		case fresh(who.ID, p.Point):
			err = s.Node.Own(who, "import", p.Point, add)
		default:
			err = add()
		}
		return out, err
	}
}
