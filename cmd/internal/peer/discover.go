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
	"agentsite/node/acts"
	"agentsite/node/identity"
)

// Found is a site that was found, as it announces itself. Only its key can be trusted.
type Found struct {
	acts.Found
	Known string `json:"known_as,omitzero"` // the contact's name, "" for none
	Yours bool   `json:"yours,omitzero"`    // it is no contact yet, and says that the user owns it
	// Unclaimed is whether it says that nobody owns it, and takes a claim.
	Unclaimed bool `json:"unclaimed,omitzero"`
}

// DiscoverOptions narrow the search of Discover.
type DiscoverOptions struct {
	For     time.Duration // 0 for until the context ends
	Name    string        // only sites of that name; "" for all
	Version string        // of the program
}

// Discover emits the sites on the network and their changes, one at a time. It asks a site that is
// no contact whether the user owns it, through its configuration or another owner, or nobody does. If so, it
// emits a change.
func Discover(ctx context.Context, l DiscoverOptions, emit func(discovery.Change, Found)) error {
	user, err := User()
	if err != nil {
		return err
	}
	names, pinned, err := user.Contacts().names()
	if err != nil {
		return err
	}
	probe := newOwnershipProbe(user, l.Version)
	looking := ctx
	if l.For > 0 {
		var cancel context.CancelFunc
		looking, cancel = context.WithTimeout(ctx, l.For)
		defer cancel()
	}
	var mu sync.Mutex
	present := make(map[identity.ID]Found)
	watch(looking, pinned, func(c discovery.Change, s discovery.Site) {
		if l.Name != "" && l.Name != s.Name {
			return
		}
		f := Found{Found: FoundIn(s.Signed)}
		f.URLs, f.Known = s.URLs(), names[f.DID]
		mu.Lock()
		defer mu.Unlock()
		f.Yours, f.Unclaimed = present[s.Site].Yours, present[s.Site].Unclaimed
		if emit(c, f); c == discovery.Gone {
			delete(present, s.Site)
			return
		}
		if _, asked := present[s.Site]; !asked && f.Known == "" {
			probe.start(ctx, s, func(yours bool) {
				mu.Lock()
				defer mu.Unlock()
				if now, still := present[s.Site]; still {
					now.Yours, now.Unclaimed = yours, !yours
					present[s.Site] = now
					emit(discovery.Changed, now)
				}
			})
		}
		present[s.Site] = f
	})
	probe.probes.Wait()
	return nil
}

// names returns the contacts' names by their did:keys, and their keys.
func (c Contacts) names() (names map[string]string, all []identity.ID, err error) {
	known, err := c.List()
	names = make(map[string]string)
	for _, k := range known {
		if id, err := identity.Parse(k.DID); err == nil {
			all = append(all, id)
			names[k.DID] = k.Name
		}
	}
	return names, all, err
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

// browseTimeout bounds the search for a site that does not answer at its known addresses.
const browseTimeout = 3 * time.Second

// browse looks for a site on the network until browseTimeout or ctx ends. It calls found with
// the announced addresses, host:port, the best first, after each change. They are unverified
// until the site proves its key.
func browse(ctx context.Context, site identity.ID, found func(at []string)) {
	ctx, cancel := context.WithTimeout(ctx, browseTimeout)
	defer cancel()
	watch(ctx, []identity.ID{site}, func(c discovery.Change, s discovery.Site) {
		if s.Site == site && c != discovery.Gone {
			found(authorities(s.URLs()))
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
