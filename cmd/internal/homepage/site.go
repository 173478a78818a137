package homepage

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/agents/op"
	"agentsite/agents/tools"
	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/transport/fault"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

const (
	// callTimeout bounds a call of a site; ask_agent waits for 25 s.
	callTimeout = 40 * time.Second
	// silence is how long a site may not answer before further calls fail at once: a browser has six
	// connections for all sites together.
	silence = 2 * time.Second
	// maxNotes are the notifications that a page may be behind, and maxNote is the bytes of each.
	maxNotes, maxNote = 16, 1 << 20
	// staleTime is how long after a site's last word a subscription looks for it anew.
	staleTime = 10 * time.Second
)

const (
	callMethod     = "tools/call"
	listenMethod   = "subscriptions/listen"
	discoverMethod = "server/discover"
)

// forwarded are the methods of MCP that reach a site.
var forwarded = []string{
	callMethod, listenMethod, discoverMethod, "tools/list", "resources/list", "resources/templates/list",
	"resources/read", "skills/list", "skills/get", "prompts/list", "prompts/get", "completion/complete",
	"tasks/get", "tasks/update", "tasks/cancel",
}

// owners are the operations of owners, by their methods.
var owners = sync.OnceValue(func() map[string]op.Row {
	all := make(map[string]op.Row)
	for _, row := range new(acts.Site).Operations() {
		all[row.Name] = row
	}
	return all
})

// site is one of the sites.
type site struct {
	own      peer.OwnSite
	messages func(http.ResponseWriter, *http.Request, web.Caller)
	confirm  func(context.Context, *rpc.Call, Act) error
	next     atomic.Uint64
	contact  contact
}

func newSite(own peer.OwnSite, confirm func(context.Context, *rpc.Call, Act) error) *site {
	s := &site{own: own, confirm: confirm}
	s.messages = web.MCP(&rpc.Dispatcher{Other: s.forward}, olderRevision).Serve
	return s
}

// forward passes a request on to the site, with the user's key.
func (s *site) forward(ctx context.Context, c *rpc.Call) (any, error) {
	params, err := readParams(c.Params)
	if err != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "params: %v", err)
	}
	row, owners := owners()[c.Method]
	switch {
	case owners && s.own.Owner:
		if err := s.ask(ctx, c, row, params.text); err != nil {
			return nil, refusal(err)
		}
	case !slices.Contains(forwarded, c.Method):
		return nil, rpc.Errorf(rpc.CodeMethodNotFound, "there is no method %.60q for you on this site", c.Method)
	default:
		if err := params.setUnconfirmed(); err != nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "params: %v", err)
		}
		if s.own.Owner && c.Method == callMethod && !tools.Reads(params.Name) && !tools.ReturnsToSafe(params.Name) {
			if err := s.heedsUnconfirmed(ctx, params.Meta); err != nil {
				return nil, refusal(err)
			}
		}
	}
	r := rpc.Request{
		ID: s.id(), Method: c.Method, Params: rpc.RawJSON(params.text), Version: rpc.Revision,
		Name: params.subject(), Repeatable: repeatable(c.Method, params.Name),
	}
	if c.Method == listenMethod {
		return s.listen(ctx, c, r)
	}
	return s.call(ctx, r, owners || isSlow(c.Method, params.Name))
}

// id is unique among the requests to the site, which may share a stream with others.
func (s *site) id() rpc.ID { return rpc.TextID("page-" + strconv.FormatUint(s.next.Add(1), 10)) }

// repeatable reports whether a request does no more when the site gets it twice.
func repeatable(method, tool string) bool {
	return method == callMethod && (tools.Reads(tool) || tools.ReturnsToSafe(tool)) || method == "tools/list"
}

// isSlow reports whether an answer may take long, or is worth waiting for.
func isSlow(method, tool string) bool {
	return method == callMethod && (!tools.IsOperation(tool) || tool == tools.AskAgent || tools.ReturnsToSafe(tool))
}

// call makes a call that is answered once.
func (s *site) call(ctx context.Context, r rpc.Request, slow bool) (any, error) {
	if !slow {
		done, err := s.contact.begin(s.own.Name)
		if err != nil {
			return nil, refusal(err)
		}
		defer done()
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := s.own.Caller.Call(ctx, r, nil)
	if err != nil {
		return nil, refusal(err)
	}
	s.contact.heard()
	return raw, nil
}

// listen subscribes, until the page or the site ends it. A page that does not keep up is told to begin again.
func (s *site) listen(ctx context.Context, c *rpc.Call, r rpc.Request) (any, error) {
	if s.contact.stale() {
		if err := s.own.Renew(ctx); err != nil {
			return nil, refusal(err)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type note struct {
		method string
		params rpc.Raw
	}
	notes := make(chan note, maxNotes)
	hear := func(method string, p rpc.Raw) {
		params, size := retag(p, r.ID, c.ID)
		switch {
		case size == 0:
			return // another subscription's
		case size > maxNote:
			cancel(errLong)
			return
		}
		s.contact.heard()
		select {
		case notes <- note{method, params}:
		default:
			cancel(errBehind)
		}
	}
	var answer rpc.Raw
	ended := make(chan error, 1)
	go func() {
		var err error
		answer, err = s.own.Caller.Call(ctx, r, hear)
		ended <- err
	}()
	for {
		select {
		case n := <-notes:
			if err := c.Notify(n.method, n.params); err != nil {
				return nil, err
			}
		case err := <-ended:
			if err != nil {
				return nil, refusal(cmp.Or(context.Cause(ctx), err))
			}
			for len(notes) > 0 {
				n := <-notes
				if err := c.Notify(n.method, n.params); err != nil {
					return nil, err
				}
			}
			answer, _ = retag(answer, r.ID, c.ID)
			return answer, nil
		}
	}
}

var (
	errBehind = device.Faultf(device.Busy, "the page did not keep up: subscribe again")
	errLong   = device.Faultf(device.Unavailable, "the site sends more than a page takes in")
)

// contact knows whether a site answers.
type contact struct {
	mu      sync.Mutex
	waiting int       // calls
	since   time.Time // when the first of them began, a later one ended, or the site said something
	last    time.Time // the site's last word
}

// begin begins a call; done ends it. It refuses one while others wait for long.
func (c *contact) begin(name string) (done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.waiting > 0 && now.Sub(c.since) > silence {
		return nil, device.Faultf(device.Offline, "%s has not answered for %v", name, now.Sub(c.since).Round(time.Second))
	}
	if c.waiting == 0 {
		c.since = now
	}
	c.waiting++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waiting--
		c.since = time.Now()
	}, nil
}

// heard notes a word of the site.
func (c *contact) heard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	c.since = c.last
}

// stale reports whether nothing was heard for long.
func (c *contact) stale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.last) > staleTime
}

// refusal returns the error of JSON-RPC for one of a call.
func refusal(err error) error {
	var theirs *rpc.Error
	if errors.As(err, &theirs) {
		return theirs
	}
	if why := peer.Unreached(err); why != nil {
		return rpc.Errorf(fault.Code(device.Offline), "%v", why)
	}
	if f := device.AsFault(err); f.Kind != device.Internal {
		return rpc.Errorf(fault.Code(f.Kind), "%s", f.Msg)
	}
	return rpc.Errorf(fault.Code(device.UnknownOutcome), "the site did not answer: %v", err)
}
