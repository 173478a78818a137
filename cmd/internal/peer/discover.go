package peer

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/mdns"
	"agentsite/node/identity"
)

// Found is a site that was found on the network. It says where the site is, never that it
// may be trusted.
type Found struct {
	Name   string           `json:"name"` // by its own word
	DID    string           `json:"did"`
	URLs   []string         `json:"urls"`
	Known  string           `json:"known_as,omitzero"` // by which the user knows it
	Yours  bool             `json:"yours,omitzero"`    // it is not known yet, and says that the user owns it
	Public []discovery.Kind `json:"public,omitzero"`
}

// DiscoverOptions narrow what Discover looks for.
type DiscoverOptions struct {
	For     time.Duration // 0 for until the context ends
	Name    string        // only sites that call themselves so; "" for all
	Version string        // of the program
}

// Discover emits the sites that are found and what changes, one at a time. A site that the
// user does not know is asked whether the user owns it, by its configuration or another
// owner's word; where it says so that is a change.
func Discover(ctx context.Context, l DiscoverOptions, emit func(discovery.Change, Found)) error {
	user, err := User()
	if err != nil {
		return err
	}
	called, pinned, err := user.names()
	if err != nil {
		return err
	}
	yours := newOwnershipProbe(user, l.Version)
	looking := ctx
	if l.For > 0 {
		var cancel context.CancelFunc
		looking, cancel = context.WithTimeout(ctx, l.For)
		defer cancel()
	}
	var mu sync.Mutex
	there := make(map[identity.ID]Found)
	watch(looking, pinned, func(c discovery.Change, s discovery.Site) {
		if l.Name != "" && l.Name != s.Name {
			return
		}
		did := s.Site.String()
		f := Found{Name: s.Name, DID: did, URLs: s.URLs(), Known: called[did], Public: s.Offer}
		mu.Lock()
		defer mu.Unlock()
		f.Yours = there[s.Site].Yours
		if emit(c, f); c == discovery.Gone {
			delete(there, s.Site)
			return
		}
		if _, asked := there[s.Site]; !asked && f.Known == "" {
			yours.ask(ctx, s, func() {
				mu.Lock()
				defer mu.Unlock()
				if now, still := there[s.Site]; still {
					now.Yours = true
					there[s.Site] = now
					emit(discovery.Changed, now)
				}
			})
		}
		there[s.Site] = f
	})
	yours.asking.Wait()
	return nil
}

// names returns the contacts' names by their did:keys, and their keys.
func (p Person) names() (called map[string]string, all []identity.ID, err error) {
	known, err := p.Sites()
	called = make(map[string]string)
	for _, k := range known {
		if id, err := identity.Parse(k.DID); err == nil {
			all = append(all, id)
			called[k.DID] = k.Name
		}
	}
	return called, all, err
}

// watch browses the network until ctx ends. The pinned sites are never evicted.
func watch(ctx context.Context, pinned []identity.ID, emit func(discovery.Change, discovery.Site)) {
	d := discovery.NewDirectory(slog.Default(), map[string]discovery.Medium{"mdns": new(mdns.Medium)})
	d.Pin(pinned...)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Run(ctx)
	}()
	d.Watch(ctx, emit)
	<-ended
}

// findPatience is how long a site is looked for that is not where it was.
const findPatience = 3 * time.Second

// find browses for a site on the network, for a while or until ctx ends. It sends the
// addresses that it hears, host:port, the best first, after each change, and closes found.
// They are unverified until the site proves its key.
func find(ctx context.Context, site identity.ID, found chan<- []string) {
	defer close(found)
	ctx, cancel := context.WithTimeout(ctx, findPatience)
	defer cancel()
	watch(ctx, []identity.ID{site}, func(c discovery.Change, s discovery.Site) {
		if s.Site != site || c == discovery.Gone {
			return
		}
		select {
		case found <- authorities(s.URLs()):
		case <-ctx.Done():
		}
	})
}

// authorities returns the addresses, host:port, of a site's URLs.
func authorities(urls []string) (at []string) {
	for _, text := range urls {
		u, err := url.Parse(text)
		if err == nil && u.Scheme == "https" && u.Port() != "" {
			at = append(at, net.JoinHostPort(u.Hostname(), u.Port()))
		}
	}
	return at
}
