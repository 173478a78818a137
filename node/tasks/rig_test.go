package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/hosted"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

var (
	ann  = principal.Parse("did:key:ann")
	bob  = principal.Parse("did:key:bob")
	boss = agents.Principal{Kind: principal.Key, ID: "did:key:boss", Owner: true}
)

// desk decides about askers.
type desk struct {
	mu       sync.Mutex
	refused  map[string]bool // askers
	requests map[string]chan struct{}
	approved map[string]bool // by handle
	count    int
	ended    []error // what came of the calls to other sites
	charged  int     // calls elsewhere
	away     bool    // no other site is reached
}

func newDesk() *desk {
	return &desk{refused: map[string]bool{}, requests: map[string]chan struct{}{}, approved: map[string]bool{}}
}

func (d *desk) refuse(p agents.Principal, refused bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused[p.ID] = refused
}

func (d *desk) MayAsk(p agents.Principal, _ string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused[p.ID] {
		return device.Faultf(device.Denied, "no")
	}
	return nil
}

func (d *desk) May(p agents.Principal, _ agents.Ask) error { return d.MayAsk(p, "") }

func (d *desk) Ask(p agents.Principal, agent string, _ any, _ agents.Terms, wrong error) (end func(any, error), err error) {
	if err := d.MayAsk(p, agent); err != nil {
		return nil, err
	}
	return func(any, error) {}, wrong
}

// AskElsewhere needs an approval for agents that begin with an o.
func (d *desk) AskElsewhere(
	_ context.Context, p agents.Principal, agent string, _ any, t agents.Terms, again bool,
) (there agents.Terms, end func(any, error), err error) {
	if err := d.MayAsk(p, agent); err != nil {
		return t, nil, err
	}
	if d.away {
		return t, nil, errAway
	}
	if strings.Contains(agent, "/o") && !again {
		if err := d.approval(t.Approval); err != nil {
			return t, nil, err
		}
		t.Approval = ""
	}
	d.mu.Lock()
	if !again {
		d.charged++
	}
	d.mu.Unlock()
	return t, func(_ any, err error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.ended = append(d.ended, err)
	}, nil
}

// approval takes an approval, or asks for one.
func (d *desk) approval(handle string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.approved[handle] {
		d.count++
		handle := fmt.Sprint("handle", d.count)
		d.requests[handle] = make(chan struct{})
		return &agents.ApprovalNeeded{Says: "the owner has to approve this", State: handle}
	}
	delete(d.approved, handle)
	return nil
}

func (d *desk) Owner(p agents.Principal) error {
	if !p.Owner {
		return device.Faultf(device.Denied, "no owner")
	}
	return nil
}

func (d *desk) Account(p agents.Principal) (string, error) {
	if p.ID == "" {
		return "", device.Faultf(device.Denied, "nobody")
	}
	return p.ID, nil
}

func (d *desk) Decided(ctx context.Context, _ agents.Principal, handle string) error {
	d.mu.Lock()
	waits := d.requests[handle]
	d.mu.Unlock()
	if waits == nil {
		return nil
	}
	select {
	case <-waits:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// approve answers every request that waits.
func (d *desk) approve() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for handle, waits := range d.requests {
		d.approved[handle] = true
		close(waits)
		delete(d.requests, handle)
	}
}

// house is a site that notes its calls. Outputs that begin with an o need an approval.
type house struct {
	agents.Site
	desk *desk
	// act is called for each move or text, by the output or display.
	act func(key, what string)
	// dead reports whether the machine is off, so that nothing is done; nil for never.
	dead func() bool

	mu   sync.Mutex
	done map[string]int // how often, by output or display
	held map[string]bool
	vias map[string][]string
}

func newHouse(d *desk) *house {
	return &house{desk: d, done: map[string]int{}, held: map[string]bool{}, vias: map[string][]string{}}
}

func (h *house) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Value.IsZero() {
		if p.ID == "" {
			return agents.Output{}, device.Faultf(device.Denied, "nobody")
		}
		delete(h.held, r.Output)
		return agents.Output{Output: r.Output}, nil
	}
	if h.dead != nil && h.dead() {
		return agents.Output{}, errCrashed
	}
	if strings.HasPrefix(r.Output, "o") && h.desk != nil {
		if err := h.desk.approval(r.Approval); err != nil {
			return agents.Output{}, err
		}
	}
	if h.act != nil {
		h.act(*r.Key, r.Output)
	}
	h.done[r.Output]++
	h.held[r.Output] = true
	h.vias[r.Output] = slices.Concat(r.Via, []string{r.Behalf.Asker.ID, "task/" + r.Behalf.Task})
	return agents.Output{Output: r.Output, Value: r.Value}, nil
}

func (h *house) Show(_ context.Context, _ agents.Principal, r agents.ShowRequest) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead != nil && h.dead() {
		return errCrashed
	}
	if h.act != nil {
		h.act("", r.Display)
	}
	h.done[r.Display]++
	return nil
}

func (h *house) holds(output string) bool { return h.holding()[output] }

func (h *house) holding() map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.held)
}

func (h *house) via(output string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.vias[output]
}

func (h *house) counts() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.done)
}

// scriptWait is how long a w waits.
var scriptWait = time.Minute

// script is an agent that does what the arguments of its tasks say, letter by letter: m moves, o
// moves what needs an approval, r asks another site, x shows, s makes a step, q asks, w waits a minute and notes that
// as a step, f fails, p panics and i calls the task wrong.
type script struct{}

type scriptArgs struct {
	N  string `json:"n"`
	Do string `json:"do"`
	// Far is the agent that r asks; shed/tidy when left out.
	Far string `json:"far,omitzero"`
	// FarSeconds is the time that r gives the other site; 600 when left out.
	FarSeconds float64 `json:"far_seconds,omitzero"`
}

