package occurrence

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node"
)

// lookInterval is the time between two looks at the devices. One is lost that has no good reading at
// two looks in a row.
const lookInterval = 30 * time.Second

// signInPause is the least time between two occurrences of programs that ask to sign in: strangers can ask.
const signInPause = 10 * time.Minute

// maxRecent bounds the last occurrences that do not last, which are told at a Join.
const maxRecent = 32

// Options are the parts of the site that a Source watches.
type Options struct {
	Requests func(agents.Principal) ([]node.Request, error) // that wait for an owner
	Wishes   func(agents.Principal) ([]node.Wish, error)    // as Requests
	SignIns  func() (handles []string)                      // that wait
	Hub      interface {
		On(which agents.Change, wake func()) (leave func())
		Latest(address string) (device.Reading, bool)
	}
	Outputs interface {
		Stopped() bool
		Changed() <-chan struct{}
	}
	Now func() (time.Time, bool) // the site's clock, and whether it is known
}

// Source tells of occurrences. It watches nothing before the first Join. Its methods are safe for
// concurrent use.
type Source struct {
	Options
	joined chan struct{} // receives after a Join
	looks  sync.Mutex    // held for a look at the approvals, and before mu

	mu      sync.Mutex
	devices []thing
	joins   []*join
	lasting []Occurrence    // that began and have not ended, in this order
	ended   []Occurrence    // of what does not last, as it was found first, or ended last
	recent  []Occurrence    // the last that do not last
	seen    map[string]bool // the handles of approvals and wishes
	signIns []string        // the handles that were told of
	asked   time.Time       // when one was told of last
	count   int             // of the occurrences that their time tells apart
}

type join struct {
	emit  func(Occurrence)
	tasks bool // steps of tasks are told, too
}

// thing is a device with the points whose readings say whether it is there.
type thing struct {
	name    string
	points  []string
	missing bool // at the last look
}

// New returns a Source, which Run runs.
func New(o Options) *Source {
	return &Source{Options: o, joined: make(chan struct{}, 1), seen: make(map[string]bool)}
}

// Join has emit called for each occurrence until leave is called: at once for what lasts, what does not
// and the last of the others that are not over, then for each as it is decided, one at a time and in order. A caller
// that joined before knows them by their IDs. emit must neither block nor call the Source.
func (s *Source) Join(emit func(Occurrence)) (leave func()) { return s.join(&join{emit: emit}) }

// JoinTasks is Join with the steps of tasks from now on. A stop that is latched and calls that wait are told at once, also
// at the first Join: they did not happen after it.
func (s *Source) JoinTasks(emit func(Occurrence)) (leave func()) {
	s.lookStop()
	s.lookApprovals()
	return s.join(&join{emit: emit, tasks: true})
}

func (s *Source) join(j *join) (leave func()) {
	emit := j.emit
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joins = append(s.joins, j)
	for _, o := range slices.Concat(s.lasting, s.ended, s.recent) {
		if o.Left > 0 {
			o.Left = time.Until(o.until)
		}
		if o.Kind == PowerOff {
			o.Left = max(o.Left, 0)
		}
		if o.until.IsZero() || o.Kind == PowerOff || o.Left > 0 && (o.Kind == Permission || s.seen[o.Of]) {
			emit(o)
		}
	}
	select {
	case s.joined <- struct{}{}:
	default:
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.joins = slices.DeleteFunc(s.joins, func(other *join) bool { return other == j })
	}
}

// SetDevices replaces the devices that are watched. The occurrence of one that is gone ends.
func (s *Source) SetDevices(all []node.Device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.devices = nil
	for _, d := range all {
		t := thing{name: d.Name}
		for _, p := range d.Description.Points {
			if p.Kind != device.KindText && p.Kind != device.KindImage && p.Kind != device.KindEvent {
				t.points = append(t.points, device.Address(d.Name, p.Name))
			}
		}
		s.devices = append(s.devices, t)
	}
	for _, o := range slices.Clone(s.lasting) {
		if o.Kind == Device && !slices.ContainsFunc(s.devices, func(t thing) bool { return t.name == o.Of }) {
			s.last(Occurrence{Kind: Device, Of: o.Of, Because: Removed}, false)
		}
	}
}

// Run watches until ctx ends.
func (s *Source) Run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-s.joined:
	}
	wake := make(chan struct{}, 1)
	defer s.Hub.On(agents.Change{Approvals: true}, func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})()
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for {
		changed := s.Outputs.Changed() // before the look: nothing is missed
		s.lookStop()
		s.lookApprovals()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-wake:
		case <-look.C:
			s.lookDevices()
			s.lookSignIns()
		}
	}
}

