// Package announce announces a site on the media. It signs the site's record, and makes a new one
// when something in it changes or the old one gets old.
//
// The caller passes the announced data as values. The package imports discovery, discovery/card and
// node/identity.
package announce

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/node/identity"
)

const (
	// A record holds for a day; the next one is made after half of that.
	recordLifetime = 24 * time.Hour
	recordInterval = recordLifetime / 2
	recordRetry    = time.Minute // after a record could not be made

	// checkInterval is the interval of two checks: whether the record became too old while the
	// machine slept, and its sequence too low while the clock was not set.
	checkInterval = time.Minute

	// A change is announced after minDelay, because changes seldom come alone. The delay
	// doubles up to maxDelay while changes go on, because each record is sent to many and fetched by
	// many. After quietPeriod without a change it is minDelay again.
	minDelay, maxDelay = time.Second, time.Minute
	quietPeriod        = 10 * time.Minute

	maxCapabilities = 64
)

// Options are the content of a record and the functions that it is made with. The functions are
// called concurrently.
type Options struct {
	Key      identity.Key
	Name     string
	URL      string              // of the site on its own network; "" where it is not reached there
	Public   bool                // the record shows the points, and the result of Agents, to everybody
	Claimed  func() bool         // whether somebody owns the site; before, nothing of its points is announced
	Sequence *discovery.Sequence // numbers the records
	Now      func() (t time.Time, sure bool)
	// Agents returns the listed capabilities of the site's agents, sorted and without duplicates,
	// such as agent/routine and skill/irrigation; nil for none. Renew follows each change.
	Agents func() []string
	// Shared returns the words by which members of the realm find the shared bundles of the site,
	// such as bundle/abc; nil for none. They are in no public record. Renew follows each change.
	Shared func() []string
}

// Network is the site's part in the global network.
type Network interface {
	Realm() discovery.Realm // the zero one for none
	Addresses() []string
	Media() map[string]discovery.Medium
	OnAddressChange(ctx context.Context, changed func()) // blocks until ctx ends
	WaitReachable(ctx context.Context)                   // blocks for a bounded time
}

// Announcer announces one site. It is safe for concurrent use.
type Announcer struct {
	Options
	slept   func() time.Duration
	offer   atomic.Pointer[[]discovery.Kind]
	changes chan struct{} // something in the record may have changed
	current atomic.Pointer[discovery.Signed]
	network Network // set by Run; nil without one
}

// New makes an announcer, which announces nothing before Run.
func New(o Options) *Announcer {
	return &Announcer{Options: o, slept: discovery.Suspended, changes: make(chan struct{}, 1)}
}

// Point is a point that a site offers: its kind and its name without the device.
type Point struct{ Kind, Name string }

// SetOffer replaces the points that the site offers.
func (a *Announcer) SetOffer(points []Point) {
	var all []discovery.Kind
	for _, p := range points {
		i := slices.IndexFunc(all, func(k discovery.Kind) bool { return k.Kind == p.Kind })
		if i < 0 {
			i, all = len(all), append(all, discovery.Kind{Kind: p.Kind})
		}
		if !slices.Contains(all[i].Points, p.Name) {
			all[i].Points = append(all[i].Points, p.Name)
		}
	}
	all = discovery.SortOffer(all)
	a.offer.Store(&all)
	a.Renew()
}

// offered returns the points by their kinds, nil while nobody owns the site. The caller does
// not change it.
func (a *Announcer) offered() []discovery.Kind {
	if offer := a.offer.Load(); offer != nil && a.Claimed() {
		return *offer
	}
	return nil
}

// agents returns the listed capabilities of the agents, by kinds; nil while the site has no owner.
func (a *Announcer) agents() (all []discovery.Kind) {
	if a.Agents == nil || !a.Claimed() {
		return nil
	}
	for _, name := range a.Agents() {
		kind, word, _ := strings.Cut(name, "/")
		if last := len(all) - 1; last >= 0 && all[last].Kind == kind {
			all[last].Points = append(all[last].Points, word)
		} else {
			all = append(all, discovery.Kind{Kind: kind, Points: []string{word}})
		}
	}
	return all
}

// Renew makes Run compare the record with its current content, and announce a new one if that
// differs. It does not block.
func (a *Announcer) Renew() {
	select {
	case a.changes <- struct{}{}:
	default:
	}
}

// Newer makes the next record newer than r, a record of the site that others know. They know
// a newer one than the site after it was restored, or could not write, or its clock was wrong.
func (a *Announcer) Newer(r *discovery.Signed) {
	if a.Sequence.Advance(r.Sequence) {
		slog.Info("others know a newer record of this site; announcing a new one", "sequence", r.Sequence)
		a.Renew()
	}
}

// Card returns the card that the site shows to others of its realm.
func (a *Announcer) Card() card.Card {
	c := card.Card{Capabilities: a.capabilities()}
	if r := a.current.Load(); r != nil {
		c.Record = r.Bytes()
	}
	return c
}

