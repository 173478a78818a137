package things

import (
	"context"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// Thing is one device under its name on this site.
type Thing struct {
	Name        string
	Device      device.Device
	Description device.Description // of the device, as its owner wants it
	Missing     string             // why the device is not there; "" while it is
	Confirm     []string           // outputs whose owner wants to be asked before each move
	Turn        device.Turn        // of whoever shows or captures; one for as long as the device is there
}

// Readings is where the latest readings are.
type Readings interface {
	// Latest returns the point's last reading, its quality as of now; ok is false
	// when there has been none.
	Latest(address string) (r device.Reading, ok bool)
}

// History is where past readings are.
type History interface {
	// Summaries returns the steps since from that have readings, oldest first. A
	// step is a minute at least.
	Summaries(address string, from time.Time, step time.Duration) []device.Summary
}

// Outputs is the guard: the only way to move anything.
type Outputs interface {
	Move(ctx context.Context, holder, output string, v device.Value, length time.Duration) (guard.Status, error)
	Try(ctx context.Context, holder, output string, v device.Value, length time.Duration) error
	Release(ctx context.Context, output string) (guard.Status, error)
	Stop(ctx context.Context) error
	Stopped() bool
	Status() []guard.Status
	Policy(output string) (guard.Policy, error)
}

// Site is what the agent offers and what it works with.
type Site struct {
	Name      string
	Version   string
	Simulated bool // everything is simulated: say so
	Started   time.Time
	Things    []Thing
	Readings  Readings
	History   History
	Outputs   Outputs
}

// Agent is the site's things as one agent. It is safe for concurrent use.
type Agent struct {
	site   Site
	points []point               // all of them, in the order of the configuration
	byName map[string]point      // by address
	part   func(agents.Ask) bool // what is seen of it; nil for all
	verbs  []verb
	tools  []agents.Tool // of the verbs
}

// point is a device's point with its address and its device.
type point struct {
	device.Point
	Address string
	device  device.Device
	turn    device.Turn
	model   string
	confirm bool
}

var (
	_ agents.Agent     = (*Agent)(nil)
	_ agents.Planner   = (*Agent)(nil)
	_ agents.Viewer    = (*Agent)(nil)
	_ agents.Library   = (*Agent)(nil)
	_ agents.Coach     = (*Agent)(nil)
	_ agents.Completer = (*Agent)(nil)
)

// New makes the agent, with the tools that the wiring makes useful and no others.
func New(site Site) (*Agent, error) { return view(site, nil) }

// View is the agent over what somebody sees: no name of anything else is in its tools,
// its answers or its errors.
func (a *Agent) View(sees func(agents.Ask) bool) (agents.Agent, error) { return view(a.site, sees) }

func view(site Site, part func(agents.Ask) bool) (*Agent, error) {
	a := &Agent{site: site, part: part, byName: make(map[string]point)}
	for _, t := range site.Things {
		for _, p := range t.Description.Points {
			q := point{Point: p, Address: device.Address(t.Name, p.Name), device: t.Device, turn: t.Turn, model: t.Description.Model, confirm: slices.Contains(t.Confirm, p.Name)}
			a.points = append(a.points, q)
			a.byName[q.Address] = q
		}
	}
	for _, make := range []func() (verb, error){
		a.listPoints, a.readPoints, a.readHistory, a.switchOutput, a.setLevel,
		a.releaseOutput, a.emergencyStop, a.showText, a.captureImage, a.siteStatus,
	} {
		v, err := make()
		if err != nil {
			return nil, err
		}
		if v.plan != nil {
			a.verbs = append(a.verbs, v)
			a.tools = append(a.tools, v.tool)
		}
	}
	return a, nil
}

func (a *Agent) Tools() []agents.Tool { return a.tools }

func (a *Agent) Call(ctx context.Context, p agents.Principal, c agents.Call) (agents.Result, error) {
	plan, err := a.Plan(p, c)
	if err != nil {
		return agents.Result{}, err
	}
	return plan.Make(ctx, agents.Limits{})
}

func (a *Agent) Plan(p agents.Principal, c agents.Call) (*agents.Plan, error) {
	i := slices.IndexFunc(a.verbs, func(v verb) bool { return v.tool.Name == c.Tool })
	if i < 0 {
		return nil, agents.ErrNotFound
	}
	plan, err := a.verbs[i].plan(p, c)
	if plan != nil && a.part != nil {
		a.hush(p, plan)
	}
	return plan, err
}

// confirms is who has to approve each move; "" for nobody.
func (p point) confirms() string {
	if p.confirm {
		return "owner"
	}
	return ""
}

// addresses lists the points of the given kinds that a tool may be called with.
func (a *Agent) addresses(tool string, kinds ...device.Kind) []string {
	var list []string
	for _, p := range a.points {
		if slices.Contains(kinds, p.Kind) && a.seen(tool, p.Address) {
			list = append(list, p.Address)
		}
	}
	return list
}

// about is an Ask of what changes nothing. A point that is left out is "".
func about(points ...string) agents.Ask {
	return agents.Ask{Points: named(points...), Effect: agents.Reads}
}

// named leaves out the points that are left out.
func named(points ...string) []string {
	if len(points) == 1 && points[0] == "" {
		return nil
	}
	return points
}

// readable are the kinds that have a latest reading.
var readable = []device.Kind{
	device.KindMeasurement, device.KindState, device.KindSwitch, device.KindLevel, device.KindEvent,
}
