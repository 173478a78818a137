package discovery

import (
	"bytes"
	"cmp"
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentsite/node/identity"
)

// Site is a site that a directory knows. It is read-only.
type Site struct {
	*Signed
	At    []netip.Addr // addresses seen by media, the last change first; at most 8, and unverified
	Media []string     // names of the media that report it, sorted
	Until time.Time    // when it is gone unless it is reported again, by the directory's time

	revision uint64
}

// URLs returns the record's http and https addresses, best first. It repeats one whose host
// is the site's own host name for each address in At.
func (s *Site) URLs() (urls []string) {
	for _, text := range s.Addresses {
		if isMultiaddr(text) {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || !strings.EqualFold(u.Hostname(), HostName(s.Site)) {
			urls = append(urls, text)
			continue
		}
		port := strings.TrimPrefix(u.Host, u.Hostname())
		for _, a := range s.At {
			u.Host = a.String() + port
			if a.Is6() {
				u.Host = "[" + a.String() + "]" + port
			}
			urls = append(urls, u.String())
		}
	}
	return urls
}

// Multiaddrs returns the record's other addresses, best first.
func (s *Site) Multiaddrs() (all []string) {
	for _, text := range s.Addresses {
		if isMultiaddr(text) {
			all = append(all, text)
		}
	}
	return all
}

// Sites returns the present sites by name and then by identity.
func (d *Directory) Sites() (sites []Site) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for _, e := range d.sites {
		if s, there := e.snapshot(now); there {
			sites = append(sites, s)
		}
	}
	slices.SortFunc(sites, func(a, b Site) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), bytes.Compare(a.Site[:], b.Site[:]))
	})
	return sites
}

// Site returns a site, and whether it is present.
func (d *Directory) Site(id identity.ID) (Site, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.sites[id]; e != nil {
		return e.snapshot(d.now())
	}
	return Site{}, false
}

func (e *entry) snapshot(now time.Time) (s Site, there bool) {
	until := e.expires()
	if !until.After(now) {
		return Site{}, false
	}
	s = Site{Signed: e.record, At: e.addrs(), Until: until, revision: e.revision}
	for medium, until := range e.sources {
		if until.After(now) {
			s.Media = append(s.Media, medium)
		}
	}
	slices.Sort(s.Media)
	return s, true
}

// maxWatchInterval bounds the pause until a watcher checks whether a site has gone.
const maxWatchInterval = time.Minute

// Change is a kind of change of a site.
type Change string

// The kinds of Change.
const (
	Appeared Change = "appeared"
	Changed  Change = "changed" // its record, or its addresses
	Gone     Change = "gone"    // with the last known site
)

// Watch emits the present sites and then each change, until ctx ends. It blocks. A slow emit
// delays nobody: changes meanwhile are merged.
func (d *Directory) Watch(ctx context.Context, emit func(Change, Site)) {
	woken, cancel := d.watchers.Subscribe()
	defer cancel()
	told := make(map[identity.ID]Site)
	for ctx.Err() == nil {
		there := d.Sites()
		emitChanges(told, there, emit)
		var end <-chan time.Time // of the first that nothing more is heard of
		if len(there) > 0 {
			first := slices.MinFunc(there, func(a, b Site) int { return a.Until.Compare(b.Until) })
			end = time.After(min(first.Until.Sub(d.now()), maxWatchInterval)) // a timer stands still while the machine sleeps
		}
		select {
		case <-ctx.Done():
		case <-woken:
		case <-end:
		}
	}
}

// emitChanges emits the differences between told and there, and updates told.
func emitChanges(told map[identity.ID]Site, there []Site, emit func(Change, Site)) {
	gone := make(map[identity.ID]bool, len(told))
	for id := range told {
		gone[id] = true
	}
	for _, s := range there {
		delete(gone, s.Site)
		before, was := told[s.Site]
		told[s.Site] = s
		if !was {
			emit(Appeared, s)
		} else if before.revision != s.revision {
			emit(Changed, s)
		}
	}
	for id := range gone {
		s := told[id]
		delete(told, id)
		emit(Gone, s)
	}
}

// Find implements Medium with the sites that Run finds.
func (d *Directory) Find(ctx context.Context, emit func(Sighting) error) error {
	d.Watch(ctx, func(c Change, s Site) {
		seen := Sighting{Site: s.Site}
		if c != Gone {
			seen.Record, seen.At, seen.For = s.Bytes(), s.At, s.Lifetime // a goodbye comes earlier
		}
		_ = emit(seen) // whether it is taken there changes nothing here
	})
	return nil
}
