package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"agentsite/agents/agent"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The revisions in which children are spoken to. The newer one has no handshake: servers that know
// nothing else exist since 2026-08 (laravel/mcp 1.0). Of those that do not know it most refuse its first
// request and are answered in the older one at once; the others end at it (those of rmcp), or are
// silent.
const (
	newestRevision = "2026-07-28"
	olderRevision  = "2025-11-25"
)

// child is a child that runs.
type child struct {
	*conn
	session *sdk.ClientSession
	offered map[string]jsontext.Value // its listed definitions, by its own names; nil for a tool that cannot be offered
	refused map[string]string         // why
	others  []string                  // names that it listed and that "tools:" does not have

	changed atomic.Bool    // its list has, by its own word
	stopped atomic.Bool    // by us
	probing atomic.Bool    // probe runs
	ended   chan struct{}  // closed when it is gone
	busy    int            // uses under way; Agent.mu guards it, as idle and calls
	asked   map[string]int // calls without an answer, by account; one that a caller left, too
	idle    *time.Timer
}

// waitEnd waits until the session has ended, and ends its subscriptions.
func (c *child) waitEnd() {
	c.session.Wait()
	c.session.Close()
}

func (c *child) stop() {
	c.stopped.Store(true)
	c.Close()
}

// running returns the child with its list, and starts it for an account where it does not run.
func (a *Agent) running(ctx context.Context, account string) (*child, error) {
	if err := a.starting.LockContext(ctx); err != nil {
		return nil, err
	}
	defer a.starting.Unlock()
	a.mu.Lock()
	c := a.child
	a.mu.Unlock()
	if c != nil && (c.stopped.Load() || c.over.Load()) {
		select {
		case <-c.ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	a.mu.Lock()
	life, c, last := a.life, a.child, a.last
	wait := max(time.Until(a.until), time.Until(a.blamed[account].until))
	off := max(a.crashes, a.blamed[account].n) >= maxCrashes
	a.mu.Unlock()
	if life == nil {
		return nil, device.Faultf(device.Unavailable, "%s does not run now; where it is paused, an owner can resume it", a.name)
	}
	// A caller that leaves does not stop the start, or the list: the next one is served by it.
	start, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTime)
	defer cancel()
	defer context.AfterFunc(life, cancel)()
	switch {
	case c != nil && c.changed.CompareAndSwap(true, false):
		if err := a.list(start, c); err != nil {
			err = c.why(start, err) // before it has our words
			if life.Err() == nil {
				c.fail("it does not list its tools any more")
			}
			return nil, device.Faultf(device.Offline, "%s does not list its tools any more: %w", a.name, err)
		}
		return c, nil
	case c != nil:
		return c, nil
	case off:
		return nil, device.Faultf(device.Unavailable, "%s is off, because it crashed %d times; the last time: %s", a.name, maxCrashes, last)
	case wait > 0:
		return nil, device.Faultf(device.Unavailable, "%s failed: %s; it is started again in %v at the earliest", a.name, last, wait.Round(time.Second))
	}
	c, err := a.start(start)
	if err != nil {
		if life.Err() == nil {
			a.mu.Lock()
			a.noteCrash(nil, err.Error())
			a.mu.Unlock()
		}
		return nil, device.Faultf(device.Offline, "%s does not start: %w", a.name, err)
	}
	return c, nil
}

// start starts the child, and takes it into use once it has listed its tools.
func (a *Agent) start(ctx context.Context) (*child, error) {
	c, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.list(ctx, c); err != nil {
		c.Close()
		c.waitEnd()
		return nil, c.why(ctx, err)
	}
	a.mu.Lock()
	if a.life != nil {
		a.child = c
		c.idle = time.AfterFunc(idleTime, func() { a.stopIdle(c) })
	}
	a.mu.Unlock()
	if c.idle == nil {
		c.Close()
		c.waitEnd()
		return nil, errors.New("it is not to run any more")
	}
	slog.Info("child started", "agent", a.name)
	go a.wait(c)
	return c, nil
}

// connect starts the child and greets it. The newest revision has half of the time; a child that was
// greeted in the older one is greeted so again.
func (a *Agent) connect(ctx context.Context) (c *child, err error) {
	if !a.older {
		first, cancel := context.WithTimeout(ctx, startTime/2)
		c, err = a.greet(first, newestRevision)
		if cancel(); err == nil || ctx.Err() != nil {
			return c, err
		}
	}
	c, err = a.greet(ctx, olderRevision)
	a.older = err == nil
	return c, err
}

func (a *Agent) greet(ctx context.Context, revision string) (*child, error) {
	dial := a.world.Dial
	if dial == nil {
		dial = dialChild
	}
	rw, err := dial(ctx, a)
	if err != nil {
		return nil, err
	}
	c := &child{conn: newConn(rw), ended: make(chan struct{}), asked: make(map[string]int)}
	c.name = a.name
	client := sdk.NewClient(&sdk.Implementation{Name: "agentsite", Version: a.world.Version}, &sdk.ClientOptions{
		Logger: slog.New(slog.DiscardHandler), Capabilities: &sdk.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { c.changed.Store(true) },
	})
	if c.session, err = client.Connect(ctx, c.conn, &sdk.ClientSessionOptions{ProtocolVersion: revision}); err != nil {
		c.Close()
		return nil, c.why(ctx, err)
	}
	return c, nil
}

// why returns why a child could not be used.
func (c *child) why(ctx context.Context, err error) error {
	says := c.saysWhy(ctx, err)
	if skips := c.skips(); skips != "" {
		says += "; " + skips
	}
	return errors.New(says)
}

func (c *child) saysWhy(ctx context.Context, err error) string {
	switch cause := c.cause.Load(); {
	case cause != nil:
		return *cause
	case ctx.Err() != nil:
		return "it did not answer in time"
	case c.over.Load(), errors.Is(err, sdk.ErrConnectionClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, syscall.EPIPE):
		return "it ended before it listed its tools; the journal of the machine has its own words"
	}
	return device.Clip(err.Error(), 200)
}

// wait notes the end of a child.
func (a *Agent) wait(c *child) {
	defer close(c.ended)
	c.waitEnd()
	c.Close()
	a.mu.Lock() // until the crash is noted: a call between them would start it without the back-off
	defer a.mu.Unlock()
	if c.idle.Stop(); a.child == c {
		a.child = nil
	}
	a.skips = c.skips()
	if c.stopped.Load() {
		slog.Info("child stopped", "agent", a.name)
		return
	}
	says := "it ended by itself"
	if cause := c.cause.Load(); cause != nil {
		says = *cause
	}
	a.noteCrash(c.asked, says)
}

// noteCrash notes a crash, which delays the next start: for the accounts whose calls had no answer,
// and for all where there was no such call. Of several accounts those count in whose calls it crashed
// most often before. The caller holds mu.
func (a *Agent) noteCrash(asked map[string]int, why string) {
	a.last = why
	if len(asked) == 0 {
		a.until = backOff(a.crashes)
		a.crashes++
	}
	most := 0
	for account := range asked {
		most = max(most, a.blamed[account].n)
	}
	for account := range asked {
		if f := a.blamed[account]; f.n == most {
			a.blamed[account] = failures{f.n + 1, backOff(f.n)}
		}
	}
	slog.Error("child crashed", "agent", a.name, "err", why, "in_a_row", max(a.crashes, most))
}

// stopIdle stops a child without calls.
func (a *Agent) stopIdle(c *child) {
	a.mu.Lock()
	idle := c.busy == 0
	if idle {
		c.stopped.Store(true)
	}
	a.mu.Unlock()
	if idle { // which takes a while
		c.stop()
	}
}

// probe ends a child that answers nothing, after a call that it has not answered.
func (c *child) probe() {
	if !c.probing.CompareAndSwap(false, true) {
		return
	}
	defer c.probing.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	if err := c.session.Ping(ctx, nil); err != nil && ctx.Err() != nil {
		c.fail("it answers nothing")
	}
}

// use returns the child with its list, started for an account where it does not run. It is not idle
// until done is called.
func (a *Agent) use(ctx context.Context, account string) (c *child, done func(), err error) {
	for {
		if c, err = a.running(ctx, account); err != nil {
			return nil, nil, err
		}
		a.mu.Lock()
		gone := c.stopped.Load() || c.over.Load() // meanwhile
		if !gone {
			c.busy++
			c.idle.Stop()
		}
		a.mu.Unlock()
		if !gone {
			return c, func() { a.leave(c) }, nil
		}
	}
}

// leave counts the end of a call.
func (a *Agent) leave(c *child) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.busy--; c.busy == 0 {
		c.idle.Reset(idleTime)
	}
}

