package hosting

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/mcp"
	"agentsite/agents/power"
	"agentsite/agents/remote"
	"agentsite/agents/rule"
	"agentsite/agents/rule/trial"
	"agentsite/agents/task"
	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/elsewhere"
	"agentsite/node/hosted"
	"agentsite/node/identity"
	"agentsite/node/imports"
	"agentsite/node/occurrence"
	"agentsite/node/outbox"
	"agentsite/node/push"
	"agentsite/node/state"
	"agentsite/node/tasks"
	"agentsite/node/trials"
	"agentsite/transport/aios"
	"agentsite/transport/mqtt"
	"agentsite/transport/supervisor"
)

// Options are the parts of a site that hosted agents need.
type Options struct {
	Folder   state.Folder
	Key      identity.Key     // the site's
	Domain   string           // of the site's did:wba; "" for none
	Internet *config.Internet // nil for a site that is not in the global network
	Version  string           // of the program
	File     string           // the configuration; "" for the demonstration
	Node     *node.Node
	Hub      *node.Hub
	Access   *access.Store
	Past     trial.Source
	Policy   func(output string) (guard.Policy, error)
	// Occurrences are told to notify.
	Occurrences  *occurrence.Source
	Phones       *push.Store
	ApprovalWait time.Duration // how long a call waits for an owner
	// PowerOff has the machine powered off; Note writes an event to the journal.
	PowerOff func(context.Context) error
	Note     func(says string)

	HomeAssistant *supervisor.App // of which the site is an app; nil for none
	Confined      bool            // agents reach nothing outside the site; those of other kinds are refused
}

// Hosting is the agents that a site hosts.
type Hosting struct {
	*hosted.Manager
	// Tasks takes tasks for them.
	Tasks *tasks.Manager
	// Imports has those that came as bundles.
	Imports *imports.Store
	// Outbox has what waits for receivers of notifications.
	Outbox  *outbox.Outbox
	sites   *remote.Sites
	out     *peer.Outbound
	claimed func() bool
	// Try tries rules over the past, for an owner.
	Try func(context.Context, agents.Principal, trial.Request) (trial.Result, error)

	hub    *node.Hub
	onList atomic.Pointer[func()]
}

// OnList makes f be called whenever Listed, or the shared bundles, may have changed. f does not
// block, and does not call Listed itself.
func (h *Hosting) OnList(f func()) { h.onList.Store(&f) }

// changed is called when agents came, went, were paused or resumed.
func (h *Hosting) changed() {
	h.Tasks.Recheck()
	h.listed()
}

func (h *Hosting) listed() {
	if f := h.onList.Load(); f != nil {
		(*f)()
	}
}

// New returns the hosting of a site, which runs nothing yet: Apply takes up a configuration, and
// Run runs its agents.
func New(o Options) (*Hosting, error) {
	paused, unlisted := o.Folder.Paused()
	if unlisted != nil { // the outputs do not wait for it, and paused agents must not run
		slog.Error("all agents are paused", "err", unlisted)
	}
	accepted, err := o.Folder.Accepted()
	if err != nil {
		return nil, err
	}
	book, damage := mcp.ReadBook(accepted, o.Folder.WriteAccepted)
	if damage != nil { // the outputs do not wait for the tools of others
		damage = fmt.Errorf("%w; remove %s, start again, and accept them again", damage, o.Folder.Path(state.AcceptedFile))
		slog.Error("no tools of children are offered", "err", damage)
		book, _ = mcp.ReadBook(nil, func([]byte) error { return damage })
	}
	out := peer.NewOutbound(o.Folder, o.Key, realms(o.Internet), o.Version)
	sites := remote.NewSites(openElsewhere(&o, out))
	here := withOthers(o.Node, sites)
	h := &Hosting{sites: sites, out: out, hub: o.Hub, claimed: o.Access.Claimed}
	children := mcp.World{
		Book: book, Version: o.Version, Secrets: filepath.Dir(o.File), Changed: func() { h.Manager.Rehost() },
	}
	models, err := openModels(o, func() *imports.Store { return h.Imports })
	if err != nil {
		return nil, err
	}
	told, err := openNotify(o)
	if err != nil {
		return nil, err
	}
	h.Outbox = told.Outbox
	rules := rule.World{Now: o.Access.Now, AfterFunc: o.Hub.AfterFunc, Untested: true}
	rules.Ask = func(ctx context.Context, p agents.Principal, agent, text, key string) error {
		r := task.Request{Agent: agent, Text: text}
		if key != "" {
			r.Key = &key
		}
		_, err := h.Tasks.Ask(ctx, p, r)
		return err
	}
	h.Manager = hosted.New(hosted.Options{
		OnChange: func() { h.changed() }, OnDefect: o.Node.NoteDefect, Site: here,
		Kinds: kinds(worlds{
			rules: rules, sites: sites, children: children, models: models, registry: h.registry(o), broker: h.broker(o),
			told: told, store: openExport(o),
			power: power.World{Start: time.Now(), Off: o.PowerOff, Tell: o.Occurrences.PoweringOff, Note: o.Note},
			home:  supervisor.World{App: o.HomeAssistant, Claimed: o.Access.Claimed}, confined: o.Confined,
		}), Host: o.Node.ReplaceTools,
		Permit: o.Access.SetHosted, Link: func(all []agent.Link) { out.Keep(all); sites.Configure(all) },
		Tell: o.Node.ReplaceAgents, Paused: paused, AllPaused: unlisted != nil, Keep: o.Folder.WritePaused,
	})
	h.Tasks = tasks.New(tasks.Options{
		Folder: o.Folder.Path(state.TasksFolder), Node: o.Node, Site: here, Workers: h.Manager.Workers, Now: o.Access.Now,
		Elsewhere: func(principal string) tasks.Elsewhere { return sites.Tasks(principal) },
		Hosted:    o.Access.Hosts, Moved: here.MovedBefore, AskElsewhere: here.Ask,
		ApprovalWait: o.ApprovalWait, Step: o.Occurrences.TaskStep,
	})
	if h.Imports, err = openImports(o, here, h.Manager, h.listed); err != nil {
		return nil, err
	}
	h.Try = trials.New(o.Node, o.Hub, h.Manager, o.Past, o.Access.Now, o.Policy, h.Imports.Draft).Try
	return h, nil
}

