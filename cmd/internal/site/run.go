package site

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/cmd/internal/internet"
	"agentsite/cmd/internal/memory"
	"agentsite/cmd/internal/systemd"
	"agentsite/device/board"
	"agentsite/device/host"
	"agentsite/discovery"
	"agentsite/discovery/announce"
	"agentsite/discovery/mdns"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/devices"
	"agentsite/node/history"
	"agentsite/node/journal"
	"agentsite/node/state"
	"agentsite/node/update"
	"agentsite/transport/mcp"
	"agentsite/transport/mcp/legacy"
	"agentsite/transport/owner"
	"agentsite/transport/p2p"
	"agentsite/transport/rpc"
	"agentsite/transport/stdio"
	"agentsite/transport/web"

	"golang.org/x/sync/errgroup"
)

// mostMemory is below what the service's unit lets a site have.
const mostMemory = 160 << 20

// Options are what run is told.
type Options struct {
	Config      string // a file; "" for agentsite.yaml, or the demonstration without one
	Folder      state.Folder
	Listen      string           // instead of the configuration's; it also turns HTTPS and peers off
	ListenHTTPS string           // instead of the configuration's
	ListenPeers string           // instead of the configuration's, under internet
	Version     string           // of the program
	Out         io.Writer        // for the person at the terminal
	Terminal    bool             // Out is one, and shows pictures
	Hangup      <-chan os.Signal // each asks for a reload; nil for none
	Stop        <-chan os.Signal // each is an emergency stop; nil for none
}

const instructions = "This site is a board with sensors and outputs. list_points names them; read_points reads them. " +
	"An output is moved for a time and returns to its safe value by itself; call again to keep it moved. " +
	"The site enforces its owner's limits whatever is asked of it. If anything goes wrong, call emergency_stop."

