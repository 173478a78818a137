package site

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"agentsite/agents/event"
	"agentsite/cmd/internal/hosting"
	"agentsite/cmd/internal/internet"
	"agentsite/cmd/internal/memory"
	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/systemd"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/guard/proc"
	"agentsite/discovery"
	"agentsite/discovery/announce"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/devices"
	"agentsite/node/history"
	"agentsite/node/identity"
	"agentsite/node/journal"
	"agentsite/node/logs"
	"agentsite/node/occurrence"
	"agentsite/node/push"
	"agentsite/node/rollback"
	"agentsite/node/state"
	"agentsite/node/update/remote"
	"agentsite/transport/mcp/legacy"
	"agentsite/transport/oauth"
	"agentsite/transport/page"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
	"agentsite/transport/web/metrics"

	"golang.org/x/sync/errgroup"
)

// maxMemory is below the memory limit of the service's unit.
const maxMemory = 160 << 20

// restartDelay lets the answer reach the owner whose act ends the site.
const restartDelay = time.Second

// Options are the options of the command line.
type Options struct {
	Config string // a file; "" for agentsite.yaml, or the demonstration without one
	Demo   bool   // the demonstration in any case
	// Simulate has a fake for each device, and nothing that reaches other machines.
	Simulate bool
	Folder   state.Folder
	Listen   config.Listen     // instead of the configuration's
	Version  string            // of the program
	Update   ops.UpdateOptions // of the program, for its owners
	OnStart  func(Started)     // is called once, when the site can be called; nil for nothing
	Hangup   <-chan os.Signal  // each asks for a reload; nil for none
	Stop     <-chan os.Signal  // each is an emergency stop; nil for none
	Log      *logs.Ring        // the newest lines of the log, for owners; nil for none

	HomeAssistant *HomeAssistant // of which the site is an app; nil for none
}

// Started describes a site that can be called.
type Started struct {
	Name      string
	File      string             // the configuration; "" for the demonstration
	URL       string             // of HTTP, without a path
	State     string             // a sentence on its outputs
	Page      func() string      // makes a link for a browser of this machine, which counts once and for some minutes
	Simulated bool               // nothing real moves
	Claim     *access.Invitation // nil where nobody else reaches it; without a secret where somebody owns it
}

// site is the parts of a running site, in the order in which Run makes them.
type site struct {
	Options
	settings
	started  time.Time
	board    *board.Board
	drivers  []driver.Driver // of board
	cleanups []func()

	key   identity.Key
	token string

	updater *remote.Updater
	trials  *rollback.Manager // of configurations
	settled string            // what their opening did, for the journal
	restart func()            // ends the site, for the service manager to start it again; nil where nobody does

	outputs *proc.Keeper
	history *history.History
	hub     *node.Hub
	devices *devices.Manager

	diagnosing sync.Mutex
	scanning   sync.Mutex

	journal *journal.Recorder
	node    *node.Node
	access  *access.Store
	hosting *hosting.Hosting
	// occurrences tells notifications and the bridge to a broker what has happened.
	occurrences *occurrence.Source
	phones      *push.Store   // that are told of them
	events      event.Source  // for callers by MCP; nil for none
	recording   chan struct{} // closed when the history is open, or stays in memory

	http, https net.Listener // https is nil where nobody else reaches the site by it
	ingress     net.Listener // for Home Assistant; nil for a site that is not its app
	announcer   *announce.Announcer
	nearby      map[string]discovery.Medium // on the site's own network
	network     *internet.Network           // nil for a site that is not in the global network
	public      *publicName                 // nil for a site without one
	ownerSocket net.Listener
	agentSocket net.Listener

	resource   string      // the URL for which tokens count
	changing   sync.Locker // of the configuration
	dispatcher *rpc.Dispatcher
	legacy     *legacy.Server
	routes     []web.Route
	page       *page.Page
	returns    metrics.Returns // of the outputs, counted
	skills     skills
	messages   web.Route     // of MCP
	signInURL  string        // at which programs sign in on the network; "" for none
	oauth      *oauth.Server // at signInURL; nil for none
	signIns    signIns
	invitation *access.Invitation
}

// Run runs a whole site, from the configuration to the last output's return to safe. It
// blocks until ctx ends or a part fails.
func Run(ctx context.Context, o Options) error {
	devices.CloseOnExec()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	s := &site{Options: o, started: time.Now(), board: board.New()}
	s.drivers = s.driversOf()
	defer s.cleanUp()

	// Mistakes are found before anything is touched, and one process has the folder.
	var err error
	memory.Limit(maxMemory) // before the configuration is read, or its garbage would fragment the heap
	if systemd.Supervised() {
		s.restart = func() { time.AfterFunc(restartDelay, cancel) }
	}
	if err := s.openTrials(); err != nil {
		return err
	}
	if s.settings, err = readSettings(o, s.drivers); err != nil {
		return err
	}
	if err := s.lockFolder(); err != nil {
		return err
	}
	if err := s.checkFolder(); err != nil {
		return err
	}
	// No earlier guard drives the outputs any more, and those that the new one will not know
	// are safe.
	err = s.openDevices(ctx)
	if ctx.Err() != nil {
		return nil // ended before it began, which is no failure
	}
	if err != nil {
		return err
	}
	// The guard starts beside the rest, and drives the outputs to the very end, even that of a
	// start that fails.
	s.onCleanUp(func() { cancel(); group.Wait() })
	group.Go(func() error { return s.outputs.Run(ctx) })
	group.Go(func() error { devices.StopOnSignal(ctx, s.Stop, s.outputs.Stop); return nil })
	if err := s.openNode(ctx); err != nil {
		return err
	}
	// Callers may connect from here on; nobody is answered.
	if err := s.listenHTTP(); err != nil {
		return err
	}
	s.newAnnouncer()
	if err := s.devices.Publish(s.publish); err != nil {
		return err
	}
	if err := s.joinNetwork(); err != nil {
		return err
	}
	if err := s.openPublic(); err != nil {
		return err
	}
	if err := s.listenSockets(); err != nil {
		return err
	}
	if err := s.addMethods(ctx, group); err != nil {
		return err
	}

	endRecords := s.openRecords(ctx)         // may take seconds, and the guard does not wait for it
	defer endRecords()                       // after everything that writes to them has ended
	status := devices.Settle(ctx, s.outputs) // outputs are safe before anybody is heard
	s.runDevices(ctx, group)
	s.serve(ctx, group)
	group.Go(func() error {
		<-ctx.Done()
		systemd.Notify("STOPPING=1\nSTATUS=outputs go to their safe values")
		return nil
	})
	if s.OnStart != nil {
		s.OnStart(Started{s.config.Name, s.file, s.url(), status, s.pageLink, s.simulated(), s.invitation})
	}
	time.AfterFunc(time.Second, debug.FreeOSMemory) // of the start; at once, that would delay the first answers
	systemd.Notify("READY=1\nSTATUS=" + status)
	s.reportHealth(ctx, group)
	return group.Wait()
}

// onCleanUp schedules f for when Run returns, before everything that was scheduled earlier.
func (s *site) onCleanUp(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *site) cleanUp() {
	for len(s.cleanups) > 0 {
		last := len(s.cleanups) - 1
		s.cleanups[last]()
		s.cleanups = s.cleanups[:last]
	}
}

// linkTimeout is long: the person reads what is printed first.
const linkTimeout = 10 * time.Minute

// pageLink names the address: for a name, a browser may try another address, where others may listen.
func (s *site) pageLink() string { return s.page.Link(s.url(), linkTimeout) }

func (s *site) url() string { return fmt.Sprintf("http://%v", s.http.Addr()) }
