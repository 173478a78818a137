package remote

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"agentsite/agents"

	"github.com/go-json-experiment/json"
)

const (
	// patience is how long a site may take to answer, and reach how long one that is away
	// is waited for before.
	patience = 30 * time.Second
	reach    = 5 * time.Second
	// Of a call to many sites.
	patienceOfMany = 10 * time.Second
	reachOfMany    = 1500 * time.Millisecond
	// maxState bounds what a site has a caller bring back.
	maxState = 4 << 10
)

// request is a call on its way to sites.
type request struct {
	agents.Call
	verb
	args map[string]any
	came time.Time
}

// Call calls the site that the arguments name, or all of them where they name none.
// What goes wrong is a fault with a kind; of a call to many it is told beside the
// results of the others.
func (h *House) Call(ctx context.Context, _ agents.Principal, c agents.Call) (agents.Result, error) {
	h.look()
	v, known := verbNamed(c.Tool)
	if !known {
		return agents.Result{}, agents.ErrNotFound
	}
	r := request{c, v, make(map[string]any), time.Now()}
	if err := c.Args.Decode(&r.args); err != nil {
		return agents.Result{}, faultf("invalid", "%s: %v", c.Tool, err)
	}
	maps.DeleteFunc(r.args, func(_ string, a any) bool { return a == nil }) // as models send what they leave out
	switch v.name {
	case listPoints, siteStatus, emergencyStop:
		return h.whole(ctx, r)
	case readPoints:
		return h.read(ctx, r)
	}
	return h.one(ctx, r)
}

// one calls the site of one point.
func (h *House) one(ctx context.Context, r request) (agents.Result, error) {
	here, ok := r.args[r.arg].(string)
	if !ok {
		return agents.Result{}, faultf("invalid", "%s is missing, or no text; list_points names what there is", r.arg)
	}
	p, there, err := h.find(r.arg, here)
	if err != nil {
		return agents.Result{}, err
	}
	r.args = maps.Clone(r.args)
	r.args[r.arg] = there
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch r.name {
	case readHistory:
		return ask[history](ctx, p, r, reach)
	case showText:
		return ask[shown](ctx, p, r, reach)
	case captureImage:
		return ask[picture](ctx, p, r, reach)
	}
	return ask[output](ctx, p, r, reach)
}

// find finds the site of an address.
func (h *House) find(arg, here string) (p *peer, there string, err error) {
	site, there, ok := split(here)
	if !ok {
		return nil, "", faultf("invalid", "%s: %.60q is no point here: write site/device/point, as list_points names them", arg, here)
	}
	p, err = h.named(site)
	return p, there, err
}

// whole calls a tool that is about a whole site: of one that is named, or of all.
func (h *House) whole(ctx context.Context, r request) (agents.Result, error) {
	of := make(map[*peer]request)
	for name := range r.args {
		if name != siteArg {
			return agents.Result{}, faultf("invalid", "%s: there is no argument %.60q; %s is the only one", r.name, name, siteArg)
		}
	}
	site, named := r.args[siteArg]
	r.args = nil
	if named {
		name, _ := site.(string)
		p, err := h.named(name)
		if err != nil {
			return agents.Result{}, err
		}
		of[p] = r
	} else {
		for _, p := range h.all() {
			had := h.had(p)
			if _, offered := had[r.name]; offered || had == nil {
				of[p] = r
			}
		}
	}
	switch r.name {
	case listPoints:
		return together(ctx, of, named, func(all []answer[points], missed []missed) any {
			out := points{Points: []point{}, Missed: missed}
			for _, a := range all {
				out.Points = append(out.Points, a.value.Points...)
			}
			return out
		})
	case siteStatus:
		return together(ctx, of, named, func(all []answer[status], missed []missed) any {
			out := statuses{Sites: []status{}, Missed: missed}
			for _, a := range all {
				a.value.Site = a.from.name
				out.Sites = append(out.Sites, a.value)
			}
			return out
		})
	}
	return together(ctx, of, named, func(all []answer[stopped], missed []missed) any {
		out := stops{Sites: []stopped{}, Missed: missed}
		for _, a := range all {
			a.value.Site = a.from.name
			out.Sites = append(out.Sites, a.value)
		}
		return out
	})
}