func (a scriptArgs) farRequest(name string) task.Request {
	seconds := cmp.Or(a.FarSeconds, 600)
	return task.Request{Agent: cmp.Or(a.Far, "shed/tidy"), Text: name, Seconds: &seconds}
}

func (script) Run(ctx context.Context, _ agents.Principal, _ agents.Site) error {
	<-ctx.Done()
	return nil
}

func (script) Skills() []task.Skill {
	return []task.Skill{{ID: "run", Description: "runs", Input: jsontext.Value(`{"type":"object"}`)}, {ID: "rest", Description: "does nothing"}}
}

func (script) Work(ctx context.Context, self agents.Principal, site agents.Site, w task.Work) (jsontext.Value, error) {
	var args scriptArgs
	t := w.Task()
	if t.Skill == "rest" {
		return nil, nil
	}
	if err := json.Unmarshal(t.Arguments, &args); err != nil {
		return nil, device.Faultf(device.Invalid, "arguments: %w", err)
	}
	made := 0 // steps of before
	for at, what := range args.Do {
		name := fmt.Sprintf("%c%s/p%d", what, args.N, at)
		w.Say(fmt.Sprint("at ", at))
		if strings.ContainsRune("moxswr", what) {
			if made < len(t.Steps) {
				if made++; what == 'r' && t.Steps[made-1].Outcome == "" { // it goes on waiting
					if _, err := w.(task.Asker).Ask(ctx, args.farRequest(name)); err != nil {
						return nil, err
					}
					continue
				}
				if t.Steps[made-1].Outcome != "done" {
					return nil, device.Faultf(device.FaultKind(t.Steps[made-1].Outcome), "step %d", made)
				}
				continue
			}
			made++
		}
		var err error
		switch what {
		case 'm', 'o':
			_, err = site.Move(ctx, self, agents.MoveRequest{Output: name, Value: device.Number(1)})
		case 'r':
			_, err = w.(task.Asker).Ask(ctx, args.farRequest(name))
		case 'x':
			err = site.Show(ctx, self, agents.ShowRequest{Display: name, Text: "x"})
		case 's':
			_, err = w.Step(ctx, name, func(_ context.Context, key string) (any, error) {
				h := site.(interface{ base() agents.Site }).base().(*house)
				h.mu.Lock()
				defer h.mu.Unlock()
				if h.dead != nil && h.dead() {
					return nil, errCrashed
				}
				if h.act != nil {
					h.act(key, name)
				}
				h.done[name]++
				return map[string]int{"at": at}, nil
			})
		case 'q':
			_, err = w.Input(ctx, task.Question{ID: fmt.Sprint("q", at), Text: "well?", Options: []string{"yes", "no"}})
		case 'w':
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(scriptWait):
				_, err = w.Step(ctx, "wait", func(context.Context, string) (any, error) { return nil, nil })
			}
		case 'f':
			err = errors.New("it does not work")
		case 'p':
			panic("it cannot be")
		case 'i':
			err = device.Faultf(device.Invalid, "nobody does this")
		}
		if err != nil {
			return nil, err
		}
	}
	return jsontext.Value(`{"n":"` + args.N + `"}`), nil
}

func (s *site) base() agents.Site { return s.Site }

// crew is the agents of a test, which take tasks.
type crew struct {
	mu  sync.Mutex
	all []hosted.Worker
}

func newCrew(names ...string) *crew {
	c := &crew{}
	for _, name := range names {
		c.all = append(c.all, hosted.Worker{Worker: script{}, Name: name, Self: principal.Agent("script", name)})
	}
	return c
}

func (c *crew) workers() []hosted.Worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

func (c *crew) set(all []hosted.Worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = slices.Clone(all)
}

func (c *crew) change(name string, to func(*hosted.Worker)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.all {
		if c.all[i].Name == name {
			to(&c.all[i])
		}
	}
}

// rig is a manager with everything around it. It is restarted on the same disk and house.
type rig struct {
	*Manager
	desk  *desk
	house *house
	shed  *shed
	crew  *crew
	disk  *ram
	sure  bool
	ahead time.Duration          // of the clock
	asked atomic.Pointer[func()] // is called whenever the time is asked
	hosts func(string) bool
	moved func(agent, asker agents.Principal, output string, v device.Value, approved bool, left time.Duration) error

	cancel context.CancelFunc
	ended  chan struct{}
}

func newRig() *rig {
	d := newDesk()
	h := newHouse(d)
	return &rig{desk: d, house: h, shed: newShed(h), crew: newCrew("a", "b"), disk: newRAM(), sure: true}
}

func (r *rig) start() {
	r.Manager = New(Options{Node: r.desk, Site: r.house, Workers: r.crew.workers, Now: r.now, Elsewhere: r.shed.of, AskElsewhere: r.desk.AskElsewhere, Moved: r.moved, Hosted: r.hosts})
	r.Manager.disk = r.disk
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.ended = cancel, make(chan struct{})
	go func() {
		defer close(r.ended)
		r.Manager.Run(ctx)
	}()
}

func (r *rig) now() (time.Time, bool) {
	if f := r.asked.Load(); f != nil {
		(*f)()
	}
	return time.Now().Add(r.ahead), r.sure
}

func (r *rig) stop() {
	r.cancel()
	<-r.ended
}

func request(agent, n, do string) task.Request {
	return requestWith(agent, scriptArgs{N: n, Do: do})
}

func requestWith(agent string, a scriptArgs) task.Request {
	args, _ := json.Marshal(a)
	return task.Request{Agent: agent, Skill: "run", Arguments: args}
}

func keyed(r task.Request, key string) task.Request {
	r.Key = &key
	return r
}
