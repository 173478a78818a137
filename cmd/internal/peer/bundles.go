package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"agentsite/discovery"
	"agentsite/discovery/card"
	"agentsite/node/bundle"
	"agentsite/node/identity"
)

// maxBundleSites bounds the sites that FetchBundle asks, all at once.
const maxBundleSites = 8

// FetchBundle fetches a bundle's file from the sites of the realms that share it, in all realms at once.
// The file has the ID, and nothing has decoded it. The sites asked learn neither the person's identity
// nor the bundle's destination.
func FetchBundle(ctx context.Context, realms []Realm, id bundle.FileID, version string) ([]byte, error) {
	var fetch []attempt[[]byte]
	for _, j := range realms {
		fetch = append(fetch, func(ctx context.Context, _ func(attempt[[]byte])) ([]byte, error) {
			return fetchBundleFrom(ctx, j, id, version)
		})
	}
	return race(ctx, 0, func([]byte) {}, fetch)
}

// fetchBundleFrom is FetchBundle in one realm.
func fetchBundleFrom(ctx context.Context, j Realm, id bundle.FileID, version string) ([]byte, error) {
	realm, err := discovery.ParseRealm(j.Realm)
	if err != nil {
		return nil, err
	}
	out := &lazyNetwork{key: identity.New(), realms: []Realm{j}, version: version}
	in, err := out.open()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	ctx, found := context.WithCancel(ctx)
	defer found()
	var mu sync.Mutex
	var file []byte
	var failed error
	var fetching sync.WaitGroup
	asked := 0
	lookup := in.Find(ctx, id.Word(), func(r *discovery.Signed) {
		if asked++; asked > maxBundleSites {
			return
		}
		fetching.Go(func() {
			var b []byte
			err := reachAnywhere(ctx, in, r.Site, (&discovery.Site{Signed: r}).Multiaddrs())
			if err == nil {
				b, err = in.FetchFile(ctx, realm, r.Site, card.FileID(id))
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case file != nil:
			case err != nil:
				failed = errors.Join(failed, err)
			default:
				file = b
				found()
			}
		})
	})
	fetching.Wait()
	switch {
	case file != nil:
		return file, nil
	case asked == 0 && lookup != nil:
		return nil, fmt.Errorf("the realm %s could not be searched: %w", j.Name(), lookup)
	case asked == 0:
		return nil, fmt.Errorf("no site of the realm %s shares %s now: what was just published is found half a minute "+
			"later; else compare the hash with what its owner wrote, or try again while that site is reached", j.Name(), id)
	}
	return nil, fmt.Errorf("no site of the realm %s sent the bundle: %w", j.Name(), failed)
}
