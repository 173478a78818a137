package peer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"agentsite/cmd/internal/internet"
	"agentsite/discovery"
	"agentsite/node/bundle"
	"agentsite/node/identity"
	"agentsite/node/state"
)

// maxHubRealms bounds the realms that a search asks at once.
const maxHubRealms = 8

// Published is a bundle that sites publish. Its signature was verified; all else in it is data of an
// author that need not be trusted.
type Published struct {
	*bundle.Bundle
	ID    bundle.FileID
	File  []byte
	Sites []Found // that say that they have it
}

// SearchRealms returns the realm of that name, for "" all realms that the person is in.
func (r Realms) SearchRealms(name string) ([]Realm, error) {
	if name != "" {
		j, err := r.Get(name)
		return []Realm{j}, err
	}
	all, err := r.List()
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		_, err := realmNamed(all, "")
		return nil, err
	case len(all) > maxHubRealms:
		return nil, state.Mistakef("you are in %d realms, and %d are searched at once: choose one with --realm",
			len(all), maxHubRealms)
	}
	return all, nil
}

// CheckWords refuses words that no published bundle has.
func CheckWords(words []string) error {
	if len(words) > 8 {
		return state.Mistakef("name at most 8 words")
	}
	for _, w := range words {
		if !bundle.IsWord(w) {
			return state.Mistakef("%.40q cannot be searched: use words of a-z, 0-9, - and _, such as irrigation", w)
		}
	}
	return nil
}

// SearchHub looks for published bundles that match, in all realms at once, on the sites that announce
// one of the words, or any bundle where there are none. They are sorted by name, author and version,
// newest first. lookups has an error for each realm that was not searched. The sites do not learn the identity of the caller.
func SearchHub(
	ctx context.Context, realms []Realm, words []string, match func(*bundle.Bundle) bool, version string,
) (all []Published, lookups []error, err error) {
	user, err := User()
	if err != nil {
		return nil, nil, err
	}
	names, _, err := user.Contacts().names()
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	found := make(map[bundle.FileID]*Published)
	add := func(o internet.Offer) {
		mu.Lock()
		defer mu.Unlock()
		p := found[o.ID]
		if p == nil {
			p = &Published{Bundle: o.Bundle, ID: o.ID, File: o.File}
			found[o.ID] = p
		}
		at := Found{Found: FoundIn(o.Site), Known: names[o.Site.Site.String()]}
		if !slices.ContainsFunc(p.Sites, func(s Found) bool { return s.DID == at.DID }) {
			p.Sites = append(p.Sites, at)
		}
	}
	var searching sync.WaitGroup
	for _, j := range realms {
		searching.Go(func() {
			if err := searchRealm(ctx, j, words, match, version, add); err != nil {
				mu.Lock()
				defer mu.Unlock()
				lookups = append(lookups, fmt.Errorf("the realm %s was not searched: %w", j.Name(), err))
			}
		})
	}
	searching.Wait()
	for _, p := range found {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Published) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Author.String(), b.Author.String()),
			cmp.Compare(b.Version, a.Version), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return all, lookups, nil
}

func searchRealm(
	ctx context.Context, j Realm, words []string, match func(
		*bundle.Bundle,
	) bool, version string, add func(internet.Offer),
) error {
	realm, err := discovery.ParseRealm(j.Realm)
	if err != nil {
		return err
	}
	out := &lazyNetwork{key: identity.New(), realms: []Realm{j}, version: version}
	in, err := out.open()
	if err != nil {
		return err
	}
	defer out.Close()
	return in.SearchHub(ctx, realm, words, match, add)
}

// KeyNames returns what the person calls keys, by their did:key: the own one, those of contacts, and
// those that have a permission on all sites.
func (p Person) KeyNames() (map[string]string, error) {
	names, _, err := p.Contacts().names()
	if err != nil {
		return nil, err
	}
	all := make(map[string]string, len(names)+1)
	for did, name := range names {
		all[did] = name
	}
	grants, err := p.KeyGrants().Valid()
	if err != nil {
		return nil, err
	}
	for _, g := range grants {
		if g.Name != "" {
			all[g.To] = g.Name
		}
	}
	key, err := p.Key()
	if err == nil {
		all[key.ID().String()] = "you"
	}
	return all, err
}
