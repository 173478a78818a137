package hosting

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/llm"
	"agentsite/agents/llm/chat"
	"agentsite/agents/remote"
	"agentsite/agents/rule"
	"agentsite/agents/task"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/guard"
	"agentsite/device/sim"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/elsewhere"
	"agentsite/node/hosted"
	"agentsite/node/identity"
	"agentsite/node/tasks"
	"agentsite/transport/mcp"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// book is a journal in memory.
type book struct {
	mu     sync.Mutex
	begun  []node.Asked
	added  []node.Asked
	denied int
	all    []*written // since drain
}

// written is a call of the journal, and the kind of its fault; "running" while it runs.
type written struct {
	node.Asked
	fault string
}

func (*book) Replay(node.Asked) (*node.Outcome, error) { return nil, nil }
func (b *book) Begin(a node.Asked) (func(node.Outcome), *node.Outcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun = append(b.begun, a)
	w := &written{a, "running"}
	b.all = append(b.all, w)
	return func(o node.Outcome) { b.mu.Lock(); w.fault = o.Fault; b.mu.Unlock() }, nil, nil
}
func (b *book) Add(a node.Asked, o node.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.added = append(b.added, a)
	b.all = append(b.all, &written{a, o.Fault})
}
func (b *book) Deny(string, string, device.FaultKind) { b.mu.Lock(); b.denied++; b.mu.Unlock() }
func (*book) Recent(string) []node.Recorded           { return nil }

// moves returns the calls that began.
func (b *book) moves() []node.Asked {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.begun)
}

// drain returns what was written since the last time, and forgets it.
func (b *book) drain() (all []written) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.all {
		all = append(all, *w)
	}
	b.all, b.begun, b.added = nil, nil, nil
	return all
}

// site is a whole site but for its carriers.
type site struct {
	*node.Node
	here    *elsewhere.Site // with the other sites of its agents
	dir     string
	cfg     *config.Site
	key     identity.Key
	access  *access.Store
	hub     *node.Hub
	guard   *guard.Guard
	book    *book
	manager *hosted.Manager
	tasks   *tasks.Manager
	stop    func()                    // ends the agents and the tasks
	lies    func(task.Host) task.Host // the tasks as others are told them; nil for as they are
	sites   *remote.Sites
	models  *llm.World
	model   llm.Completer
	serve   *rpc.Dispatcher
	feed    chan device.Reading

	mu     sync.Mutex
	grants map[string]*access.Grant // of other sites, by their keys
	cut    bool                     // nobody reaches it
	silent bool                     // it tells, and answers no call
	conns  []io.ReadWriteCloser     // to it
	dialed int
}

// village is some sites in one process, in virtual time.
type village struct {
	*testing.T
	codec rpc.Codec
	owner identity.Key
	sites map[string]*site
	built []built
	ctx   context.Context
}

// built is a device of each site: a simulated one, or one of a test that has points of such a one.
type built struct {
	name, model string
	make        func(site string) device.Device // nil for a simulated one
}

func (b built) open(v *village, site string) device.Device {
	if b.make != nil {
		return b.make(site)
	}
	c := sim.Driver().Config().(*sim.Config)
	c.Model = b.model
	d, err := c.Open(v.ctx)
	if err != nil {
		v.Fatal(err)
	}
	return d
}

// over runs a test over new sites with both encodings.
func over(t *testing.T, names []string, test func(v *village)) {
	for _, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
		t.Run(codec.ContentType(), func(t *testing.T) { in(t, codec, names, test) })
	}
}

// in runs a test over new sites with one encoding.
func in(t *testing.T, codec rpc.Codec, names []string, test func(v *village)) {
	among(t, codec, names, nil, test)
}

