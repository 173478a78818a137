package imports

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/bundle"
	"agentsite/node/identity"
)

func sealBy(t testing.TB, key identity.Key, change func(*bundle.Content)) []byte {
	t.Helper()
	c := frost()
	c.Version = 1
	change(&c)
	b, err := bundle.Seal(key, c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func version(v uint32) func(*bundle.Content) { return func(c *bundle.Content) { c.Version = v } }

func (s *sharing) publishFile(t *testing.T, file []byte) (SharedBundle, error) {
	t.Helper()
	return s.Share(t.Context(), agents.Principal{}, Sharing{Bundle: file, Publish: true})
}

// TestPublish: a published bundle is listed and found by its words, over restarts; a newer version by its
// author replaces it, and no other does.
func TestPublish(t *testing.T) {
	s, key := newSharing(t, nil), identity.New()
	first, second := sealBy(t, key, version(1)), sealBy(t, key, version(2))
	other := sealBy(t, identity.New(), func(c *bundle.Content) { c.Tags = []string{"night"} })
	for _, file := range [][]byte{first, other} {
		if got, err := s.publishFile(t, file); err != nil || !got.Published || got.Version != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	s = newSharing(t, s.file)
	ids := []bundle.FileID{bundle.IDOf(first), bundle.IDOf(other)}
	if got, err := bundle.DecodeCatalog(s.Catalog()); err != nil || !slices.Equal(got, ids) {
		t.Errorf("%v, %v", got, err)
	}
	want := []string{ids[0].Word(), ids[1].Word(), "hub", "hub/frost", "hub/night", "hub/rule"}
	slices.Sort(want)
	if got := s.SharedWords(); !slices.Equal(got, want) {
		t.Error(got)
	}
	if _, err := s.publishFile(t, second); err != nil || s.SharedFile(ids[0]) != nil || len(s.Shared()) != 2 {
		t.Errorf("%v, %+v", err, s.Shared())
	}
	changed := sealBy(t, key, func(c *bundle.Content) { c.Version, c.Created = 2, c.Created+1 })
	for _, old := range [][]byte{first, changed} {
		if _, err := s.publishFile(t, old); device.AsFault(err).Kind != device.Invalid || len(s.Shared()) != 2 {
			t.Errorf("%v, %+v", err, s.Shared())
		}
	}
	if err := s.Unshare(bundle.IDOf(second).String()); err != nil {
		t.Error(err)
	}
	if got, _ := bundle.DecodeCatalog(s.Catalog()); !slices.Equal(got, ids[1:]) {
		t.Error(got)
	}
}

// TestPublishRealm: what was published in a realm with a secret, or only shared there, is not given to
// everybody.
func TestPublishRealm(t *testing.T) {
	s, key := newSharing(t, nil), identity.New()
	shared, secret := ruleFile(t, "shared"), sealBy(t, key, version(1))
	if _, err := s.Share(t.Context(), agents.Principal{}, Sharing{Bundle: shared}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.publishFile(t, secret); err != nil {
		t.Fatal(err)
	}
	s.realm = device.Faultf(device.Invalid, "the public realm")
	if s.Catalog() != nil || s.SharedWords() != nil || s.SharedFile(
		bundle.IDOf(secret),
	) != nil || s.SharedFile(bundle.IDOf(shared)) != nil {
		t.Error("everybody gets what was for the realm")
	}
	public := sealBy(t, key, func(c *bundle.Content) { c.Name = "open" })
	if _, err := s.publishFile(t, public); err != nil {
		t.Fatal(err)
	}
	if got, _ := bundle.DecodeCatalog(s.Catalog()); !slices.Equal(got, []bundle.FileID{bundle.IDOf(public)}) {
		t.Error(got)
	}
	s.nowhere = device.Faultf(device.Invalid, "no realm")
	if s.Catalog() != nil || s.SharedFile(bundle.IDOf(public)) != nil {
		t.Error("it is given in no realm")
	}
	if _, err := s.publishFile(t, public); device.AsFault(err).Kind != device.Invalid {
		t.Error(err)
	}
}

// TestPublishRefused: no text leaves that names a point of the site, and no import that is not accepted.
func TestPublishRefused(t *testing.T) {
	s := newSharing(t, nil)
	for what, change := range map[string]func(*bundle.Content){
		"a description": func(c *bundle.Content) { c.Description = "moves house/vent" },
		"a definition":  func(c *bundle.Content) { c.Definition += "description: near climate/temperature\n" },
		"a need":        func(c *bundle.Content) { c.Needs[0].For = "as house/pump" },
		"many words": func(c *bundle.Content) {
			c.Name = "a-b-c-d-e-f-g-h-i-j-k-l"
		},
	} {
		if what == "many words" {
			for i := range 2 {
				c := sealBy(t, identity.New(), func(c *bundle.Content) {
					c.Name = fmt.Sprintf("m%d-a%[1]d-b%[1]d-c%[1]d", i)
					for k := range 7 {
						c.Tags = append(c.Tags, fmt.Sprint("t", i, "-", k))
					}
				})
				if _, err := s.publishFile(t, c); err != nil {
					t.Fatal(err)
				}
			}
		}
		told := s.told
		if _, err := s.publishFile(
			t, sealBy(t, identity.New(), change),
		); device.AsFault(err).Kind != device.Invalid || s.told != told {
			t.Errorf("%s: %v", what, err)
		}
	}
	r := newRig(t, here)
	r.MayPublish = func() error { return nil }
	if _, err := r.bring(Request{Bundle: seal(t, frost())}); err != nil {
		t.Fatal(err)
	}
	_, err := r.Share(context.Background(), agents.Principal{}, Sharing{Name: "frost", Publish: true})
	if device.AsFault(err).Kind != device.Invalid {
		t.Error(err)
	}
}

// TestUpdate: a newer version by the same author takes the place of an import once it is accepted, with
// the permission that the owner writes then, and over restarts. Its needs keep their points.
func TestUpdate(t *testing.T) {
	r, key := newRig(t, here), identity.New()
	if _, err := r.bring(Request{Bundle: sealBy(t, key, version(2)), As: "winter"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Accept(Acceptance{"winter", "set house/vent max 1m"}); err != nil {
		t.Fatal(err)
	}
	for what, file := range map[string][]byte{
		"the same version":   sealBy(t, key, func(c *bundle.Content) { c.Version, c.Created = 2, c.Created+1 }),
		"a lower version":    sealBy(t, key, version(1)),
		"another author":     sealBy(t, identity.New(), version(3)),
		"another name":       sealBy(t, key, func(c *bundle.Content) { c.Version, c.Name = 3, "heat" }),
		"no version":         sealBy(t, key, version(0)),
		"a changed file":     append(sealBy(t, key, version(3)), 0),
		"an import not here": nil,
	} {
		q := Request{Bundle: file, Replaces: "winter"}
		if file == nil {
			q.Bundle, q.Replaces = sealBy(t, key, version(3)), "summer"
		}
		if _, err := r.bring(q); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	const running = before + ", rule:winter runs 2"
	if got := r.running(); got != running {
		t.Error(got)
	}
	newer := sealBy(t, key, func(c *bundle.Content) {
		c.Version, c.Definition = 3, strings.Replace(c.Definition, "40", "70", 1)
	})
	d, err := r.bring(Request{Bundle: newer, Replaces: "winter"})
	if err != nil || d.Name != "winter-new" || d.Replaces != "winter" || fmt.Sprint(
		d.Bound,
	) != "[{out house/vent} {t climate/temperature}]" {
		t.Fatalf("%+v, %v", d, err)
	}
	r.start(t, here)
	if got := r.running(); got != running+", rule:winter-new draft 0" {
		t.Error("a newer version is not a draft", got)
	}
	if all := r.Imported(); len(all) != 2 || all[1].Replaces != "winter" || all[0].Own != "frost" || !all[0].Accepted {
		t.Errorf("%+v", all)
	}
	if d, err = r.Accept(
		Acceptance{"winter-new", "read climate, set house/vent max 2m, stop"},
	); err != nil || d.Name != "winter" {
		t.Fatalf("%+v, %v", d, err)
	}
	for range 2 {
		if got := r.running(); !strings.HasPrefix(
			got, before+", rule:winter runs ",
		) || got == running || strings.Contains(got, "winter-new") {
			t.Error(got)
		}
		r.start(t, here)
	}
	if all := r.Imported(); len(all) != 1 || all[0].Version != 3 || all[0].Name != "winter" {
		t.Errorf("%+v", all)
	}
}

// TestUpdateGone: a newer version whose import was removed or replaced since is not accepted.
func TestUpdateGone(t *testing.T) {
	r, key := newRig(t, here), identity.New()
	for v := range uint32(3) {
		q := Request{Bundle: sealBy(t, key, version(v+1))}
		if v > 0 {
			q.Replaces, q.As = "frost", fmt.Sprint("next", v)
		}
		if _, err := r.bring(q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Accept(Acceptance{"next2", "set house/vent"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Accept(Acceptance{"next1", "set house/vent"}); device.AsFault(err).Kind != device.Invalid {
		t.Error(err)
	}
	if err := r.Remove("frost"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Accept(Acceptance{"next1", "set house/vent"}); device.AsFault(err).Kind != device.Invalid {
		t.Error(err)
	}
}