// read asks the sites of the points that are named, or all, for their readings.
func (h *House) read(ctx context.Context, r request) (agents.Result, error) {
	of := make(map[*peer]request)
	asked, named := r.args[r.arg]
	var list []any
	if named {
		var ok bool
		if list, ok = asked.([]any); !ok {
			return agents.Result{}, faultf("invalid", "%s: write a list of points, as list_points names them", r.arg)
		}
	}
	if len(list) > maxList {
		return agents.Result{}, faultf("invalid", "%s: at most %d points in one call", r.arg, maxList)
	}
	order := make(map[address]int)
	for i, a := range list {
		here, _ := a.(string)
		p, there, err := h.find(r.arg, here)
		if err != nil {
			return agents.Result{}, err
		}
		if _, twice := order[address(here)]; twice {
			continue
		}
		order[address(here)] = i
		if _, begun := of[p]; !begun {
			mine := r
			mine.args = map[string]any{r.arg: []any{}}
			of[p] = mine
		}
		of[p].args[r.arg] = append(of[p].args[r.arg].([]any), there)
	}
	if len(list) == 0 {
		for _, p := range h.all() {
			if had := h.had(p); had == nil || len(had[readPoints]) > 0 {
				all := r
				all.args = nil
				of[p] = all
			}
		}
	}
	return together(ctx, of, len(of) == 1 && len(list) > 0, func(all []answer[readings], missed []missed) any {
		out := readings{Readings: []reading{}, Missed: missed}
		for _, a := range all {
			for _, one := range a.value.Readings {
				if _, wanted := order[one.Point]; wanted || len(list) == 0 {
					out.Readings = append(out.Readings, one)
				}
			}
		}
		slices.SortStableFunc(out.Readings, func(a, b reading) int { return order[a.Point] - order[b.Point] })
		return out
	})
}

// had is what a site offers, or did; nil where nobody knows.
func (h *House) had(p *peer) offer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return p.had
}

// answer is what one site answered.
type answer[T any] struct {
	from  *peer
	value T
	res   agents.Result
	err   error
}

