package site

import (
	"context"
	"io"
	"log/slog"
	"net"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/cmd/internal/hosting"
	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/peer"
	"agentsite/cmd/internal/protocols"
	"agentsite/cmd/internal/systemd"
	"agentsite/device/guard"
	"agentsite/device/host"
	"agentsite/discovery/announce"
	"agentsite/node"
	"agentsite/node/acts"
	"agentsite/node/devices"
	"agentsite/node/state"
	"agentsite/node/state/backup"
	"agentsite/node/update"
	"agentsite/transport/adapter"
	"agentsite/transport/mcp"
	"agentsite/transport/mcp/legacy"
	"agentsite/transport/oauth"
	"agentsite/transport/owner"
	"agentsite/transport/p2p"
	"agentsite/transport/page"
	"agentsite/transport/rpc"
	"agentsite/transport/stdio"
	"agentsite/transport/web"
	"agentsite/transport/web/metrics"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"
)

const instructions = "This site is a board with sensors and outputs. list_points names them; read_points reads them. " +
	"An output is moved for a time and returns to its safe value by itself; call again to keep it moved. " +
	"The site enforces its owner's limits whatever is asked of it. If anything goes wrong, call emergency_stop."

// addMethods makes the dispatcher of all carriers, with every method that there is, and the
// table of HTTP routes. An adapter adds its methods and routes here.
func (s *site) addMethods(ctx context.Context, group *errgroup.Group) error {
	self := mcp.Implementation{Name: "agentsite", Title: s.config.Name, Version: s.Version}
	catalog := tools.New(s.node, s.node)
	catalog.Tasks = s.hosting.Tasks
	s.readSkills()
	catalog.Skills = s.skills.all
	catalog.Hold = func(p agents.Principal) (func(), error) {
		place, err := s.node.Hold(p, node.Waits)
		return place.Leave, err
	}
	catalog.WishAsk = func(p agents.Principal) bool {
		workers := s.hosting.Tasks.Workers()
		return len(workers) > 0 && s.node.MayWish(p, agents.Ask{Op: agents.OpAsk, Points: []string{workers[0].Name}}) == nil
	}
	newest := mcp.New(ctx, s.node, catalog, self, instructions)
	newest.Events = s.newEvents(ctx, group, s.events)
	s.dispatcher = rpc.NewDispatcher(newest.Methods())
	s.dispatcher.Urgent = mcp.Urgent
	s.legacy = legacy.New(s.node, catalog, self.Name, s.Version, instructions)
	s.legacy.Events = newest.Events
	local, err := s.node.Bearer(s.token, true)
	if err != nil {
		return err
	}
	s.page = page.New(local, func() []page.Site { return []page.Site{{Name: s.config.Name, URL: "/mcp"}} })
	s.page.AddPhones(s.key.ID(), func() bool { return !s.access.Claimed() })
	s.page.AddAnswers(page.Answers{
		May: func(p agents.Principal) bool { return s.node.MayAnswer(p) == nil }, Answer: s.node.Answer,
		Waiting: s.answerable,
	})
	s.page.AddPushes(s.phones)
	s.messages = s.page.Bind(web.MCP(s.dispatcher, s.legacy.ServeHTTP))
	messages := s.messages
	if s.signInURL != "" {
		s.oauth = s.signInAt(s.signInURL)
		messages = s.oauth.Bind(messages)
		s.routes = s.oauth.Routes()
	}
	s.routes = append(append(s.routes, web.PublicRoutes()...), messages,
		metrics.Route(metrics.Options{
			Node: s.node, Hub: s.hub, Outputs: s.outputs, Returns: &s.returns, Version: s.Version, Started: s.started,
			Now: s.access.Now, Report: s.report,
		}))
	owners := s.owners()
	s.changing = &owners.Configuring
	options := protocols.Options{Config: s.config, Folder: s.Folder, File: s.absFile, URL: s.resource, Network: s.network}
	routes, err := protocols.Open(options, &adapter.Site{
		Node: s.node, Tasks: s.hosting.Tasks, Tools: catalog, Owners: owners.Operations(),
		Key: s.key, Name: s.config.Name, Version: s.Version,
		Now: s.access.Now, Domain: s.listen.Domain, Callers: s.listen.Callers,
		PushHosts: s.listen.PushHosts, PushFile: adapter.File{Read: s.Folder.Pushes, Write: s.Folder.WritePushes},
		Ending: ctx, Go: func(do func()) { group.Go(func() error { do(); return nil }) }})
	if err != nil {
		return err
	}
	s.routes = append(append(s.routes, s.page.Routes()...), routes...)
	s.dispatcher.Add(owner.Methods(owners))
	return s.addClaim()
}