// list asks a child for its tools, and withdraws those that are not as accepted.
func (a *Agent) list(ctx context.Context, c *child) error {
	offered, refused := make(map[string]jsontext.Value), make(map[string]string)
	var others []string
	cursor, n := "", 0
	for page := 0; page == 0 || cursor != ""; page++ {
		res, err := c.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return err
		}
		if n += len(res.Tools); n > maxListed || page == maxPages {
			return fmt.Errorf("it lists more than %d tools, or on more than %d pages", maxListed, maxPages)
		}
		for _, t := range res.Tools {
			if t == nil || !slices.Contains(a.Allowed, t.Name) {
				if t != nil && toolName().MatchString(t.Name) {
					others = append(others, t.Name)
				}
				continue
			}
			if _, twice := offered[t.Name]; twice {
				return fmt.Errorf("it lists %s twice", t.Name)
			}
			text, err := canonical(t)
			if err != nil {
				text, refused[t.Name] = nil, err.Error()
			}
			offered[t.Name] = text
		}
		cursor = res.NextCursor
	}
	a.mu.Lock()
	c.offered, c.refused, c.others = offered, refused, others
	changed := a.compare(c)
	a.mu.Unlock()
	if changed {
		a.world.Changed()
	}
	return nil
}

// compare withdraws the tools that a child does not offer as an owner accepted them, and returns
// whether that changed anything. The caller holds mu.
func (a *Agent) compare(c *child) (changed bool) {
	for _, tool := range a.Allowed {
		accepted := a.world.Book.of(a.name, tool)
		other := string(accepted) != string(c.offered[tool])
		if other && accepted != nil && !a.withdrawn[tool] {
			slog.Warn("child changed a tool, which is withdrawn until an owner accepts it", "agent", a.name, "tool", tool)
		}
		changed = changed || a.withdrawn[tool] != other
		a.withdrawn[tool] = other
	}
	return changed
}

