package remote

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
)

const (
	// A site that is away is looked for each time that it has been away for a tenth
	// longer, within these bounds, and whenever somebody calls it.
	shortestPause = 250 * time.Millisecond
	longestPause  = time.Minute
	// maxRunning bounds the calls to one site that run at a time; an answer may take 4 MiB.
	maxRunning = 8
	// gather is how long others are waited for that somebody watches, or does not any
	// more: older clients say it one by one.
	gather = 50 * time.Millisecond
	// What a site may tell at once, and each second. What it offers counts as offerNews.
	newsAtOnce, newsPerSecond, offerNews = 2000, 500, 100
)

// peer is a member with what is known of it.
type peer struct {
	house   *House
	name    string
	site    Site
	kick    chan struct{} // buffered: look for it now
	running chan struct{} // a place for each call

	// With house.mu.
	offer offer              // nil while it is away
	had   offer              // the last
	lost  time.Time          // since when it is away; zero before it was there
	why   error              // why it is away; nil before it was looked for
	tried chan struct{}      // closed when it was looked for once more
	renew context.CancelFunc // has what is watched now be followed
}

func newPeer(h *House, m Member) *peer {
	return &peer{
		house: h, name: m.Name, site: m.Site, kick: make(chan struct{}, 1), running: make(chan struct{}, maxRunning),
		tried: make(chan struct{}), renew: func() {},
	}
}

// run keeps in touch with the site until ctx ends.
func (p *peer) run(ctx context.Context) {
	away := time.Now() // since when, as far as pauses go
	for ctx.Err() == nil {
		stayed, err := p.follow(ctx)
		// Who stays for long is looked for soon, and who goes as soon as it has come
		// less and less often.
		now := time.Now()
		if away = away.Add(20 * stayed); away.After(now) {
			away = now
		}
		p.leave(err)
		pause := min(max(now.Sub(away)/10, shortestPause), longestPause)
		select {
		case <-ctx.Done():
		case <-p.kick:
		case <-time.After(pause):
		}
	}
}

var (
	errRenewed      = errors.New("others are watched now")
	errEnded        = errors.New("it has ended")
	errTellsTooMuch = errors.New("it tells more than a site has to tell")
)

// follow hears what the site tells, until it is gone. Stayed is how long it was there.
func (p *peer) follow(ctx context.Context) (stayed time.Duration, err error) {
	var came time.Time
	for {
		following, stop := context.WithCancelCause(ctx)
		wanted := p.wants(func() { stop(errRenewed) })
		begun, told, first := time.Now(), 0, true
		err = p.site.Follow(following, wanted, func(n News) {
			if told++; n.Tools != nil {
				told += offerNews
			}
			switch {
			case told > newsAtOnce+newsPerSecond*int(time.Since(begun)/time.Second):
				stop(errTellsTooMuch)
			case n.Tools == nil:
				p.changed(n.URI)
			default:
				if came.IsZero() {
					came = time.Now()
				}
				p.come(offerOf(n.Tools))
				for _, uri := range wanted {
					if first { // who watches may have missed something
						p.changed(uri)
					}
				}
				first = false
			}
		})
		cause := context.Cause(following)
		stop(nil)
		switch {
		case cause == errRenewed:
			time.Sleep(gather)
			continue
		case cause == errTellsTooMuch:
			return 0, cause
		case err == nil:
			err = errEnded
		}
		if !came.IsZero() {
			stayed = time.Since(came)
		}
		return stayed, err
	}
}

// wants returns the resources that somebody watches, as they are called there, and has
// renew be called when these change.
func (p *peer) wants(renew context.CancelFunc) []string {
	p.house.mu.Lock()
	defer p.house.mu.Unlock()
	p.renew = renew
	var uris []string
	for here := range p.house.watched {
		if site, there, _ := split(here); site == p.name {
			uris = append(uris, scheme+there)
		}
	}
	slices.Sort(uris)
	return uris[:min(len(uris), maxList)]
}

// changed announces a resource, where it is one that somebody watches.
func (p *peer) changed(there string) {
	here := p.name + "/" + strings.TrimPrefix(there, scheme)
	p.house.mu.Lock()
	watched := p.house.watched[here] > 0
	p.house.mu.Unlock()
	if watched {
		p.house.announce(agents.Change{URI: scheme + here})
	}
}

// come notes what the site offers now.
func (p *peer) come(o offer) {
	p.house.mu.Lock()
	same := p.offer != nil && reflect.DeepEqual(p.offer, o)
	p.offer, p.had, p.why = o, o, nil
	p.noteTry()
	p.house.mu.Unlock()
	if !same {
		p.house.offerChanged()
	}
}

// leave notes that the site is away.
func (p *peer) leave(err error) {
	p.house.mu.Lock()
	was := p.offer != nil
	if was {
		p.lost = time.Now()
	}
	p.offer, p.why = nil, err
	p.noteTry()
	p.house.mu.Unlock()
	if was {
		p.house.offerChanged()
	}
}

// noteTry tells who waits. The lock is held.
func (p *peer) noteTry() {
	close(p.tried)
	p.tried = make(chan struct{})
}

// doubt has the site be followed anew after a call that it has not answered: it may be
// gone, and nothing has said so yet.
func (p *peer) doubt(err error) {
	if _, answered := kindOf(err); answered || errors.Is(err, context.Canceled) {
		return
	}
	p.house.mu.Lock()
	defer p.house.mu.Unlock()
	p.renew()
}

// there is what the site offers. One that is away is looked for at once, and waited for
// until ctx ends; then the error says that it is away.
func (p *peer) there(ctx context.Context) (offer, error) {
	p.house.mu.Lock()
	o, tried := p.offer, p.tried
	p.house.mu.Unlock()
	if o != nil {
		return o, nil
	}
	select {
	case p.kick <- struct{}{}:
	default: // it is on its way
	}
	select {
	case <-tried:
	case <-ctx.Done():
	}
	p.house.mu.Lock()
	o = p.offer
	p.house.mu.Unlock()
	if o == nil {
		return nil, p.absent(nil)
	}
	return o, nil
}

// last is what the site offered last, nil where it never was there.
func (p *peer) last() offer {
	p.house.mu.Lock()
	defer p.house.mu.Unlock()
	return p.had
}
