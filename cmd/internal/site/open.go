package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/hosting"
	"agentsite/cmd/internal/internet"
	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/protocols"
	"agentsite/device/alarm"
	"agentsite/device/host"
	"agentsite/discovery"
	"agentsite/discovery/announce"
	"agentsite/discovery/mdns"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/devices"
	"agentsite/node/events"
	"agentsite/node/history"
	"agentsite/node/identity"
	"agentsite/node/journal"
	"agentsite/node/occurrence"
	"agentsite/node/push"
	"agentsite/node/state"
	"agentsite/transport/p2p"
	"agentsite/transport/stdio"
	"agentsite/transport/web"
)

// lockFolder takes the data folder for this process, and reads or makes its token and key.
func (s *site) lockFolder() error {
	unlock, err := s.Folder.Lock()
	if err != nil {
		return err
	}
	s.onCleanUp(unlock)
	if s.token, err = s.Folder.Token(); err != nil {
		return err
	}
	if s.key, err = s.Folder.KeyLocked(); err != nil {
		return err
	}
	return s.Folder.Sign(s.config.Name)
}

// openDevices takes the outputs over from an earlier guard and opens the devices.
func (s *site) openDevices(ctx context.Context) error {
	plan, err := devices.NewPlan(s.config)
	if err != nil {
		return err
	}
	files := guardFiles(s.Folder)
	if err := files.TakeOver(ctx, plan); err != nil {
		return err
	}
	s.outputs = files.NewKeeper(plan)
	s.history = history.New(nil)
	s.hub = node.NewHub(s.outputs, s.history, agents.PointURI)
	s.hub.AfterFunc = alarm.New(ctx)
	s.devices, err = devices.Open(ctx, devices.Options{
		Board: s.board, Config: s.config, Read: s.readAgain, Plan: plan, Files: files,
		Outputs: s.outputs, Hub: s.hub, KeepHistory: s.history.Keep,
	})
	if err != nil {
		return err
	}
	s.onCleanUp(func() {
		if err := s.devices.Close(); err != nil {
			slog.Error("device did not close well", "err", err)
		}
	})
	return nil
}

// simulated reports whether nothing real moves.
func (s *site) simulated() bool { return s.file == "" || s.Simulate }

// readAgain reads the configuration that the site was started with.
func (s *site) readAgain() (*config.Site, error) {
	if s.file == "" {
		return devices.Reader("", s.drivers)()
	}
	o := s.Options
	o.Config = s.file
	cfg, _, err := o.read(s.drivers)
	if err == nil {
		s.readSkills()
	}
	return cfg, err
}

// openNode makes the node, its journal, which is opened later, and the parts behind it.
func (s *site) openNode(ctx context.Context) (err error) {
	s.journal = journal.NewRecorder()
	s.access, err = state.OpenAccess(s.Folder, s.key.ID(), host.SystemClock)
	if err != nil {
		return err
	}
	s.access.LastKnown = s.config.LastKnown
	s.history.Now, s.journal.Now = s.access.Now, s.access.Now
	self := s.key.ID()
	s.node = node.New(node.Parts{
		Hub: s.hub, Token: s.token, Journal: s.journal, Access: s.access,
		ApprovalWait: s.config.Approvals.Wait,
		Self:         func(name string) bool { id, err := identity.Parse(name); return err == nil && id == self },
	})
	if err := s.openPhones(); err != nil {
		return err
	}
	s.access.OnEnd = func() {
		devices.ReleaseRevoked(ctx, s.outputs, s.access.MayHold, s.node.NoteRevoked)
		s.node.Recheck()
		if err := s.phones.Recheck(); err != nil {
			slog.Error("the list of phones is not stored", "err", err)
		}
	}
	s.occurrences = occurrence.New(occurrence.Options{
		Requests: s.node.Requests, Wishes: s.node.Wishes, SignIns: s.signIns.handles, Hub: s.hub, Outputs: s.outputs,
		Now: s.access.Now,
	})
	s.access.OnEnding = func(who string, grant access.Hash, until time.Time) {
		s.occurrences.Ending(who, grant.String(), until)
	}
	s.hosting, err = hosting.New(hosting.Options{
		Folder: s.Folder, Key: s.key, Domain: s.config.Identified(), Internet: s.internet, Version: s.Version, File: s.file,
		Node: s.node, Hub: s.hub, Access: s.access, Past: s.history, Policy: s.outputs.Policy, Occurrences: s.occurrences,
		Phones: s.phones,
		PowerOff: func(ctx context.Context) error {
			if s.simulated() {
				return errSimulated
			}
			return ops.PowerOff(ctx, ops.PowerOffSocket)
		},
		Note:         s.note,
		ApprovalWait: s.config.Approvals.Wait, HomeAssistant: s.app(), Confined: s.Simulate,
	})
	if err != nil {
		return err
	}
	s.recording = make(chan struct{})
	s.events = events.New(events.Options{
		Node: s.node, Hub: s.hub, History: s.history, Occurrences: s.occurrences, Tasks: s.hosting.Tasks,
		Now: s.access.Now, Secret: s.token, Ready: s.recording,
	})
	if err := s.devices.Configure(s.hosting.Apply); err != nil {
		return err
	}
	owner := s.config.Owner
	if owner == "" && s.HomeAssistant != nil {
		owner = s.HomeAssistant.Owner
	}
	return state.SeedOwner(s.access, owner)
}

