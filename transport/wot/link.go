package wot

import (
	"slices"

	"agentsite/node/identity"
	"agentsite/node/things"
	"agentsite/transport/adapter"

	"github.com/go-json-experiment/json"
)

// selfPath is where a site's description of itself is.
const selfPath = "/.well-known/wot"

// linkTo describes a site by a link to its own description, which shows each reader its part
// (Discovery, section 7.1.2).
func linkTo(o adapter.OtherSite) *thing {
	t := newThing(o.URL, o.ID+"/things/"+sitePrefix+o.Name, o.Name, "ThingLink")
	t.Context = append(t.Context, discoveryContext)
	t.Links = []link{{"describedby", o.URL + selfPath, tdType}}
	return t
}

// links describes the sites of the realm, for a caller that may read others' registrations. A
// site's own record says where it is. A description registered with its ID replaces it for the
// registrar alone.
func (s server) links(by things.Caller) (all []member) {
	if s.Sites == nil || !by.Reads {
		return nil
	}
	for _, o := range s.Sites() {
		t := linkTo(o)
		all = append(all, member{t.ID, t})
	}
	return all
}

// find returns the index of an ID; -1 for none.
func find(all []member, id string) int {
	return slices.IndexFunc(all, func(m member) bool { return m.id == id })
}

// Registration returns the description that a site at a URL registers with another directory: that
// it is there, and where its own description is.
func Registration(site identity.ID, name, url string) (id string, td []byte, err error) {
	t := linkTo(adapter.OtherSite{ID: site.String(), Name: name, URL: url})
	td, err = json.Marshal(t, json.Deterministic(true))
	return t.ID, td, err
}