// Run is a whole site: from the configuration to the last output's return to safe.
// It blocks until ctx ends or a part fails.
func Run(ctx context.Context, o Options) error {
	started := time.Now()
	devices.CloseOnExec()
	memory.Limit(mostMemory)
	machine := board.New()
	drivers := Drivers(machine)
	cfg, from, err := devices.Check(o.Config, drivers)
	if err != nil {
		return err
	}
	listen := cfg.HTTP
	if o.Listen != "" {
		if err := config.CheckListen(o.Listen); err != nil {
			return state.Mistakef("--listen %w", err)
		}
		listen.Listen, listen.HTTPS = o.Listen, config.ListenNone // a second site, or a try
	}
	if from == "" {
		listen.HTTPS = config.ListenNone // what is simulated is nobody else's
	}
	if o.ListenHTTPS != "" {
		if err := config.CheckHTTPS(o.ListenHTTPS); err != nil {
			return state.Mistakef("--listen-https %w", err)
		}
		listen.HTTPS = o.ListenHTTPS
	}
	peers := cfg.Internet
	if o.Listen != "" && o.ListenPeers == "" {
		peers = nil
	}
	if o.ListenPeers != "" {
		if err := config.CheckInternet(o.ListenPeers); err != nil {
			return state.Mistakef("--listen-peers %w", err)
		}
		if peers == nil {
			return state.Mistakef("--listen-peers is for a site whose configuration has the section internet")
		}
		there := *peers
		there.Listen, peers = o.ListenPeers, &there
	}
	unlock, err := o.Folder.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	token, err := o.Folder.Token()
	if err != nil {
		return err
	}
	key, err := o.Folder.KeyLocked()
	if err != nil {
		return err
	}
	if err := o.Folder.Sign(cfg.Name); err != nil {
		return err
	}

	plan, err := devices.NewPlan(cfg)
	if err != nil {
		return err
	}
	files := guardFiles(o.Folder)
	if err := files.TakeOver(ctx, plan); err != nil {
		return err
	}
	outputs := files.NewKeeper(plan)
	past := history.New(nil)
	hub := node.NewHub(outputs, past, agents.PointURI)
	opened, err := devices.Open(ctx, devices.Options{
		Board: machine, Config: cfg, Read: devices.Reader(from, drivers), Plan: plan, Files: files,
		Outputs: outputs, Hub: hub, KeepHistory: past.Keep,
	})
	if ctx.Err() != nil { // it is to end before it began, which is no failure
		return nil
	}
	if err != nil {
		return err
	}
	defer func() {
		if err := opened.Close(); err != nil {
			slog.Error("a device did not close well", "err", err)
		}
	}()
	extra, runExtra := extraAgents(hub.Announce)
	record := journal.NewRecorder()
	door := node.New(hub, token, record, extra...)
	catalog := tools.New(door, door)
	book, err := state.OpenAccess(o.Folder, key.ID(), host.SystemClock)
	if err != nil {
		return err
	}
	book.LastKnown = cfg.LastKnown
	book.OnEnd = func() {
		devices.ReleaseRevoked(ctx, outputs, func(holder, output string) bool { return !access.ByGrant(holder) || book.Holds(holder, output) })
		door.Recheck()
	}
	if err := state.SeedOwner(book, cfg.Owner); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen.Listen)
	if err != nil {
		return fmt.Errorf("HTTP cannot listen: %w; choose another port with --listen, or under http: in the configuration", err)
	}
	defer listener.Close()
	names := web.HostNames(append([]string{discovery.HostName(key.ID())}, listen.Hosts...)...)
	var secure net.Listener // nil where nobody else reaches the site by HTTPS
	if listen.HTTPS != config.ListenNone {
		if secure, err = web.ListenHTTPS(listen.HTTPS, key, names, func() time.Time { t, _ := book.Now(); return t }); err != nil {
			return err
		}
		defer secure.Close()
	}
	announcer, near := announce.New(announce.Options{
		Key: key, Name: cfg.Name, Public: cfg.Discovery.Public, Claimed: book.Claimed, Now: book.Now,
		Sequence: discovery.NewSequence(o.Folder.Sequence(), o.Folder.WriteSequence),
	}), make(map[string]discovery.Medium)
	if announcer.URL = nearbyURL(secure, key.ID()); announcer.URL != "" && cfg.Discovery.MDNS {
		near["mdns"] = new(mdns.Medium)
	} else {
		announcer.URL = ""
	}
	offer := func(all []node.Device) error {
		if err := door.SetSite(node.Site{
			Name: cfg.Name, Version: o.Version, Simulated: from == "", Started: started,
			Devices: all, History: past, Outputs: outputs,
		}); err != nil {
			return err
		}
		announcer.SetOffer(offeredPoints(all))
		return nil
	}
	if err := opened.Publish(offer); err != nil {
		return err
	}

	var far *internet.Network // nil for a site that is not in the global network
	if peers != nil {
		far, err = internet.JoinSite(*peers, p2p.Options{Key: key, Account: book.Account, Agent: "agentsite/" + o.Version}, announcer.Card, announcer.Newer)
		if err != nil {
			return err
		}
		defer far.Close()
	}
	ownerSocket, err := stdio.ListenOr(o.Folder.Path(state.OwnerSocket), o.Folder.RuntimePath(state.OwnerSocket))
	if err != nil {
		return err
	}
	defer ownerSocket.Close()
	agentSocket, err := stdio.ListenOr(o.Folder.Path(state.AgentSocket), o.Folder.RuntimePath(state.AgentSocket))
	if err != nil {
		return err
	}
	defer agentSocket.Close()

	url := "http://" + listener.Addr().String()
	resource := url + "/mcp"
	called := web.AllowedHosts(listener.Addr(), names)
	if secure != nil {
		_, port, _ := net.SplitHostPort(secure.Addr().String())
		resource = "https://" + net.JoinHostPort(discovery.HostName(key.ID()), port) + "/mcp"
		called = append(called, discovery.HostName(key.ID())) // whoever knows the key says no port
		called = append(called, web.AllowedHosts(secure.Addr(), names)...)
	}
	book.URL = resource
	door.Obey(book)
	all, ctx := errgroup.WithContext(ctx)
	self := mcp.Implementation{Name: "agentsite", Title: cfg.Name, Version: o.Version}
	methods := mcp.New(ctx, door, catalog, self, instructions).Methods()
	listening := []owner.Carrier{
		{Kind: owner.HTTPCarrier, Address: url, Routes: web.Routes()},
		{Kind: owner.OwnerCarrier, Address: o.Folder.SocketPath(state.OwnerSocket)},
		{Kind: owner.AgentsCarrier, Address: o.Folder.SocketPath(state.AgentSocket)},
	}
	if secure != nil {
		listening = append(listening, owner.Carrier{Kind: owner.HTTPSCarrier, Address: "https://" + secure.Addr().String(), Routes: web.Routes()})
	}
	configuration := from
	if from != "" {
		if configuration, err = filepath.Abs(from); err != nil {
			return err
		}
	}
	var dispatcher *rpc.Dispatcher
	owned := owner.Site{
		Node: door, Access: book, Outputs: outputs, Reload: opened.Reload,
		Key: key, Name: cfg.Name, Configuration: configuration,
		Addresses: func() []string { return endpoints(secure, key.ID(), far) },
		Routes: func() owner.Routes {
			all := owner.Routes{Carriers: listening, Methods: dispatcher.Methods()}
			if far != nil {
				all.Carriers = slices.Concat(listening, peerCarriers(far))
			}
			return all
		},
	}
	if far != nil && far.Realm().Exists() {
		owned.Find = finder(far)
	}
	maps.Copy(methods, owned.Methods())
	claim := owner.Claim{Node: door, Access: book, Key: key, Name: cfg.Name, File: o.Folder.Path(state.ClaimFile), Claimed: announcer.Renew}
	var invitation *access.Invitation // nil where nobody else reaches the site
	if secure == nil && far == nil {
		claim.Close()
	} else {
		var claiming map[string]rpc.Method
		if claiming, invitation, err = claim.Open(cfg.Claim, claimAddresses(secure, key.ID(), far)); err != nil {
			return err
		}
		maps.Copy(methods, claiming)
	}
	dispatcher = rpc.NewDispatcher(methods)
	dispatcher.Urgent = mcp.Urgent
	older := legacy.New(door, catalog, self.Name, o.Version, instructions)
	admit := func(e rpc.Evidence) (string, error) { return door.Admit(node.Evidence(e)) }
	handler := web.Handler(web.Options{
		Resource:   resource,
		Hosts:      called,
		Dispatcher: dispatcher,
		Admit:      admit,
		Legacy: func(w http.ResponseWriter, r *http.Request, e rpc.Evidence) {
			older.ServeHTTP(w, r, node.Evidence(e))
		},
		Metrics: metrics(door, hub, outputs, o.Version),
	})
	stream := func(ctx context.Context, conn net.Conn, e rpc.Evidence) {
		if err := older.ServeWith(ctx, conn, e, dispatcher); err != nil {
			slog.Debug("a local stream broke", "err", err)
		}
	}

	// Outputs are driven before anybody is heard, and to the very end.
	all.Go(func() error { return outputs.Run(ctx) })
	all.Go(func() error { devices.StopOnSignal(ctx, o.Stop, outputs.Stop); return nil })
	settling, cancel := context.WithTimeout(ctx, devices.SettleTimeout)
	defer cancel()
	unsafe := outputs.Settle(settling)
	if unsafe != nil {
		slog.Error("not every output is known to be safe; moves on those are refused", "err", unsafe)
	}
	if outputs.Stopped() {
		slog.Warn("the emergency stop is latched: outputs stay safe until agentsite reset")
	}
	record.Open(o.Folder.Path(state.JournalFolder)) // when outputs are safe, and before anybody is heard
	recording, endRecord := context.WithCancel(context.WithoutCancel(ctx))
	var recorded sync.WaitGroup
	recorded.Go(func() { record.Run(recording) })
	defer recorded.Wait()
	defer endRecord()                           // after everybody who has something to write down
	defer context.AfterFunc(ctx, older.Close)() // its streams would hold up the end
	all.Go(func() error { hub.Sample(ctx, nil, outputs); return nil })
	all.Go(func() error { devices.NoteReturns(ctx, outputs, record.Note); return nil })
	all.Go(func() error { book.Run(ctx); return nil })
	all.Go(func() error { opened.Run(ctx); return nil })
	all.Go(func() error { opened.ReloadOnSignal(ctx, o.Hangup); return nil })
	all.Go(func() error { runExtra(ctx); return nil })
	all.Go(func() error {
		if far == nil {
			announcer.Run(ctx, near, nil)
		} else {
			announcer.Run(ctx, near, far)
		}
		return nil
	})
	all.Go(func() error { return stdio.Serve(ctx, ownerSocket, rpc.LocalOwner, stream) })
	all.Go(func() error { return stdio.Serve(ctx, agentSocket, rpc.LocalAgent, stream) })
	all.Go(func() error { return web.Serve(ctx, listener, handler) })
	if secure != nil {
		all.Go(func() error { return web.Serve(ctx, secure, handler) })
	}
	if far != nil {
		all.Go(func() error { far.Run(ctx); return nil })
		all.Go(func() error {
			return far.Serve(ctx, p2p.Handlers{Admit: admit, Stream: func(ctx context.Context, rw io.ReadWriteCloser, e rpc.Evidence, t rpc.Terms) error {
				return (&rpc.Stream{Dispatcher: dispatcher, Evidence: e, Terms: t}).Serve(ctx, rw)
			}})
		})
	}
	all.Go(func() error {
		<-ctx.Done()
		systemd.Notify("STOPPING=1\nSTATUS=outputs go to their safe values")
		return nil
	})
	state := outputsNow(unsafe, outputs.Stopped())
	welcome(o, cfg, from, url, state, invitation)
	memory.Release()
	systemd.Notify("READY=1\nSTATUS=" + state)
	all.Go(func() error { systemd.FeedWatchdog(ctx, outputs.Alive); return nil })
	all.Go(func() error {
		if err := update.ProveRunning(ctx, outputs.Alive); err != nil && ctx.Err() == nil {
			slog.Error("this version cannot say that it is well; the one before it is started the next time", "err", err)
		}
		return nil
	})
	return all.Wait()
}