// among is in, with more devices on each site.
func among(t *testing.T, codec rpc.Codec, names []string, more []built, test func(v *village)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		v := &village{t, codec, identity.New(), make(map[string]*site), slices.Concat([]built{{"heater", "relay", nil}, {"lamp", "relay", nil}, {"climate", "climate", nil}}, more), ctx}
		var running sync.WaitGroup
		defer func() {
			for _, s := range v.sites {
				s.hang(true)
			}
			cancel()
			running.Wait()
		}()
		for _, name := range names {
			v.sites[name] = v.start(filepath.Join(dir, name), &running)
		}
		test(v)
	})
}

// forgetful is a history that keeps nothing.
type forgetful struct{}

func (forgetful) Record(device.Reading) {}

type feeder chan device.Reading

func (f feeder) Watch(ctx context.Context, emit func(device.Reading)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-f:
			emit(r)
		}
	}
}

func (v *village) start(dir string, running *sync.WaitGroup) *site {
	s := &site{dir: dir, key: identity.New(), book: new(book), feed: make(chan device.Reading), grants: make(map[string]*access.Grant)}
	var devices []node.Device
	var actuated []guard.Actuated
	for _, b := range v.built {
		d := b.open(v, filepath.Base(dir))
		devices = append(devices, node.Device{Name: b.name, Device: d, Description: d.Describe(), Busy: device.NewMutex()})
		var policies []guard.Policy
		for _, p := range d.Describe().Points {
			if p.Kind.Output() {
				policies = append(policies, guard.NewPolicy(b.name, p))
				policies[len(policies)-1].MinOff = time.Second
			}
		}
		if policies != nil {
			actuated = append(actuated, guard.Actuated{Actuator: d.(device.Actuator), Policies: policies})
		}
	}
	latch := guard.Latch{File: dir + ".armed", Flag: dir + ".stopped"}
	if err := latch.Reset(); err != nil {
		v.Fatal(err)
	}
	var err error
	if s.guard, err = guard.New(actuated, latch); err != nil {
		v.Fatal(err)
	}
	s.hub = node.NewHub(nil, forgetful{}, agents.PointURI)
	s.access, err = access.NewStore(access.Options{
		Site: s.key.ID(), URL: "here", Build: time.Now(), SystemClock: func() (time.Time, bool) { return time.Now(), true },
		SaveAccess: func([]byte) error { return nil }, SaveCounts: func([]byte) error { return nil },
	})
	if err == nil {
		err = s.access.Claim(access.Owner{ID: v.owner.ID()})
	}
	if err != nil {
		v.Fatal(err)
	}
	self := func(name string) bool { id, err := identity.Parse(name); return err == nil && id == s.key.ID() }
	s.Node = node.New(node.Parts{Hub: s.hub, Journal: s.book, Access: s.access, Self: self})
	if err := s.Replace(node.Site{Name: filepath.Base(dir), Started: time.Now(), Devices: devices, Outputs: s.guard}); err != nil {
		v.Fatal(err)
	}
	s.access.OnEnd = s.Recheck
	s.sites = remote.NewSites(func(l agent.Link) (remote.Site, string, error) { return v.open(s, l) })
	s.here = withOthers(s.Node, s.sites)
	s.hub.On(agents.Change{Permissions: true}, func() { s.tasks.Recheck() })
	ledger, err := llm.ReadLedger(nil, s.access.Now, func([]byte) error { return nil })
	if err != nil {
		v.Fatal(err)
	}
	s.models = &llm.World{Hosted: s.Node, Now: s.access.Now, Ledger: ledger, Queues: new(chat.Queues), Open: func(llm.Model) llm.Completer { return s.model }}
	v.host(s, dir)
	running.Go(func() { <-v.ctx.Done(); s.stop() })
	running.Go(func() { s.guard.Run(v.ctx) })
	running.Go(func() { s.hub.Sample(v.ctx, nil, feeder(s.feed)) })
	running.Go(func() { s.sites.Run(v.ctx) })
	return s
}