// together asks sites all at once, and joins what they answer; who does not is told of
// beside it. Where the caller named the one site there is, that one's fault is the call's.
func together[T any](ctx context.Context, of map[*peer]request, named bool, join func([]answer[T], []missed) any) (agents.Result, error) {
	within, soon := patienceOfMany, reachOfMany
	if named {
		within, soon = patience, reach
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	answers := make(chan answer[T], len(of))
	for p, r := range of {
		go func() {
			res, err := ask[T](ctx, p, r, soon)
			a := answer[T]{from: p, res: res, err: err}
			a.value, _ = res.Value.(T)
			answers <- a
		}()
	}
	var good []answer[T]
	var bad []answer[T]
	for range of {
		a := <-answers
		if a.err == nil && a.res.NeedInput != nil {
			if named {
				return a.res, nil
			}
			a.err = faultf("unavailable", "%s; name it in a call for itself", a.res.NeedInput.Elsewhere)
		}
		if a.err != nil {
			bad = append(bad, a)
		} else {
			good = append(good, a)
		}
	}
	byName := func(a, b answer[T]) int { return strings.Compare(a.from.name, b.from.name) }
	slices.SortFunc(good, byName)
	slices.SortFunc(bad, byName)
	if named && len(bad) > 0 {
		return agents.Result{}, bad[0].err
	}
	var missing []missed
	for _, a := range bad {
		missing = append(missing, missed{a.from.name, a.err.Error()})
	}
	return agents.Result{Value: join(good, missing)}, nil
}

// given are arguments on their way to a site.
type given map[string]any

func (g given) Decode(into any) error {
	if g == nil {
		g = given{}
	}
	text, err := json.Marshal(g, json.Deterministic(true))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// ask calls one site, and decodes and tidies what it answers into a T. One that is away
// is waited for until soon.
func ask[T any](ctx context.Context, p *peer, r request, soon time.Duration) (agents.Result, error) {
	var none agents.Result
	if !r.soon {
		select {
		case p.running <- struct{}{}:
			defer func() { <-p.running }()
		default:
			return none, faultf("busy", "%d calls to %s are running: wait for one to end", maxRunning, p.name)
		}
	}
	reaching, cancel := context.WithTimeout(ctx, soon)
	o, err := p.there(reaching)
	cancel()
	if err != nil {
		return none, err
	}
	if err := r.among(p, o); err != nil {
		return none, err
	}
	terms, err := r.terms()
	if err != nil {
		return none, err
	}
	res, err := p.site.Call(ctx, agents.Principal{}, agents.Call{
		Tool: r.name, Args: given(r.args), Note: func(agents.Note) {}, Terms: terms,
		Exchange: agents.Exchange{State: r.Exchange.State},
	})
	switch {
	case err != nil:
		p.doubt(err)
		return none, failed(p, r.verb, err)
	case res.NeedInput != nil:
		return r.waits(p, res.NeedInput)
	}
	var value T
	text, ok := res.Value.(agents.Args)
	if !ok || text.Decode(&value) != nil || !tidy(reflect.ValueOf(&value).Elem(), p.name) {
		return none, p.strange(r.verb)
	}
	out := agents.Result{Value: value}
	if r.name == captureImage {
		if out.Content = pictures(res.Content); out.Content == nil {
			return none, p.strange(r.verb)
		}
	}
	return out, nil
}

// strange is the fault of an answer that no site of ours gives.
func (p *peer) strange(v verb) error {
	kind := "unavailable"
	if v.acts {
		kind = "unknown_outcome"
	}
	return faultf(kind, "%s answered %s with something else than a site does; look at it, or leave it out", p.name, v.name)
}

// among refuses points that the site does not offer for this.
func (r request) among(p *peer, o offer) error {
	all, offered := o[r.name]
	if !offered {
		return faultf("denied", "%s does not offer %s to you", p.name, r.name)
	}
	asked, _ := r.args[r.arg].([]any)
	if one, ok := r.args[r.arg].(string); ok {
		asked = []any{one}
	}
	for _, a := range asked {
		if there, _ := a.(string); !slices.Contains(all, there) {
			return faultf("invalid", "%s: %s has no %.60q for %s%s", r.arg, p.name, there, r.name, choice(prefixed(p.name, all)))
		}
	}
	return nil
}

func prefixed(site string, all []string) []string {
	out := make([]string, len(all))
	for i, a := range all {
		out[i] = site + "/" + a
	}
	return out
}

// terms are the caller's, less the time that has passed here.
func (r request) terms() (agents.Terms, error) {
	t := r.Terms
	if t.Within != nil {
		left := *t.Within - time.Since(r.came).Seconds()
		if left <= 0 && *t.Within > 0 {
			return t, faultf("expired", "the site was not reached within %v seconds, and nothing was moved; call again", *t.Within)
		}
		t.Within = &left
	}
	return t, nil
}

// waits is a call that an owner has to approve first.
func (r request) waits(p *peer, need *agents.NeedInput) (agents.Result, error) {
	if len(need.State) > maxState {
		return agents.Result{}, p.strange(r.verb)
	}
	return agents.Result{NeedInput: &agents.NeedInput{
		State: need.State,
		Elsewhere: "the owner of " + p.name + " has to approve this, within 2m0s: agentsite approve lists what waits, on that site's machine or with --site; " +
			"then make the very same call again",
	}}, nil
}

// pictures keeps a picture, if it is one by its first bytes.
func pictures(all []agents.Content) []agents.Content {
	for _, c := range all {
		for mime, begins := range map[string]string{"image/jpeg": "\xff\xd8\xff", "image/png": "\x89PNG\r\n\x1a\n"} {
			if c.Image != nil && c.Image.MIME == mime && bytes.HasPrefix(c.Image.Data, []byte(begins)) {
				return []agents.Content{{Image: c.Image}}
			}
		}
	}
	return nil
}

const mimeJSON = "application/json"

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