// Tools implements tools.Agent: the tools that an owner accepted, in the accepted words, without
// those that the child has changed since.
func (a *Agent) Tools() (all []tools.Tool) {
	for _, tool := range a.Allowed {
		if d, ok := a.accepted(tool); ok {
			t := d.tool(a.offeredAs(tool))
			t.From = KindName + ":" + a.name
			all = append(all, t)
		}
	}
	return all
}

// accepted returns the definition of a tool that may be called.
func (a *Agent) accepted(tool string) (d definition, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := a.world.Book.of(a.name, tool)
	if text == nil || a.withdrawn[tool] {
		return d, false
	}
	return d, json.Unmarshal(text, &d) == nil
}

// Offered implements agent.Offering: it starts the child and compares its offer with the accepted
// definitions.
func (a *Agent) Offered(ctx context.Context) (agent.Offer, error) {
	c, done, err := a.use(ctx, "")
	if err != nil {
		return agent.Offer{}, err
	}
	defer done()
	c.changed.Store(true) // a child need not tell
	if c, err = a.running(ctx, ""); err != nil {
		return agent.Offer{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.offer(c), nil
}

func (a *Agent) offer(c *child) agent.Offer {
	o := agent.Offer{Digest: digest(a.listed(c)), Others: c.others}
	for _, tool := range a.Allowed {
		accepted, offered := a.world.Book.of(a.name, tool), c.offered[tool]
		t := agent.OfferedTool{Name: tool, As: a.offeredAs(tool), Accepted: string(accepted), Offered: string(offered), State: agent.ToolAccepted}
		switch why := c.refused[tool]; {
		case why != "":
			t.State, t.Why = agent.ToolRefused, why
		case offered == nil:
			t.State, t.Why = agent.ToolMissing, "the child has no such tool"
		case accepted == nil:
			t.State = agent.ToolNew
		case string(accepted) != string(offered):
			t.State = agent.ToolChanged
		}
		o.Tools = append(o.Tools, t)
	}
	return o
}

// listed returns the definitions that a child offers, in the order of the configuration.
func (a *Agent) listed(c *child) (all []jsontext.Value) {
	for _, tool := range a.Allowed {
		if text := c.offered[tool]; text != nil {
			all = append(all, text)
		}
	}
	return all
}

// Accept implements agent.Offering: it accepts the offer of an earlier Offered, if the child still
// makes it.
func (a *Agent) Accept(ctx context.Context, digest string) error {
	o, err := a.Offered(ctx)
	if err != nil {
		return err
	}
	if o.Digest != digest {
		return device.Faultf(device.Invalid, "%s offers something else meanwhile: look at agentsite agents tools %s again", a.name, a.name)
	}
	all := make(map[string]jsontext.Value)
	for _, t := range o.Tools {
		if t.Offered != "" {
			all[t.Name] = jsontext.Value(t.Offered)
		}
	}
	if len(all) == 0 {
		return device.Faultf(device.Invalid, "%s offers none of its tools%s", a.name, othersOf(o))
	}
	a.mu.Lock()
	err = a.world.Book.accept(a.name, all)
	if c := a.child; err == nil && c != nil {
		a.compare(c)
	}
	a.mu.Unlock()
	if err == nil {
		a.world.Changed()
	}
	return err
}

func othersOf(o agent.Offer) string {
	if len(o.Others) == 0 {
		return ""
	}
	return "; it has " + strings.Join(o.Others, ", ")
}
