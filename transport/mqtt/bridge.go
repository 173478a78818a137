package mqtt

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/device"
	"agentsite/device/mqtt/packet"

	"github.com/go-json-experiment/json"
)

// The payloads of Home Assistant for availability.
const (
	online  = "online"
	offline = "offline"
	// homeStatus is the topic of Home Assistant's birth and will, unless its owner changed that. It does not depend on
	// the first word of the other topics.
	homeStatus = "homeassistant/status"
)

const (
	promptly   = 0.2             // seconds between two updates of all but measurements
	again      = 2 * time.Second // between two tellings of everything
	maxText    = 200             // bytes of a text for a display
	maxCommand = 64              // bytes of a command for an output
	maxAsked   = 2000            // bytes of what an agent is told
	maxRefused = 30              // times, a second apart, that the site refuses the bridge before the connection ends
)

// bridge passes messages between the site and a broker, over one connection.
type bridge struct {
	*Agent
	self agents.Principal
	site agents.Site
	link *link

	tell chan struct{} // everything is to be told again

	mu       sync.Mutex
	points   map[string]*point // by address
	order    []string          // of the configuration
	outputs  map[string]*output
	asks     map[string]asked // by agent/skill
	askOrder []string
	askFull  map[string]time.Time // by agent/skill: when moveBurst tasks may be asked for again
	gone     map[string]string    // components that the broker still has and the site has not: their platforms
	ignored  int                  // messages that moved nothing, by their form
	working  map[string]bool      // displays and cameras that are asked for something
	stopping bool
	moving   sync.WaitGroup
}

// point is a point of the site as it is told.
type point struct {
	agents.Point
	platform string // of Home Assistant; "" where it has none

	last    state
	known   bool
	event   time.Time // when the last event was
	refused string    // why the last command was not done; "" where it was
}

// state is the message in a point's topic.
type state struct {
	Value   device.Value   `json:"value"`
	Quality device.Quality `json:"quality"`
	Why     string         `json:"why,omitzero"`
	Refused string         `json:"refused,omitzero"`
	Effect  string         `json:"effect,omitzero"` // as agents.Output has it
}

func newBridge(a *Agent, self agents.Principal, site agents.Site, l *link) *bridge {
	return &bridge{
		Agent: a, self: self, site: site, link: l, tell: make(chan struct{}, 1),
		points: make(map[string]*point), outputs: make(map[string]*output), gone: make(map[string]string),
		working: make(map[string]bool),
		askFull: make(map[string]time.Time),
	}
}

// run works until ctx ends or the connection does, and returns why. Then it has released what it holds.
func (b *bridge) run(whole context.Context) error {
	ctx, end := context.WithCancelCause(whole)
	read := make(chan struct{})
	var working sync.WaitGroup
	b.link.subscribe(b.filters()...)
	working.Go(func() {
		end(b.link.write(ctx, func() []message { return b.goodbye(errors.Is(context.Cause(whole), agent.ErrRemoved)) }))
		select { // the broker closes; one whose last words are not read takes that for a failure, and publishes the will
		case <-read:
		case <-time.After(closeTimeout):
		}
		b.link.conn.Close()
	})
	working.Go(func() {
		end(b.link.read(func(p packet.Packet) { b.got(ctx, p) }))
		close(read)
	})
	working.Go(func() { end(b.watch(ctx)) })
	<-ctx.Done()
	b.mu.Lock()
	b.stopping = true
	b.mu.Unlock()
	b.moving.Wait() // released first, whatever the connection does
	working.Wait()
	return context.Cause(ctx)
}

// goodbye returns what is said at the end: that the site is gone, or, where it will not come back, nothing that is
// kept.
func (b *bridge) goodbye(removed bool) []message {
	status := b.status()
	if !removed || b.Discovery == off {
		return []message{{status, []byte(offline), b.Discovery != off}}
	}
	return []message{{b.discoveryTopic(), nil, true}, {status, nil, true}}
}

