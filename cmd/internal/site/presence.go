package site

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/agents/things"
	"agentsite/cmd/internal/internet"
	"agentsite/device"
	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/discovery/mdns"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/node/state"
)

const (
	// A record holds for a day; another one follows after half of that.
	recordLife  = 24 * time.Hour
	recordEvery = recordLife / 2
	recordAgain = time.Minute // where it could not be made

	// lookEvery is how often it is looked whether a record has become too old while the
	// machine slept, or its sequence while the time was not known.
	lookEvery = time.Minute

	// What changes is waited for that long, as it seldom changes alone; and longer where
	// it changes again and again: each record is told to many, and fetched by many.
	changeSoon, changeLate = time.Second, time.Minute
	changeQuiet            = 10 * time.Minute // after which it is soon again

	maxCapabilities = 64
)

// presence tells others that the site is there.
type presence struct {
	folder  state.Folder
	key     identity.Key
	numbers *discovery.Sequence
	slept   func() time.Duration
	name    string
	book    *access.Store
	https   string            // the site's URL on its own network; "" where nobody else comes to it
	far     *internet.Network // nil where it has no part in that
	public  bool
	things  func() []things.Thing
	again   chan struct{} // something of it may be different
	now     atomic.Pointer[discovery.Signed]
	realm   *discovery.Directory // who else of its realm is there; nil without one
}

// present is how the site is announced.
func present(f state.Folder, key identity.Key, cfg *config.Site, book *access.Store, at net.Addr, all func() []things.Thing) *presence {
	p := &presence{
		folder: f, key: key, name: cfg.Name, book: book, public: cfg.Found.Public, things: all, again: make(chan struct{}, 1),
		numbers: recordSequence(f), slept: discovery.Suspended,
	}
	if at == nil || !cfg.Found.MDNS {
		return p
	}
	listens, err := netip.ParseAddrPort(at.String())
	if err != nil || listens.Addr().IsLoopback() { // for this machine alone
		return p
	}
	p.https = "https://" + net.JoinHostPort(discovery.HostName(key.ID()), fmt.Sprint(listens.Port())) + "/mcp"
	return p
}

// goFar has the site announced in the global network, too.
func (p *presence) goFar(in *internet.Network) {
	if p.far = in; in != nil {
		p.realm = in.Directory()
	}
}

// renew has the record made anew where it would be another.
func (p *presence) renew() {
	if p == nil {
		return
	}
	select {
	case p.again <- struct{}{}:
	default:
	}
}

// newer has the next record be newer than one of the site that others know: it was
// restored, or could not write, or its clock was wrong.
func (p *presence) newer(r *discovery.Signed) {
	if p.numbers.Advance(r.Sequence) {
		slog.Info("others know a newer record of this site than its own, which is made anew", "sequence", r.Sequence)
		p.renew()
	}
}

// card is what the site shows to those of its realm.
func (p *presence) card() card.Card {
	c := card.Card{Capabilities: p.capabilities()}
	if r := p.now.Load(); r != nil {
		c.Record = r.Bytes()
	}
	return c
}

// media are the ways on which the site is announced, none for not at all: on its own
// network, and in the rest of the world once it is reached from there.
func (p *presence) media(reached bool) *discovery.Directory {
	all := make(map[string]discovery.Medium)
	if p.https != "" {
		all["mdns"] = new(mdns.Medium)
	}
	if reached && p.far != nil {
		maps.Copy(all, p.far.Media())
	}
	return discovery.NewDirectory(slog.Default(), all)
}

// Run announces the site until ctx ends.
func (p *presence) Run(ctx context.Context) {
	if p.https == "" && p.realm == nil {
		return
	}
	reached := make(chan struct{}) // closed when others may reach it from anywhere
	var following sync.WaitGroup
	defer following.Wait()
	if p.realm != nil {
		following.Go(func() {
			p.far.WaitReachable(ctx)
			close(reached)
		})
		following.Go(func() { p.realm.Run(ctx) })
	}
	if p.far != nil {
		following.Go(func() { p.far.OnAddressChange(ctx, p.renew) })
	}
	p.announce(ctx, p.media, reached)
}