// report returns the figures of parts of the site for its metrics.
func (s *site) report() metrics.Report {
	entries, journal := s.journal.Usage()
	r := metrics.Report{Entries: entries, Journal: journal, History: s.history.Bytes(), Free: -1, Sessions: s.legacy.Sessions()}
	if free, err := host.Free(string(s.Folder)); err == nil {
		r.Free = int64(free)
	}
	for _, w := range s.hosting.Outbox.Waiting() {
		r.Waiting += w.Items
		r.Sent += w.Told
		if w.Fault != "" {
			r.Failing++
		}
	}
	return r
}

// answerable lists the calls that a key of a browser may answer, as owners are listed them.
func (s *site) answerable(p agents.Principal) (any, error) {
	waiting, err := s.node.Answerable(p)
	all := []acts.Request{}
	for _, r := range waiting {
		all = append(all, acts.Request{
			Handle: r.Handle, Who: r.Who, Tool: r.Tool, Args: jsontext.Value(r.Args), Via: r.Via,
			Left: r.Left.Seconds(), Holds: r.Holds.Seconds(),
		})
	}
	return all, err
}

// owners returns what the owners' operations act on.
func (s *site) owners() *acts.Site {
	o := &acts.Site{
		Node: s.node, Access: s.access, Outputs: s.outputs, Reload: s.devices.Reload,
		Rewrite: s.rewrite,
		Check:   s.checkText, Journal: s.journal.Calls,
		Drivers: func(name string) ([]acts.Driver, error) { return ops.DescribeDrivers(name, s.drivers) }, Scan: s.scan,
		Pinout: s.pinout, Doctor: s.doctor, Schema: Schema,
		Import: s.history.Import, WouldImport: s.history.WouldImport,
		Simulate: s.simulate(),
		Hosted:   s.hosting, Try: s.hosting.Try, Connect: s.hosting.Connect, Bundles: s.hosting.Imports,
		Phone: func(ctx context.Context, code string) (acts.PhoneKey, error) {
			p, err := s.page.AwaitPhone(ctx, code)
			return acts.PhoneKey{DID: p.Key, Name: p.Name}, err
		},
		Granted: s.page.Granted, Phones: s.phones, Log: s.Log,
		Key: s.key, Name: s.config.Name, Configuration: s.absFile, Addresses: s.endpoints,
		Routes: func() acts.Routes {
			return acts.Routes{Carriers: s.listCarriers(), Methods: s.dispatcher.Methods()}
		},
	}
	s.updater = s.newUpdater()
	o.Updates = s.updater.Operations
	if s.file != "" {
		o.Trials, o.Problems = s.trials, s.problems
		o.Backups = &backup.Exporter{Folder: s.Folder, Config: s.absFile, Site: s.key.ID()}
	}
	if s.public != nil || s.oauth != nil {
		o.Public, o.SignIns = s.publicState, &s.signIns
	}
	if s.network != nil && s.network.Realm().Exists() {
		o.Find = func(ctx context.Context, capability string) (all []acts.Found, err error) {
			records, err := s.network.Search(ctx, capability)
			for _, r := range records {
				all = append(all, peer.FoundIn(r))
			}
			return all, err
		}
	}
	return o
}

// checkText checks a configuration from an owner: as a reload would, and that it adds no program that
// runs as the site's user, and names no other file of that user.
func (s *site) checkText(ctx context.Context, text []byte) (doubts []error, err error) {
	cfg, err := devices.CheckText(s.absFile, text, s.drivers, hosting.Accept)
	if err == nil && s.Simulate {
		err = confine(cfg)
	}
	if err == nil {
		err = s.devices.Accepts(ctx, cfg, hosting.CheckPlain)
	}
	if err != nil {
		return nil, err
	}
	return Doubts(cfg, s.absFile), nil
}

// addClaim lets an unowned site be claimed that others can reach.
func (s *site) addClaim() error {
	claim := owner.Claim{
		Node: s.node, Access: s.access, Key: s.key, Name: s.config.Name,
		File: s.Folder.Path(state.ClaimFile), Claimed: s.announcer.Renew,
	}
	if s.https == nil && s.network == nil {
		claim.Close()
		return nil
	}
	methods, invitation, err := claim.Open(s.config.Claim, s.claimAddresses())
	if err != nil {
		return err
	}
	s.invitation = invitation
	s.dispatcher.Add(methods)
	return nil
}

