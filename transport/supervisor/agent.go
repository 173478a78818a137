package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/device"
)

// KindName is the name of the kind of agent, and so the beginning of its principal.
const KindName = "homeassistant"

const (
	retry    = 2 * time.Second // the pause before the next try, which doubles
	retryMax = 5 * time.Minute
	// endTimeout bounds the withdrawal of a removed agent.
	endTimeout = 5 * time.Second
)

// World holds the parts of the site that the kind uses.
type World struct {
	App *App // nil where no Supervisor runs the site
	// Claimed reports whether the site has an owner. Before, nobody is let in.
	Claimed func() bool
}

// Kind returns the entry of the list of kinds.
func Kind(w World) agent.Kind {
	return agent.Kind{
		Name: KindName,
		Doc:  "lets users of Home Assistant use the site's page there, and Home Assistant its MCP, within one permission",
		New:  func() agent.Agent { return &Agent{world: w} },
	}
}

// Agent is Home Assistant as a caller of the site, while it runs.
type Agent struct {
	MCP bool `json:"mcp,omitempty" jsonschema:"whether the site's MCP server is announced to Home Assistant, which asks its user before it connects; off when not written"`

	agent.Status

	world World
}

// Run lets Home Assistant's users in until ctx ends, and announces MCP. A Supervisor that does not answer is tried
// again; the page does not wait for it.
func (a *Agent) Run(ctx context.Context, self agents.Principal, _ agents.Site) error {
	app := a.world.App
	if app == nil {
		a.Say(agent.Waiting, "this site is not an app of Home Assistant")
		<-ctx.Done()
		return nil
	}
	if !a.world.Claimed() {
		const why = "the site has no owner yet: the app's log says how to claim it"
		app.close(why)
		if a.AwaitOwner(ctx, a.world.Claimed, why) != nil {
			return nil
		}
	}
	app.open(self)
	defer app.close(notRunning)
	a.announce(ctx, app)
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), agent.ErrRemoved) {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		if err := app.announce(ending, false); err != nil {
			slog.Warn("the MCP server stays announced to Home Assistant", "err", err)
		}
	}
	return nil
}

// announce has the announcement be as the configuration wants it, and tries until it is or ctx ends.
func (a *Agent) announce(ctx context.Context, app *App) {
	state := map[bool]string{true: "the MCP server is announced to Home Assistant", false: "no MCP server is announced"}[a.MCP]
	again(ctx, func() error {
		err := app.announce(ctx, a.MCP)
		if err == nil {
			a.Say(agent.Idle, "%s", state)
		} else if ctx.Err() == nil {
			a.Say(agent.Waiting, "%v; it is tried again", err)
		}
		return err
	})
}

// again tells Home Assistant something until it succeeds or ctx ends.
func again(ctx context.Context, tell func() error) {
	last := ""
	for pause := retry; ; pause = min(2*pause, retryMax) {
		err := tell()
		if err == nil || ctx.Err() != nil {
			return
		}
		if text := err.Error(); text != last {
			last = text
			slog.Warn("Home Assistant is not told yet whether there is an MCP server", "err", err)
		}
		if device.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// Forget withdraws what an earlier run of the program announced, for a site that begins without the section. It tries
// until that is done, ctx ends, or the section is there again.
func (a *App) Forget(ctx context.Context) {
	again(ctx, func() error {
		a.telling.Lock()
		defer a.telling.Unlock()
		if _, closed := a.Bearer("", false); closed == nil {
			return nil
		}
		return a.tell(ctx, false)
	})
}

// announce announces MCP, or withdraws what was announced, also by an earlier run of the program.
func (a *App) announce(ctx context.Context, on bool) error {
	a.telling.Lock()
	defer a.telling.Unlock()
	return a.tell(ctx, on)
}

// tell is announce with the lock held.
func (a *App) tell(ctx context.Context, on bool) error {
	before := a.Read()
	if on {
		uuid, err := a.Client.Announce(ctx, "http://"+a.host+a.path)
		if err != nil || uuid == before {
			return err
		}
		return a.Write(uuid)
	}
	if before == "" {
		return nil
	}
	if err := a.Client.Withdraw(ctx, before); err != nil {
		return err
	}
	return a.Write("")
}
