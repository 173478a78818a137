package node

import (
	"context"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// Site holds the devices and services that a node's operations use. The zero Site has no devices.
type Site struct {
	Name      string
	Version   string // of the program
	Simulated bool   // everything is simulated
	Started   time.Time
	Now       func() (time.Time, bool) // the site's clock, and whether it is known; nil for the machine's
	Devices   []Device                 // in the order of the configuration
	History   History                  // nil where nothing can be read
	Outputs   Outputs                  // nil where there are no outputs
}

// Device is one device under its name on this site.
type Device struct {
	Name        string
	Device      device.Device
	Description device.Description // of the device, as its owner wants it
	Missing     string             // why the device is not there; "" while it is
	Confirm     []string           // outputs whose owner wants to be asked before each move
	Busy        device.Mutex       // held during a call of Show or Capture; the same while the device is in use
}

// History has past readings.
type History interface {
	// Summaries divides a range of time into about so many steps of one length, and returns
	// those of a measurement that have readings, oldest first.
	Summaries(address string, from, to time.Time, steps int) (all []device.Summary, step time.Duration, err error)
	// Changes calls yield for the changes of any other point in a range of time, oldest first, until
	// it returns false.
	Changes(address string, from, to time.Time, yield func(device.Change) bool)
	// ValueAt returns the change that gave a state or an output its value at a time; false
	// where that is not known.
	ValueAt(address string, at time.Time) (device.Change, bool)
}

// Outputs is the guard: the only way to move anything.
type Outputs interface {
	Move(ctx context.Context, holder, output string, v device.Value, length time.Duration) (guard.Status, error)
	Try(ctx context.Context, holder, output string, v device.Value, length time.Duration) error
	// Renew is Move for the present holder, at the value that it holds or to safe; Expired for
	// anybody else.
	Renew(ctx context.Context, holder, output string, v device.Value, length time.Duration) (guard.Status, error)
	// MoveOver is Move for a holder that outranks from, also while from holds the output.
	MoveOver(ctx context.Context, holder, from, output string, v device.Value, length time.Duration) (guard.Status, error)
	Release(ctx context.Context, output string) (guard.Status, error)
	Stop(ctx context.Context) error
	Stopped() bool
	Status() []guard.Status
	// StatusOf is Status of one output; ok is false where there is none of that name.
	StatusOf(output string) (s guard.Status, ok bool)
	// Changed returns a channel that is closed when anything that Status or Stopped reports has
	// changed since the call.
	Changed() <-chan struct{}
	Policy(output string) (guard.Policy, error)
}

// noOutputs are those of a site without any.
type noOutputs struct{ Outputs }

func (noOutputs) Status() []guard.Status                    { return nil }
func (noOutputs) StatusOf(string) (s guard.Status, ok bool) { return s, false }
func (noOutputs) Stopped() bool                             { return false }
func (noOutputs) Changed() <-chan struct{}                  { return nil }
func (noOutputs) Policy(output string) (guard.Policy, error) {
	return guard.Policy{}, device.Faultf(device.Invalid, "there is no output %q", output)
}

// site is a Site with an index of its points. It is not changed once it is made.
type site struct {
	Site
	points []point           // in the order of the configuration
	byName map[string]*point // in points, by address
	whole  *view             // for those who see all
}

// point is a device's point with its address and its device.
type point struct {
	device.Point
	Address string
	number  int // in site.points
	device  device.Device
	busy    device.Mutex
	model   string
	confirm bool
}

func newSite(of Site) (*site, error) {
	if of.Outputs == nil {
		of.Outputs = noOutputs{}
	}
	s := &site{Site: of, byName: make(map[string]*point)}
	for _, d := range of.Devices {
		for _, p := range d.Description.Points {
			q := point{
				Point: p, Address: device.Address(d.Name, p.Name), number: len(s.points), device: d.Device, busy: d.Busy,
				model: d.Description.Model, confirm: slices.Contains(d.Confirm, p.Name),
			}
			s.points = append(s.points, q)
		}
	}
	for i := range s.points {
		s.byName[s.points[i].Address] = &s.points[i]
	}
	s.whole = newView(s, nil)
	_, err := s.whole.list() // an output without limits is an error now
	return s, err
}

// now returns the time by the site's clock, at which it shows what is stored.
func (s *site) now() time.Time {
	t := time.Now()
	if s.Now != nil {
		t, _ = s.Now()
	}
	return t.Round(0)
}

// timeOf returns the site's time of a moment of this process.
func (s *site) timeOf(t time.Time) time.Time { return s.now().Add(-time.Since(t)) }

// point returns a point by its address; one without a kind where there is none.
func (s *site) point(address string) *point {
	if p := s.byName[address]; p != nil {
		return p
	}
	return new(point)
}

// confirms returns "owner" if an owner must approve each move, and "" otherwise.
func (p point) confirms() string {
	if p.confirm {
		return "owner"
	}
	return ""
}

// noSite is that of a node that has none: nothing is offered of it.
func noSite() *site {
	s := &site{Site: Site{Outputs: noOutputs{}}}
	s.whole = &view{site: s}
	return s
}

// readable reports whether points of a kind have a latest reading.
func readable(k device.Kind) bool { return k != device.KindText && k != device.KindImage }

// moving returns a value of the type that a point of a kind is moved to; none for a point
// that is no output.
func moving(k device.Kind) device.Value {
	switch k {
	case device.KindSwitch:
		return device.Bool(false)
	case device.KindLevel:
		return device.Number(0)
	}
	return device.Value{}
}

// Replace replaces the node's Site, and notifies the watchers. Running calls end with the earlier
// Site. It is for the wiring: no caller comes here.
func (n *Node) Replace(s Site) error {
	made, err := newSite(s)
	if err != nil {
		return err
	}
	n.site.Store(made)
	n.views.forget()
	n.hub.Announce(agents.Change{Tools: true, Prompts: true, Resources: true})
	return nil
}