// runDevices runs everything behind the node.
func (s *site) runDevices(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error { s.hub.Sample(ctx, nil, s.outputs); return nil })
	group.Go(func() error {
		devices.NoteOutputs(ctx, s.outputs, func(n devices.Note) {
			if n.Effect == guard.Failed || n.Cause == guard.WhyNoEffect {
				s.occurrences.NoEffect(n.Output, n.Holder, n.Cause)
			} else {
				s.occurrences.Returned(n.Output, n.Holder, n.Cause)
			}
			if n.Cause != "" {
				s.returns.Add(n.Output, n.Cause)
			}
		}, func(n devices.Note) { s.journal.Note(n.String()) })
		return nil
	})
	group.Go(func() error { s.occurrences.Run(ctx); return nil })
	group.Go(func() error { host.WatchSupply(ctx, "", s.supplied); return nil })
	group.Go(func() error { s.access.Run(ctx); return nil })
	group.Go(func() error { s.devices.Run(ctx); return nil })
	group.Go(func() error { s.devices.ReloadOnSignal(ctx, s.Hangup); return nil })
	group.Go(func() error { s.hosting.Run(ctx); return nil })
	group.Go(func() error { s.runTrials(ctx); return nil })
	group.Go(func() error { s.updater.Run(ctx); return nil })
}

// serve announces the site and answers callers on every carrier.
func (s *site) serve(ctx context.Context, group *errgroup.Group) {
	stop := context.AfterFunc(ctx, s.legacy.Close) // its streams would hold up the end
	s.onCleanUp(func() { stop() })
	var network announce.Network // a nil interface without a network
	if s.network != nil {
		network = s.network
		group.Go(func() error { s.network.Run(ctx); return nil })
		group.Go(func() error { return s.network.Serve(ctx, p2p.Handlers{Key: s.node.Key, Stream: s.servePeer}) })
	}
	group.Go(func() error { s.announcer.Run(ctx, s.nearby, network); return nil })
	group.Go(func() error { return stdio.Serve(ctx, s.ownerSocket, s.serveLocal(node.LocalOwner)) })
	group.Go(func() error { return stdio.Serve(ctx, s.agentSocket, s.serveLocal(node.LocalAgent)) })
	o := web.Options{Hosts: s.allowedHosts(), Callers: s.page.Callers(s.node), Routes: s.routes}
	if s.oauth != nil {
		o.SignIn = s.oauth.SignIn()
	} else {
		o.Callers = oauth.Others{Callers: o.Callers}
	}
	handler := web.Handler(o)
	group.Go(func() error { return web.Serve(ctx, s.http, handler) })
	if s.https != nil {
		group.Go(func() error { return web.Serve(ctx, s.https, handler) })
	}
	s.serveIngress(ctx, group)
	s.servePublic(ctx, group)
}

// serveLocal returns a function that answers a caller on this machine, in any revision of MCP.
func (s *site) serveLocal(who agents.Principal) func(context.Context, net.Conn) {
	return func(ctx context.Context, conn net.Conn) {
		if err := s.legacy.ServeWith(ctx, conn, who, s.dispatcher); err != nil {
			slog.Debug("local connection failed", "err", err)
		}
	}
}

// servePeer answers a caller in the global network.
func (s *site) servePeer(ctx context.Context, rw io.ReadWriteCloser, from func() rpc.Sender, t rpc.Terms) error {
	return (&rpc.Stream{Dispatcher: s.dispatcher, Sender: from, Terms: t}).Serve(ctx, rw)
}

// reportHealth tells the service manager and the updater that the site works, while it does.
func (s *site) reportHealth(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error { systemd.FeedWatchdog(ctx, s.outputs.Alive); return nil })
	group.Go(func() error {
		if err := update.ProveRunning(ctx, s.outputs.Alive); err != nil && ctx.Err() == nil {
			slog.Error("new version cannot be confirmed; the previous one starts next time", "err", err)
		}
		return nil
	})
}

// supplied tells that the board's power supply is too weak, or strong enough again.
func (s *site) supplied(weak bool) {
	if weak {
		slog.Warn("the power supply is too weak (under-voltage)")
		s.note("the power supply is too weak (under-voltage)")
	}
	s.occurrences.Supplied(weak)
}

// note writes an event to the journal.
func (s *site) note(says string) {
	if err := s.journal.Note(says); err != nil {
		slog.Error("an event is not in the journal", "err", err)
	}
}
