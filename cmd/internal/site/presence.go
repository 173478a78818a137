package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/agents/things"
	"agentsite/device"
	"agentsite/discovery"
	"agentsite/discovery/mdns"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/identity"
)

const (
	// A record holds for a day; another one follows after half of that.
	recordLife  = 24 * time.Hour
	recordEvery = recordLife / 2
	recordAgain = time.Minute // where the disk did not take its sequence

	sequenceName = "sequence"
)

// presence tells the network that the site is there.
type presence struct {
	folder Folder
	key    identity.Key
	name   string
	book   *access.Book
	at     net.Addr
	public bool
	things func() []things.Thing
	again  chan struct{} // what is public may be different
}

// present is how the site is announced, nil for not at all: what listens for this machine
// alone is nobody else's to find.
func present(f Folder, key identity.Key, cfg *config.Site, book *access.Book, at net.Addr, all func() []things.Thing) *presence {
	if at == nil || !cfg.Found.MDNS {
		return nil
	}
	if listens, err := netip.ParseAddrPort(at.String()); err != nil || listens.Addr().IsLoopback() {
		return nil
	}
	return &presence{f, key, cfg.Name, book, at, cfg.Found.Public, all, make(chan struct{}, 1)}
}

// renew has the record made anew where it would be another.
func (p *presence) renew() {
	if p == nil || !p.public {
		return
	}
	select {
	case p.again <- struct{}{}:
	default:
	}
}

// Run announces the site until ctx ends.
func (p *presence) Run(ctx context.Context) {
	if p == nil {
		return
	}
	media := discovery.NewDirectory(slog.Default(), map[string]discovery.Medium{"mdns": new(mdns.Medium)})
	for ctx.Err() == nil {
		holds := recordEvery
		record, err := p.record()
		if err != nil {
			slog.Error("the site cannot be announced, which is tried again", "after", recordAgain, "err", err)
			holds = recordAgain
		}
		one, end := context.WithTimeout(ctx, holds)
		var announcing sync.WaitGroup
		if err == nil {
			announcing.Go(func() { media.Announce(one, record) })
		}
		select {
		case <-p.again:
		case <-one.Done():
		}
		end()
		announcing.Wait() // its goodbye
	}
}

// record is a new one.
func (p *presence) record() (*discovery.Signed, error) {
	sequence, err := p.next()
	if err != nil {
		return nil, p.folder.unusable(err)
	}
	_, port, err := net.SplitHostPort(p.at.String())
	if err != nil {
		return nil, err
	}
	r := discovery.Record{
		Site: p.key.ID(), Sequence: sequence, Name: p.name, Lifetime: recordLife,
		Addresses: []string{"https://" + net.JoinHostPort(HostName(p.key.ID()), port) + "/mcp"},
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
	return signed, err
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

// next is a sequence number that is greater than all before: by one, or by the time as
// far as it is known, which is greater than those of after a backup that was put back.
func (p *presence) next() (uint64, error) {
	text, err := os.ReadFile(p.folder.path(sequenceName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	last, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64) // what is damaged is made anew
	now, _ := p.book.Now()
	n := max(last+1, uint64(max(now.Unix(), 1)))
	return n, writeAtomic(p.folder.path(sequenceName), fmt.Appendln(nil, n), 0o600)
}