// host begins to host agents and to take tasks, as a site does when it starts.
func (v *village) host(s *site, dir string) {
	s.manager = hosted.New(hosted.Options{
		Site: s.here, Kinds: kinds(worlds{rules: rule.World{Now: s.access.Now, Untested: true}, sites: s.sites, models: s.models}), OnChange: func() { s.tasks.Recheck() },
		Permit: s.access.SetHosted, Link: s.sites.Configure, Tell: s.ReplaceAgents, Keep: func([]string) error { return nil },
	})
	manager := s.manager
	s.tasks = tasks.New(tasks.Options{
		Folder: dir + ".tasks", Node: s.Node, Site: s.here, Workers: manager.Workers, Now: s.access.Now,
		Elsewhere:    func(principal string) tasks.Elsewhere { return s.sites.Tasks(principal) },
		AskElsewhere: s.here.Ask,
	})
	catalog := tools.New(s.Node, s.Node)
	if catalog.Tasks = s.tasks; s.lies != nil {
		catalog.Tasks = s.lies(s.tasks)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve = rpc.NewDispatcher(mcp.New(v.ctx, s.Node, catalog, mcp.Implementation{Name: "test"}, "").Methods())
	if s.cfg != nil { // before tasks are looked at, whose agents would be gone
		if err := manager.Apply(s.cfg); err != nil {
			v.Fatal(err)
		}
	}
	ctx, end := context.WithCancel(v.ctx)
	var running sync.WaitGroup
	running.Go(func() { manager.Run(ctx) })
	running.Go(func() { s.tasks.Run(ctx) })
	s.stop = func() { end(); running.Wait() }
}

// restart ends what a site hosts, and starts it again after a while with its configuration.
func (v *village) restart(name string, after time.Duration) {
	s := v.sites[name]
	s.hang(true)
	s.stop()
	v.sleep(after)
	v.host(s, s.dir)
	s.hang(false)
}

// grant gives the agents of one site a permission on another.
func (v *village) grant(here, there, may string) {
	words, err := access.ParsePermissions(may)
	if err != nil {
		v.Fatal(err)
	}
	a, b := v.sites[here], v.sites[there]
	g, err := access.Issue(v.owner, access.Block{Audience: a.key.ID(), Node: b.key.ID(), Permissions: words})
	if err != nil {
		v.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.grants[b.key.ID().String()] = g
}

// configure makes a site load a configuration.
func (v *village) configure(name, text string) error {
	for other, s := range v.sites {
		text = strings.ReplaceAll(text, "KEY_"+other, s.key.ID().String())
	}
	devices := ""
	for _, b := range v.built {
		devices += "  " + b.name + ": { driver: sim, model: " + b.model + " }\n"
	}
	cfg, err := config.Parse("a.yaml", []byte("site: { name: "+name+" }\ndevices:\n"+devices+"agents:\n"+text), []driver.Driver{sim.Driver()})
	if err != nil {
		return err
	}
	v.sites[name].cfg = cfg
	return v.sites[name].manager.Apply(cfg)
}

// report says what an agent does.
func (s *site) report(ctx context.Context, name string) agent.Report {
	for _, a := range s.manager.List(ctx) {
		if a.Name == name {
			return a.Report
		}
	}
	return agent.Report{Says: "there is none"}
}

// warm feeds a temperature to a site.
func (s *site) warm(degrees float64) {
	s.feed <- device.Reading{Point: "climate/temperature", Value: device.Number(degrees), Quality: device.Good, At: time.Now()}
	synctest.Wait()
}

// hang cuts the site off from all others, or ends that.
func (s *site) hang(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
	for _, c := range s.conns {
		c.Close()
	}
	s.conns = nil
}

// hush makes the site answer no calls, or answer again.
func (s *site) hush(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

func (s *site) on(output string) bool {
	return slices.ContainsFunc(s.guard.Status(), func(st guard.Status) bool { return st.Output == output && st.Value == device.Bool(true) })
}

// linked is another site as one agent has it.
type linked struct {
	*client.Client
	*dialer
	link agent.Link
}

func (v *village) open(s *site, l agent.Link) (remote.Site, string, error) {
	var to *site
	for _, other := range v.sites {
		if other.key.ID().String() == l.Peer {
			to = other
		}
	}
	if to == nil {
		return nil, "", errors.New("there is no such site")
	}
	d := &dialer{v: v, from: s, to: to, key: s.key.Derive(l.Agent)}
	return &linked{client.NewForSite(d, "test", s.key.ID().String()), d, l}, d.key.ID().String(), nil
}

func (l *linked) Watch(ctx context.Context, p agents.Principal, r agents.WatchRequest, emit func(agents.Update) error) error {
	if err := l.present(); err != nil {
		return err
	}
	return l.Client.Watch(ctx, p, r, emit)
}

// present shows the agent's part of the site's grant, as peer.Outbound does.
func (l *linked) present() error {
	l.from.mu.Lock()
	g := l.from.grants[l.link.Peer]
	l.from.mu.Unlock()
	if g == nil {
		return errors.New("no grant")
	}
	pass := func(to identity.ID, may, name string) error {
		words, err := access.ParsePermissions(may)
		if err == nil {
			g, err = g.Attenuate(l.from.key, access.Block{Audience: to, Node: l.to.key.ID(), Permissions: words, Name: name})
		}
		return err
	}
	_, name, _ := strings.Cut(l.link.Agent, ":")
	if err := errors.Join(pass(l.from.key.ID(), l.link.Most, ""), pass(l.key.ID(), l.link.May, name)); err != nil {
		return err
	}
	if !l.reaches() {
		return &agents.Unreached{Err: errors.New("no connection")}
	}
	if _, err := l.to.access.Present(l.key.ID(), g.Bytes()); err != nil {
		return &client.RequestError{Kind: string(device.AsFault(err).Kind), Msg: err.Error()}
	}
	return nil
}

// dialer calls a site over a pipe, with a key.
type dialer struct {
	v        *village
	from, to *site
	key      identity.Key

	mu   sync.Mutex
	conn io.ReadWriteCloser
	over *rpc.StreamClient
}

func (d *dialer) reaches() bool {
	d.to.mu.Lock()
	defer d.to.mu.Unlock()
	d.to.dialed++
	return !d.to.cut
}

func (d *dialer) Call(ctx context.Context, r rpc.Request, note func(string, rpc.Raw)) (rpc.Raw, error) {
	d.mu.Lock()
	d.to.mu.Lock()
	if d.to.cut {
		d.over = nil
	} else if d.over == nil || !slices.Contains(d.to.conns, d.conn) {
		near, far := pipe()
		d.conn, d.over = far, rpc.NewStreamClient(near, d.v.codec)
		d.to.conns = append(d.to.conns, far)
		go d.over.Run()
		peer, to := d.key.ID().PeerID(), d.to
		from := func() rpc.Sender {
			who, err := to.Key(peer)
			return rpc.Sender{Who: who, Refused: err, Key: peer}
		}
		go (&rpc.Stream{Dispatcher: d.to.serve, Sender: from, Terms: rpc.Terms{Codec: d.v.codec}}).Serve(d.v.ctx, far)
	}
	over, silent := d.over, d.to.silent
	d.to.mu.Unlock()
	d.mu.Unlock()
	if silent && r.Method == "tools/call" {
		<-ctx.Done()
		return rpc.Raw{}, ctx.Err()
	}
	if over == nil {
		return rpc.Raw{}, &agents.Unreached{Err: errors.New("no connection")}
	}
	return over.Call(ctx, r, note)
}

// sleep passes time, in which sites read their climate.
func (v *village) sleep(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(10*time.Second, time.Until(end)))
		for _, s := range v.sites {
			s.warm(3 + float64(time.Now().Unix()%7)/10)
		}
	}
	synctest.Wait()
}
