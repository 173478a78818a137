package remote

import (
	"bytes"
	"context"
	"reflect"
	"slices"
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
	for _, about := range []string{v.arg, siteArg} { // as models send what they leave out; other nulls are for the site
		if r.args[about] == nil {
			delete(r.args, about)
		}
	}
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
	r.args[r.arg] = there
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch r.name {
	case readHistory:
		return ask[history](ctx, p, r, reach)
	case showText:
		res, err := ask[shown](ctx, p, r, reach)
		if v, ok := res.Value.(shown); ok {
			text, _ := r.args["text"].(string)
			v.Text = ignored(text)
			res.Value = v
		}
		return res, err
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

// given are arguments on their way to a site.
type given map[string]any

func (g given) Decode(into any) error {
	text, err := json.Marshal(g, json.Deterministic(true)) // {} for none
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// ask calls one site, and decodes and tidies what it answers into a T. One that is away
// is waited for until soon. What moves nothing away from safe is asked for all the same
// then, until soon: that a site cannot be followed does not mean that it does not answer.
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
		if r.acts && !r.soon {
			return none, err
		}
		o = p.last()
		ctx, cancel = context.WithTimeout(ctx, soon)
		defer cancel()
	}
	if o != nil {
		if err := r.among(p, o); err != nil {
			return none, err
		}
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
		Elsewhere: "the owner of " + p.name + " has to approve this, within 2m: agentsite approve lists what waits, on that site's machine or with --site; " +
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
