package imports

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/bundle"
)

// publish shares a bundle, and has members of the site's realm find it by its words. In the public
// realm these are everybody. It replaces older versions by the same author, and refuses a text that
// names a point of the site.
func (s *Store) publish(ctx context.Context, who agents.Principal, file []byte) (SharedBundle, error) {
	if err := s.MayPublish(); err != nil {
		return SharedBundle{}, err
	}
	b, err := bundle.Open(file)
	if err != nil {
		return SharedBundle{}, invalid(err)
	}
	points, err := s.Points(ctx, who)
	if err != nil {
		return SharedBundle{}, err
	}
	if address := named(b, points); address != "" {
		return SharedBundle{}, device.Faultf(device.Invalid,
			"its text names %s, a point of this site: change the description, and publish again", address)
	}
	var done SharedBundle
	err = s.changeShared(func(shared *bundle.Shared) (*bundle.Shared, error) {
		next, err := shared.Publish(file, s.MayShare() != nil)
		if err == nil {
			done = sharedAt(next, next.Find(bundle.IDOf(file)))
		}
		return next, err
	})
	return done, err
}

// named returns a point of the site that a text of the bundle names; "" for none.
func named(b *bundle.Bundle, points []agents.Point) string {
	texts := []string{b.Definition, b.Description}
	for _, n := range b.Needs {
		texts = append(texts, n.For)
	}
	for _, p := range points {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, p.Point) }) {
			return p.Point
		}
	}
	return ""
}

// open reports whether a shared file is given away in the realm that the site is in now. What was
// published in a realm with a secret is not given to everybody after the site has left that.
func (s *Store) open(shared *bundle.Shared, id bundle.FileID) bool {
	if s.MayShare() == nil {
		return true
	}
	p, ok := shared.Publication(id)
	return ok && p.Public && s.MayPublish() == nil
}

// Catalog returns the list of the published bundles for others of the realm; nil for none.
func (s *Store) Catalog() []byte {
	shared := s.sharedNow()
	var ids []bundle.FileID
	for _, p := range shared.Published {
		if shared.Find(p.ID) >= 0 && s.open(shared, p.ID) {
			ids = append(ids, p.ID)
		}
	}
	return bundle.EncodeCatalog(ids)
}

// Imported lists the drafts and the accepted imports.
func (s *Store) Imported() (all []Draft) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.kept.All {
		all = append(all, draft(i))
	}
	return all
}

// update prepares an import that replaces another: its name, and the points of needs that both have.
// Only a newer version by the same author replaces an import.
func (s *Store) update(i *bundle.Import, q *Request, points []agents.Point) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept.Find(q.Replaces)
	if k < 0 {
		return missing(s.kept, q.Replaces)
	}
	if err := i.Updates(s.kept.All[k]); err != nil {
		return invalid(err)
	}
	i.Replaces = q.Replaces
	i.Name = cmp.Or(q.As, device.SuggestName(q.Replaces[:min(len(q.Replaces), 20)]+"-new"))
	for _, b := range s.kept.All[k].Bound {
		at := slices.IndexFunc(i.Needs, func(n bundle.Need) bool { return n.Name == b.Need })
		p := slices.IndexFunc(points, func(p agents.Point) bool { return p.Point == b.Point })
		if at < 0 || p < 0 || i.Needs[at].Fits(points[p].Kind, points[p].Unit) != nil ||
			slices.ContainsFunc(q.Bind, func(other bundle.Binding) bool { return other.Need == b.Need }) {
			continue
		}
		q.Bind = append(slices.Clip(q.Bind), bundle.Binding(b))
	}
	return nil
}