// announce announces the site on media until ctx ends, on more once it is reached.
func (p *presence) announce(ctx context.Context, on func(reached bool) *discovery.Directory, reached <-chan struct{}) {
	media := on(false)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	pause := changeSoon
	for ctx.Err() == nil {
		begun, asleep, holds := time.Now(), p.slept(), recordEvery
		record, sure, err := p.record()
		if err != nil {
			slog.Error("the site cannot be announced, which is tried again", "after", recordAgain, "err", err)
			holds = recordAgain
		}
		one, end := context.WithTimeout(ctx, holds)
		var announcing sync.WaitGroup
		if err == nil {
			p.now.Store(record)
			announcing.Go(func() { media.Announce(one, record) })
		}
		for stays := true; stays; {
			select {
			case <-reached:
				reached, media, stays = nil, on(true), false
			case <-p.again:
				discovery.Sleep(one, pause)
				stays = err == nil && p.same(record)
			case <-look.C:
				stays = err != nil || time.Since(begun)+p.slept()-asleep < holds && !p.behind(record, sure)
			case <-one.Done():
				stays = false
			}
		}
		end()
		announcing.Wait() // its goodbye
		if pause = min(2*pause, changeLate); time.Since(begun) > changeQuiet {
			pause = changeSoon
		}
	}
}

// same reports whether a record would say the same if it was made now.
func (p *presence) same(was *discovery.Signed) bool {
	now, err := p.sign(was.Sequence)
	return err == nil && p.numbers.Last() <= was.Sequence && bytes.Equal(now.Bytes(), was.Bytes())
}

// behind reports whether the time is known now, and was not when the record was made: others
// may have one that was made by it.
func (p *presence) behind(r *discovery.Signed, sure bool) bool {
	now, isSure := p.book.Now()
	return isSure && !sure && r.Sequence < uint64(max(now.Unix(), 0))
}

// record is a new one, and whether the time was known. Its sequence is greater than all
// before: by one, or by the time as far as it is known, which is greater than those of after
// a backup that was put back.
func (p *presence) record() (r *discovery.Signed, sure bool, err error) {
	now, sure := p.book.Now()
	sequence, err := p.numbers.Next(uint64(max(now.Unix(), 1)))
	if err != nil { // others tell a site that does not know how far it was
		slog.Error("the sequence of what the site announces cannot be kept", "err", p.folder.Unusable(err))
	}
	r, err = p.sign(sequence)
	return r, sure, err
}

// sign makes the record of that sequence. What does not fit is left out: first what is
// public, and then the addresses that are of least use.
func (p *presence) sign(sequence uint64) (*discovery.Signed, error) {
	r := discovery.Record{Site: p.key.ID(), Sequence: sequence, Name: p.name, Lifetime: recordLife}
	if p.https != "" {
		r.Addresses = append(r.Addresses, p.https)
	}
	if p.far != nil {
		r.Addresses = append(r.Addresses, p.far.Addresses()...)
		if can := p.capabilities(); len(can) > 0 && p.far.Realm().Exists() { // so that those of the realm see when it can do something else
			r.Digest = p.far.Realm().Hash("offer", can...)
		}
	}
	if p.public && p.book.Claimed() {
		r.Offer = public(p.things())
	}
	signed, err := r.Sign(p.key)
	if err != nil && r.Offer != nil {
		slog.Warn("what the site offers is too much to be announced", "err", err)
		r.Offer = nil
		signed, err = r.Sign(p.key)
	}
	for err != nil && len(r.Addresses) > 1 {
		r.Addresses = r.Addresses[:len(r.Addresses)-1]
		signed, err = r.Sign(p.key)
	}
	return signed, err
}

// capabilities are by what the site is found in the global network: kinds, and kinds with
// the names of points; none before somebody owns it.
func (p *presence) capabilities() (all []string) {
	if !p.book.Claimed() {
		return nil
	}
	for _, k := range public(p.things()) {
		kind := k.Kind
		if kind == string(device.KindImage) {
			kind = "camera"
		}
		all = append(all, kind)
		for _, point := range k.Points {
			all = append(all, kind+"/"+point)
		}
	}
	return all[:min(len(all), maxCapabilities)]
}

// public are the points of all things by their kinds, as everybody may know them.
func public(offered []things.Thing) (all []discovery.Kind) {
	var points []device.Point
	for _, t := range offered {
		points = append(points, t.Description.Points...)
	}
	for _, p := range points {
		i := slices.IndexFunc(all, func(k discovery.Kind) bool { return k.Kind == string(p.Kind) })
		if i < 0 {
			i, all = len(all), append(all, discovery.Kind{Kind: string(p.Kind)})
		}
		if !slices.Contains(all[i].Points, p.Name) {
			all[i].Points = append(all[i].Points, p.Name)
		}
	}
	for _, k := range all {
		slices.Sort(k.Points)
	}
	slices.SortFunc(all, func(a, b discovery.Kind) int { return strings.Compare(a.Kind, b.Kind) })
	return all
}

// recordSequence numbers the records of the folder's site.
func recordSequence(f state.Folder) *discovery.Sequence {
	return discovery.NewSequence(f.Sequence(), f.WriteSequence)
}