// openPhones reads which phones are told what happens. A damaged list tells nobody.
func (s *site) openPhones() error {
	text, err := s.Folder.ReadAtMost(state.PhonesFile, push.MaxFile)
	if foreign := (state.Mistake{}); errors.As(err, &foreign) {
		return err
	}
	file := s.Folder.Path(state.PhonesFile)
	phones, damage := push.Open(push.Options{
		File: text, Err: err, Write: func(text []byte) error { return state.WriteAtomic(file, text, 0o600) },
		May: func(key string) bool { _, err := s.access.Peer(key); return err == nil },
	})
	if damage != nil { // the outputs do not wait for it
		slog.Error("no phones are told", "err", fmt.Errorf("%w; remove %s, and start again", damage, file))
	}
	s.phones = phones
	return nil
}

// listenHTTP opens the listeners of HTTP and HTTPS, and tells the access store the URL for which its tokens
// count.
func (s *site) listenHTTP() (err error) {
	s.http, err = net.Listen("tcp", s.listen.Listen)
	if err != nil {
		return fmt.Errorf(
			"HTTP cannot listen: %w; choose another port with --listen, or under http: in the configuration", err)
	}
	s.onCleanUp(func() { s.http.Close() })
	s.resource = s.url() + "/mcp"
	if s.listen.HTTPS != config.ListenNone {
		domain := web.NewDomain(s.listen.Domain, filepath.Dir(s.absFile), s.listen.Certificate, s.listen.CertificateKey)
		now := func() time.Time { t, _ := s.access.Now(); return t }
		s.https, err = web.ListenHTTPS(s.listen.HTTPS, s.key, s.hostNames(), now, domain)
		if err != nil {
			return err
		}
		s.onCleanUp(func() { s.https.Close() })
		s.resource = s.localURL()
		if s.listen.OAuth {
			if s.signInURL = s.resource; s.listen.Domain != "" {
				s.signInURL = "https://" + s.listen.Domain + "/mcp"
			}
		}
	}
	s.access.URL = s.resource
	return s.listenIngress()
}

// newAnnouncer makes the announcer of the site's record. On its own network the site is
// announced where its HTTPS listener is reached from other machines.
func (s *site) newAnnouncer() {
	o := announce.Options{
		Key: s.key, Name: s.config.Name, Public: s.config.Discovery.Public, Claimed: s.access.Claimed, Now: s.access.Now,
		Agents: s.hosting.Listed, Shared: s.hosting.Imports.SharedWords,
		Sequence: discovery.NewSequence(s.Folder.Sequence(), s.Folder.WriteSequence),
	}
	if s.https != nil && s.config.Discovery.MDNS && !web.IsLoopback(s.https.Addr()) {
		o.URL = s.localURL()
		s.nearby = map[string]discovery.Medium{"mdns": &mdns.Medium{Services: protocols.Services(s.config)}}
	}
	s.announcer = announce.New(o)
	s.hosting.OnList(s.announcer.Renew)
}

// publish offers the devices' points to callers and announces them. It is called whenever devices
// come or go.
func (s *site) publish(all []node.Device) error {
	err := s.node.Replace(node.Site{
		Name: s.config.Name, Version: s.Version, Simulated: s.simulated(), Started: s.started, Now: s.access.Now,
		Devices: all, History: s.history, Outputs: s.outputs,
	})
	if err != nil {
		return err
	}
	s.occurrences.SetDevices(all)
	var points []announce.Point
	for _, d := range all {
		for _, p := range d.Description.Points {
			points = append(points, announce.Point{Kind: string(p.Kind), Name: p.Name})
		}
	}
	s.announcer.SetOffer(points)
	return nil
}

// joinNetwork joins the global network where the configuration says so. It does not wait for
// the network.
func (s *site) joinNetwork() (err error) {
	if s.internet == nil {
		return nil
	}
	o := p2p.Options{Key: s.key, Account: s.access.Account, Agent: "agentsite/" + s.Version}
	s.network, err = internet.JoinSite(*s.internet, o, s.announcer.Card, s.announcer.Newer, s.hosting.SharedFile)
	if err != nil {
		return err
	}
	s.onCleanUp(func() { s.network.Close() })
	return nil
}

// listenSockets opens the sockets for this machine: the owner's and the agents'.
func (s *site) listenSockets() error {
	sockets := map[string]*net.Listener{state.OwnerSocket: &s.ownerSocket, state.AgentSocket: &s.agentSocket}
	for name, socket := range sockets {
		ln, err := stdio.ListenOr(s.Folder.Path(name), s.Folder.RuntimePath(name))
		if err != nil {
			return err
		}
		s.onCleanUp(func() { ln.Close() })
		*socket = ln
	}
	return nil
}

// openRecords opens the journal and the history and runs them until end is called, which blocks
// until everything is written. Nobody waits for the history, which collects in memory until it
// is open. That of a simulation stays there.
func (s *site) openRecords(ctx context.Context) (end func()) {
	s.journal.Open(s.Folder.Path(state.JournalFolder))
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { s.journal.Run(ctx) })
	if s.simulated() {
		close(s.recording)
	} else {
		running.Go(func() {
			h := s.config.History
			o := history.Options{
				Raw: time.Duration(h.Raw), Minutes: time.Duration(h.Minutes), Hours: time.Duration(h.Hours),
				Bytes: int64(h.Size), Recorded: s.access.Recorded,
			}
			if err := s.history.Open(s.Folder.Path(state.HistoryFolder), o); err != nil {
				slog.Error("history stays in memory", "err", err)
			}
			close(s.recording)
			s.history.Run(ctx)
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}