// filters returns the subscriptions of the bridge.
func (b *bridge) filters() []packet.Filter {
	f := []packet.Filter{{Topic: b.base() + "/+/+/set"}, {Topic: b.base() + "/+/+/capture"}, {Topic: b.base() + "/ask/+/+/press"}}
	f = append(f, packet.Filter{Topic: homeStatus}, packet.Filter{Topic: b.status()})
	if b.Discovery != off {
		f = append(f, packet.Filter{Topic: b.discoveryTopic(), Kept: true})
		if own := b.Discovery + "/status"; own != homeStatus {
			f = append(f, packet.Filter{Topic: own})
		}
	}
	return f
}

func (b *bridge) discoveryTopic() string { return b.discoveryOf(b.Discovery) }

func (b *bridge) discoveryOf(prefix string) string {
	return prefix + "/device/" + b.world.ID + "/config"
}

// topic returns the topic of a point's state.
func (b *bridge) topic(address string) string { return b.base() + "/" + address }

// watch tells the broker what the site tells the bridge, until ctx ends. The connection stays where the site refuses
// that for a while, as in the middle of a reload.
func (b *bridge) watch(ctx context.Context) error {
	for refused := 0; ; {
		err := b.tellOffer(ctx)
		_, own := errors.AsType[*device.Fault](err)
		switch {
		case errors.Is(err, errOffer):
			refused = 0
			continue
		case ctx.Err() != nil || !own || refused == maxRefused:
			return err
		}
		refused++
		b.Say(agent.Waiting, "the site refuses the bridge, and is asked again: %v", err)
		if err := device.Sleep(ctx, b.retry); err != nil {
			return err
		}
	}
}

// tellOffer tells what may be read and moved now, until that changes.
func (b *bridge) tellOffer(ctx context.Context) error {
	prompt, slow, events, err := b.describe(ctx)
	if err != nil {
		return err
	}
	b.all()
	u, _ := url.Parse(b.Broker)
	b.Say(agent.Idle, "it tells %s of %d points", u.Host, len(prompt)+len(slow)+len(events))
	part, changed := context.WithCancelCause(ctx)
	defer changed(nil)
	var watching sync.WaitGroup
	watches := []agents.WatchRequest{{Points: prompt, Every: promptly, OfferOnly: len(prompt) == 0}}
	if len(slow) > 0 {
		watches = append(watches, agents.WatchRequest{Points: slow, Every: b.Every.Seconds()})
	}
	if len(events) > 0 { // each at once: the next one is another
		watches = append(watches, agents.WatchRequest{Points: events})
	}
	for _, w := range watches {
		watching.Go(func() {
			changed(b.site.Watch(part, b.self, w, func(u agents.Update) error {
				if u.Offer {
					return errOffer
				}
				b.update(u.Readings)
				return nil
			}))
		})
	}
	watching.Go(func() { b.retell(part) })
	watching.Wait()
	return context.Cause(part)
}

// errOffer ends a watch when what may be read and moved has changed.
var errOffer = errors.New("the offer has changed")

// subscribing is when everything is told again after it was: Home Assistant subscribes to the topics of an entity some
// time after it has discovered it, and states are not kept.
var subscribing = []time.Duration{2 * time.Second, 15 * time.Second}

// retell tells everything again when somebody came who has not heard it, but not all the time.
func (b *bridge) retell(ctx context.Context) {
	for late := subscribing; ; {
		var due <-chan time.Time
		if len(late) > 0 {
			due = time.After(late[0])
		}
		select {
		case <-ctx.Done():
			return
		case <-due:
			late = late[1:]
		case <-b.tell:
			late = subscribing
		}
		b.all()
		if device.Sleep(ctx, again) != nil {
			return
		}
	}
}

// everything has everything be told again, soon.
func (b *bridge) everything() { poke(b.tell) }