// Returned tells that an output returned to safe that somebody held, for a cause as the guard has it.
func (s *Source) Returned(output, holder, cause string) {
	if _, broke := Return(true, device.Change{Cause: cause}); !broke {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := Occurrence{Kind: Lease, Of: output, State: Once, Who: holder, Because: cause}
	s.tell(o, "")
}

// NoEffect tells that an output that somebody held had not the effect that is expected of it. cause is that of its
// return to safe; "" where it is still away.
func (s *Source) NoEffect(output, holder, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(Occurrence{Kind: Effect, Of: output, State: Once, Who: holder, Because: cause}, "")
}

// TaskStep tells that a task asks something, or has ended.
func (s *Source) TaskStep(id, agent, asker, state, asks string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := Occurrence{Kind: Task, Of: id, State: Once, Who: asker, Agent: agent, Step: state, Asks: asks}
	s.number(&o, "")
	for _, j := range s.joins {
		if j.tasks {
			j.emit(o)
		}
	}
}

// Ending tells that a permission ends soon. The same end is the same occurrence, whenever it is told.
func (s *Source) Ending(who, grant string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, _ := s.Now()
	left := until.Sub(now)
	notice := "week"
	if left <= 24*time.Hour {
		notice = "day"
	}
	s.tell(Occurrence{Kind: Permission, Of: grant, State: Once, Who: who, Left: left},
		strconv.FormatInt(until.Unix(), 10)+notice)
}

// PoweringOff tells that the machine will be powered off in the time left, or not any more. because is the condition,
// or why it is not true any more.
func (s *Source) PoweringOff(will bool, because string, left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last(Occurrence{Kind: PowerOff, Because: because, Left: left}, will)
}

// RolledBack tells that a new configuration or version was not kept.
func (s *Source) RolledBack(because string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(Occurrence{Kind: Rollback, State: Once, Because: because}, "")
}

// Supplied tells that the board's supply is too weak, or strong enough again.
func (s *Source) Supplied(weak bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last(Occurrence{Kind: Supply}, weak)
}

func (s *Source) lookStop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last(Occurrence{Kind: Stop}, s.Outputs.Stopped())
}

func (s *Source) lookApprovals() {
	s.looks.Lock()
	defer s.looks.Unlock()
	all, err := s.Requests(node.LocalOwner)
	if err != nil {
		return
	}
	wishes, err := s.Wishes(node.LocalOwner)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.seen
	s.seen = make(map[string]bool, len(all)+len(wishes))
	once := func(o Occurrence) {
		s.seen[o.Of] = true
		if o.State = Once; !before[o.Of] {
			s.tell(o, o.Of)
		}
	}
	for _, r := range all {
		once(Occurrence{Kind: Approval, Of: r.Handle, Who: r.Who, Tool: r.Tool, Args: r.Args, Left: r.Left})
	}
	for _, w := range wishes {
		once(Occurrence{Kind: Wish, Of: w.Handle, Who: w.Who, Tool: w.Tool, Args: w.Args, Left: w.Left})
	}
}

// lookSignIns tells that programs ask to sign in, without the handle, which an owner compares, and without what they
// call themselves. One that comes too soon after another is told of later, if it waits still.
func (s *Source) lookSignIns() {
	all := s.SignIns()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signIns = slices.DeleteFunc(s.signIns, func(h string) bool { return !slices.Contains(all, h) })
	if len(all) == len(s.signIns) || !s.asked.IsZero() && time.Since(s.asked) < signInPause {
		return
	}
	s.signIns, s.asked = slices.Clone(all), time.Now()
	s.tell(Occurrence{Kind: SignIn, State: Once}, "")
}

func (s *Source) lookDevices() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.devices {
		d := &s.devices[i]
		read, good, why, of := false, false, "", ""
		for _, address := range d.points {
			if r, ok := s.Hub.Latest(address); ok {
				read = true
				if good = r.Quality == device.Good; good {
					break
				}
				why, of = r.Why, address
			}
		}
		missing := read && !good
		if good {
			why, of = "", ""
		}
		if read && (good || d.missing) {
			s.last(Occurrence{Kind: Device, Of: d.name, Because: why, Point: of}, missing)
		}
		d.missing = missing
	}
}

// last tells the beginning or the end of what lasts; nothing where that was told. What does not last at the
// first look is told as an end: it may have begun before a restart. The lock is held.
func (s *Source) last(o Occurrence, lasts bool) {
	same := func(l Occurrence) bool { return l.Key() == o.Key() }
	from, to := &s.ended, &s.lasting
	if o.State = Begins; !lasts {
		o.State = Ends
		from, to = to, from
	}
	if !slices.ContainsFunc(*to, same) {
		*from = slices.DeleteFunc(*from, same)
		*to = append(*to, s.tell(o, ""))
	}
}

// tell numbers an occurrence and tells it. Without about its time tells it apart. The lock is held.
func (s *Source) tell(o Occurrence, about string) Occurrence {
	s.number(&o, about)
	if o.State == Once {
		if len(s.recent) == maxRecent {
			s.recent = slices.Delete(s.recent, 0, 1)
		}
		s.recent = append(s.recent, o)
	}
	for _, j := range s.joins {
		j.emit(o)
	}
	return o
}

// number sets the time and the ID of an occurrence. The lock is held.
func (s *Source) number(o *Occurrence, about string) {
	at, sure := s.Now()
	o.At, o.Sure = at.Round(0), sure
	if o.Left > 0 {
		o.until = time.Now().Add(o.Left)
	}
	if about == "" {
		s.count++
		about = strconv.FormatInt(o.At.UnixNano(), 10) + "." + strconv.Itoa(s.count)
	}
	o.number(about)
}