// Run announces the site until ctx ends: on near at once, and on the network's media when
// others can reach it through that. It is called once; network is nil for none.
func (a *Announcer) Run(ctx context.Context, near map[string]discovery.Medium, network Network) {
	inRealm := network != nil && network.Realm().Exists()
	if len(near) == 0 && !inRealm {
		return // nobody would see it
	}
	a.network = network
	reached := make(chan struct{}) // closed when others may reach the site from anywhere
	var following sync.WaitGroup
	defer following.Wait()
	if inRealm {
		following.Go(func() {
			network.WaitReachable(ctx)
			close(reached)
		})
	}
	if network != nil {
		following.Go(func() { network.OnAddressChange(ctx, a.Renew) })
	}
	a.announce(ctx, near, reached)
}

// announce shows one record after another until ctx ends, on near alone until reached is
// closed.
func (a *Announcer) announce(ctx context.Context, near map[string]discovery.Medium, reached <-chan struct{}) {
	media := discovery.NewDirectory(slog.Default(), near)
	check := time.NewTicker(checkInterval)
	defer check.Stop()
	delay := minDelay
	for ctx.Err() == nil {
		begun, asleep, holds := time.Now(), a.slept(), recordInterval
		record, sure, err := a.next()
		if err != nil {
			slog.Error("site cannot be announced", "retry", recordRetry, "err", err)
			holds = recordRetry
		}
		showing, end := context.WithTimeout(ctx, holds)
		var announcing sync.WaitGroup
		if err == nil {
			a.current.Store(record)
			on := media // replaced below
			announcing.Go(func() { on.Announce(showing, record) })
		}
		for stays := true; stays; {
			select {
			case <-reached:
				all := maps.Clone(a.network.Media())
				maps.Copy(all, near)
				reached, media, stays = nil, discovery.NewDirectory(slog.Default(), all), false
			case <-a.changes:
				discovery.Sleep(showing, delay)
				stays = err == nil && a.unchanged(record)
			case <-check.C:
				stays = err != nil || time.Since(begun)+a.slept()-asleep < holds && !a.behind(record, sure)
			case <-showing.Done():
				stays = false
			}
		}
		end()
		announcing.Wait() // for its goodbye
		if delay = min(2*delay, maxDelay); time.Since(begun) > quietPeriod {
			delay = minDelay
		}
	}
}

// unchanged reports whether a record made now would say the same.
func (a *Announcer) unchanged(was *discovery.Signed) bool {
	now, err := a.sign(was.Sequence)
	return err == nil && a.Sequence.Last() <= was.Sequence && bytes.Equal(now.Bytes(), was.Bytes())
}

// behind reports whether the clock was set after the record was made, and the record's sequence is
// lower than the time. Others may know a record that was numbered by the time.
func (a *Announcer) behind(r *discovery.Signed, sure bool) bool {
	now, isSure := a.Now()
	return isSure && !sure && r.Sequence < uint64(max(now.Unix(), 0))
}

// next makes the next record, and reports whether the time was known. Its sequence is the last one
// plus one, or the time if that is greater. So it also exceeds sequences that were announced after
// a backup was made which has been restored since.
func (a *Announcer) next() (r *discovery.Signed, sure bool, err error) {
	now, sure := a.Now()
	sequence, err := a.Sequence.Next(uint64(max(now.Unix(), 1)))
	if err != nil { // after a restart the site learns from others how far it was
		slog.Error("sequence of the site's record cannot be stored", "err", err)
	}
	r, err = a.sign(sequence)
	return r, sure, err
}

// sign makes the record of that sequence. Where it is too long, it is made without the public
// offer, and then without the least useful addresses.
func (a *Announcer) sign(sequence uint64) (*discovery.Signed, error) {
	r := discovery.Record{Site: a.Key.ID(), Sequence: sequence, Name: a.Name, Lifetime: recordLifetime}
	if a.URL != "" {
		r.Addresses = append(r.Addresses, a.URL)
	}
	if a.network != nil {
		r.Addresses = append(r.Addresses, a.network.Addresses()...)
		if can, realm := a.capabilities(), a.network.Realm(); len(can) > 0 && realm.Exists() { // so that others of the realm see a change
			r.Digest = realm.Hash("offer", can...)
		}
	}
	if a.Public {
		r.Offer = slices.Concat(a.offered(), a.agents()) // Sign sorts it
	}
	signed, err := r.Sign(a.Key)
	if err != nil && r.Offer != nil {
		slog.Warn("public offer is too long and is not announced", "err", err)
		r.Offer = nil
		signed, err = r.Sign(a.Key)
	}
	for err != nil && len(r.Addresses) > 1 {
		r.Addresses = r.Addresses[:len(r.Addresses)-1]
		signed, err = r.Sign(a.Key)
	}
	return signed, err
}

// capabilities returns the words by which the site is found in the global network: kinds of points,
// listed capabilities of its agents, and kinds with names of points. If there are too many, the
// last ones are left out.
func (a *Announcer) capabilities() []string {
	var kinds, agents, points []string
	for _, k := range a.offered() {
		kind := k.Kind
		if kind == "image" {
			kind = "camera"
		}
		kinds = append(kinds, kind)
		for _, point := range k.Points {
			points = append(points, kind+"/"+point)
		}
	}
	for _, k := range a.agents() {
		for _, word := range k.Points {
			agents = append(agents, k.Kind+"/"+word)
		}
	}
	var shared []string
	if a.Shared != nil && a.Claimed() {
		shared = a.Shared()
	}
	all := slices.Concat(kinds, agents, shared, points)
	return all[:min(len(all), maxCapabilities)]
}
