package remote

import (
	"context"
	"slices"
	"time"

	"agentsite/agents"

	"github.com/go-json-experiment/json"
)

const mimeJSON = "application/json"

// Resources are the points that can be read.
func (h *House) Resources() []agents.Resource {
	h.look()
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []agents.Resource
	for _, p := range h.ordered() {
		for _, address := range p.offer[readPoints] {
			name := p.name + "/" + address
			list = append(list, agents.Resource{URI: scheme + name, Name: name, MIME: mimeJSON})
		}
	}
	return list
}

// Templates are none: the resources are listed one by one.
func (h *House) Templates() []agents.Template { return nil }

// Follow has the sites tell what becomes of resources here, until done is called, whether
// they are there now or come later.
func (h *House) Follow(uris []string) (done func()) {
	h.watch(uris, 1)
	return func() { h.watch(uris, -1) }
}

// watch counts who watches resources.
func (h *House) watch(uris []string, more int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, uri := range uris {
		site, there, ok := splitURI(uri)
		if !ok {
			continue
		}
		here := site + "/" + there
		before := h.watched[here]
		if h.watched[here] += more; h.watched[here] == 0 {
			delete(h.watched, here)
		}
		if p := h.peers[site]; p != nil && (before == 0 || before+more == 0) {
			p.renew()
		}
	}
}

// ReadResource reads a point at its site.
func (h *House) ReadResource(ctx context.Context, _ agents.Principal, uri string) ([]agents.ResourceContent, error) {
	h.look()
	name, there, ok := splitURI(uri)
	p, err := h.named(name)
	if !ok || err != nil {
		return nil, agents.ErrNotFound
	}
	v, _ := verbNamed(readPoints)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	res, err := ask[readings](ctx, p, request{verb: v, args: map[string]any{v.arg: []any{there}}, came: time.Now()}, reach)
	if err != nil {
		return nil, err
	}
	all, _ := res.Value.(readings)
	i := slices.IndexFunc(all.Readings, func(r reading) bool { return string(r.Point) == name+"/"+there })
	if i < 0 {
		return nil, p.strange(v)
	}
	text, err := json.Marshal(all.Readings[i])
	if err != nil {
		return nil, err
	}
	return []agents.ResourceContent{{URI: uri, MIME: mimeJSON, Text: string(text)}}, nil
}