// registry returns the World of the reporter to an AIOS registry.
func (h *Hosting) registry(o Options) aios.World {
	return aios.World{
		Version: o.Version, Claimed: o.Access.Claimed, Tasks: func() task.Host { return h.Tasks },
		Now:  func() time.Time { t, _ := o.Access.Now(); return t },
		Node: func(registry string) string { return o.Key.Derive("aios " + registry).ID().String() },
	}
}

// broker returns the World of the bridge to an MQTT broker.
func (h *Hosting) broker(o Options) mqtt.World {
	id := o.Key.ID().String()
	w := mqtt.World{
		ID: "agentsite-" + id[len(id)-12:], Version: o.Version, Claimed: o.Access.Claimed,
		Tasks:  func() task.Host { return h.Tasks },
		Secret: secrets(o.File), File: besides(o.File), Source: o.Occurrences,
	}
	if o.HomeAssistant != nil {
		w.Supervised = func(ctx context.Context) (mqtt.Broker, error) {
			b, err := o.HomeAssistant.Client.MQTT(ctx)
			return mqtt.Broker(b), err
		}
	}
	return w
}

// besides returns a function that reads files of certificates beside the configuration's.
func besides(file string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		path := filepath.Join(filepath.Dir(file), name)
		text, err := state.ReadUntrusted(path, maxCertificate)
		if text == nil && err == nil {
			err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return text, err
	}
}

// maxCertificate bounds the file of an authority.
const maxCertificate = 64 << 10

// withOthers returns a site as its hosted agents have it, with the other sites that they ask.
func withOthers(n *node.Node, sites *remote.Sites) *elsewhere.Site {
	return elsewhere.New(n, remote.KindName, func(principal string) elsewhere.Others {
		if v := sites.Of(principal); v != nil {
			return v
		}
		return nil
	})
}

// realms returns where other sites are looked up.
func realms(in *config.Internet) []peer.Realm {
	if in == nil || in.Realm == "" {
		return nil
	}
	return []peer.Realm{{Realm: in.Realm, Relays: in.Relays, IPFS: in.IPFS}}
}

// Connect stores a grant of another site for this one, and has that site be tried at once.
func (h *Hosting) Connect(grant string) (agent.Connected, error) {
	k, err := h.out.Accept(grant)
	if err != nil {
		return agent.Connected{}, device.Faultf(device.Invalid, "%w", err)
	}
	h.sites.Renew(func(peer string) bool { id, err := identity.Parse(peer); return err == nil && id.String() == k.DID })
	c := agent.Connected{Name: k.Name, DID: k.DID}
	c.May, c.Until = k.Permission()
	return c, nil
}

// Run runs the agents until ctx ends. The connections to other sites end after the agents, which
// release their leases there.
func (h *Hosting) Run(ctx context.Context) {
	linked, end := context.WithCancel(context.WithoutCancel(ctx))
	var linking sync.WaitGroup
	linking.Go(func() { h.sites.Run(linked) })
	var working sync.WaitGroup
	working.Go(func() { h.Tasks.Run(ctx) })
	defer h.hub.On(agents.Change{Resources: true}, h.Retry)()
	defer h.hub.On(agents.Change{Permissions: true}, h.Tasks.Recheck)()
	h.Manager.Run(ctx)
	working.Wait()
	end()
	linking.Wait()
	if err := h.out.Close(); err != nil {
		slog.Warn("the network of the agents did not close well", "err", err)
	}
}
