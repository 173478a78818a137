package imports

import (
	"context"
	"slices"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/bundle"
)

// SharedBundle is a bundle that the site gives to members of its realm that know its ID.
type SharedBundle struct {
	ID     string `json:"id"` // a bundle.FileID
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Author string `json:"author"` // a did:key

	Version   uint32   `json:"version,omitzero"`
	Published bool     `json:"published,omitzero"`
	Words     []string `json:"words,omitzero"` // by which it is searched, where it is published
}

// SharedDamage returns why the shared bundles cannot be read; nil if they can.
func (s *Store) SharedDamage() error { return s.sharedDamage }

// Sharing asks to share a bundle. Without a file it is that of the accepted import of the name.
type Sharing struct {
	Bundle  []byte `json:"bundle,omitzero"`
	Name    string `json:"name,omitzero"`
	Publish bool   `json:"publish,omitzero"` // others of the realm can search it, too
}

// Share shares a bundle from then on, over restarts too.
func (s *Store) Share(ctx context.Context, who agents.Principal, q Sharing) (SharedBundle, error) {
	file := q.Bundle
	if len(file) == 0 {
		if file = s.acceptedFile(q.Name); file == nil {
			return SharedBundle{}, device.Faultf(device.Invalid,
				"no import %.60q is accepted here, and only what runs here is shared", q.Name)
		}
	}
	if q.Publish {
		return s.publish(ctx, who, file)
	}
	if err := s.MayShare(); err != nil {
		return SharedBundle{}, err
	}
	var done SharedBundle
	err := s.changeShared(func(shared *bundle.Shared) (*bundle.Shared, error) {
		next, err := shared.With(file)
		if err == nil {
			done = sharedAt(next, next.Find(bundle.IDOf(file)))
		}
		return next, err
	})
	return done, err
}

// acceptedFile returns the bundle of an accepted import; nil for none.
func (s *Store) acceptedFile(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kept.Find(name); k >= 0 && s.kept.All[k].Accepted {
		return s.kept.All[k].File
	}
	return nil
}

// Unshare ends that, by the ID.
func (s *Store) Unshare(id string) error {
	parsed, err := bundle.ParseFileID(id)
	if err != nil {
		return invalid(err)
	}
	return s.changeShared(func(shared *bundle.Shared) (*bundle.Shared, error) {
		k := shared.Find(parsed)
		if k < 0 {
			return nil, device.Faultf(device.Invalid, "this site does not share %s: agentsite agents share lists what it does", parsed)
		}
		return shared.Without(k), nil
	})
}

// Shared lists the shared bundles.
func (s *Store) Shared() []SharedBundle {
	all := []SharedBundle{}
	now := s.sharedNow()
	for k := range now.Files {
		all = append(all, sharedAt(now, k))
	}
	return all
}

// SharedFile returns a file that is shared; nil for none.
func (s *Store) SharedFile(id bundle.FileID) []byte {
	now := s.sharedNow()
	if k := now.Find(id); k >= 0 && s.open(now, id) {
		return now.Files[k]
	}
	return nil
}

// SharedWords returns the words by which the shared and the published bundles are found.
func (s *Store) SharedWords() (all []string) {
	shared := s.sharedNow()
	for k, file := range shared.Files {
		id := bundle.IDOf(file)
		if !s.open(shared, id) { // the site has left its realm
			continue
		}
		all = append(all, id.Word())
		if _, published := shared.Publication(id); published {
			all = append(all, bundle.HubWord)
			for _, w := range shared.All()[k].Words() {
				all = append(all, bundle.HubWord+"/"+w)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func sharedAt(all *bundle.Shared, k int) SharedBundle {
	b, id := all.All()[k], bundle.IDOf(all.Files[k])
	s := SharedBundle{ID: id.String(), Name: b.Name, Kind: b.Kind, Author: b.Author.String(), Version: b.Version}
	if _, s.Published = all.Publication(id); s.Published {
		s.Words = b.Words()
	}
	return s
}

// sharedNow returns the shared bundles, which are immutable.
func (s *Store) sharedNow() *bundle.Shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared
}

func (s *Store) changeShared(change func(*bundle.Shared) (*bundle.Shared, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sharedDamage != nil {
		return device.Faultf(device.Unavailable, "what this site shares cannot be read, so it stays as it is (%w); remove the file shared from the data folder, and share again", s.sharedDamage)
	}
	next, err := change(s.shared)
	if err != nil {
		return invalid(err)
	}
	file, err := next.Encode()
	if err != nil {
		return invalid(err)
	}
	if err := s.WriteShared(file); err != nil {
		return device.Faultf(device.Unavailable, "everything stays as it is, because the disk does not store the change: %w", err)
	}
	s.shared = next
	s.OnShare()
	return nil
}