// describe asks what the bridge may read and move, and returns the points that are told soon, those that are told now
// and then, and the events.
func (b *bridge) describe(ctx context.Context) (prompt, slow, events []string, err error) {
	offer, err := b.site.Offer(ctx, b.self)
	if err != nil {
		return nil, nil, nil, err
	}
	list, err := b.site.Points(ctx, b.self, agents.SiteRequest{})
	if err != nil {
		return nil, nil, nil, err
	}
	moves := slices.Concat(offer.Switch, offer.Level)
	asks, askOrder := b.skills(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.platforms()
	points, outputs := make(map[string]*point), make(map[string]*output)
	b.order, b.asks, b.askOrder = nil, asks, askOrder
	for _, p := range list.Points {
		if strings.Count(p.Point, "/") != 1 {
			continue // another site's, which has a bridge of its own
		}
		one := &point{Point: p, platform: b.platform(p, offer, slices.Contains(moves, p.Point))}
		if before := b.points[p.Point]; before != nil {
			one.last, one.known, one.event, one.refused = before.last, before.known, before.event, before.refused
		}
		points[p.Point] = one
		b.order = append(b.order, p.Point)
		switch {
		case !slices.Contains(offer.Read, p.Point):
		case p.Kind == device.KindMeasurement:
			slow = append(slow, p.Point)
		case p.Kind == device.KindEvent:
			events = append(events, p.Point)
		case p.Kind != device.KindText && p.Kind != device.KindImage:
			prompt = append(prompt, p.Point)
		}
		if slices.Contains(moves, p.Point) {
			o := b.outputs[p.Point]
			if o == nil {
				o = &output{bridge: b, address: p.Point, wake: make(chan struct{}, 1)}
			}
			o.set(p)
			outputs[p.Point] = o
		}
	}
	for address, o := range b.outputs {
		if outputs[address] == nil {
			o.want(device.Value{}, true) // it may not any more, and what it held has ended
		}
	}
	b.points, b.outputs = points, outputs
	now := b.platforms()
	for key, platform := range before {
		if now[key] == "" {
			b.gone[key] = platform
		}
	}
	for key := range now {
		delete(b.gone, key)
	}
	return prompt, slow, events, nil
}

// all tells everything: who is there, what there is, and how it is.
func (b *bridge) all() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.announce()
	b.link.publish(message{b.status(), []byte(online), b.Discovery != off}, true)
	for _, address := range b.order {
		if p := b.points[address]; p.known {
			b.publish(p)
		}
	}
}

// announce tells Home Assistant what there is; with mu.
func (b *bridge) announce() {
	if b.Discovery == off { // what an earlier configuration left there
		b.link.publish(message{b.discoveryOf("homeassistant"), nil, true}, true)
		b.link.publish(message{b.status(), nil, true}, true)
		return
	}
	text, err := json.Marshal(b.discovery(), json.Deterministic(true))
	if err != nil {
		slog.Error("the site cannot be described to Home Assistant", "err", err)
		return
	}
	if len(text)+256 > b.link.longest {
		slog.Error("the broker does not take a description of so many points: give the bridge fewer to read", "bytes",
			len(text))
	}
	b.link.publish(message{b.discoveryTopic(), text, true}, true)
}

// publish tells a point's state; with mu.
func (b *bridge) publish(p *point) {
	s := p.last
	s.Refused = p.refused
	text, err := json.Marshal(s)
	if err == nil {
		b.link.publish(message{b.topic(p.Point.Point), text, false}, true)
	}
}

// update tells readings that have changed.
func (b *bridge) update(readings []agents.Reading) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range readings {
		p := b.points[r.Point]
		if p == nil {
			continue
		}
		if p.Kind == device.KindEvent {
			b.happened(p, r)
			continue
		}
		s := state{Value: r.Value, Quality: r.Quality, Why: r.Why}
		if d := r.Detail; d != nil {
			if s.Why == "" {
				s.Why = d.Why
			}
			if d.Fault != "" {
				s.Why = d.Fault
			}
			s.Effect = d.Effect
		}
		if p.known && p.last == s {
			continue
		}
		p.last, p.known = s, true
		b.publish(p)
	}
}

// happened tells an event once; with mu. One that was before the bridge came is not told.
func (b *bridge) happened(p *point, r agents.Reading) {
	at := time.Now().Add(-time.Duration(r.Age * float64(time.Second)))
	first := !p.known
	p.last, p.known = state{Value: r.Value, Quality: r.Quality, Why: r.Why}, true
	if r.Quality != device.Good || at.Sub(p.event) < 50*time.Millisecond {
		return
	}
	p.event = at
	if !first {
		b.link.publish(message{b.topic(p.Point.Point) + "/event", []byte(r.Value.String()), false}, false)
	}
}
