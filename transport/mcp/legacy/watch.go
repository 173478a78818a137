package legacy

import (
	"context"
	"slices"

	"agentsite/agents"
	"agentsite/agents/tools"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxWatched bounds the resources that one session is subscribed to.
const maxWatched = 128

// watch is one resource that sessions of a host are subscribed to.
type watch struct {
	stop     context.CancelFunc
	sessions int
}

// watch starts to tell emit of changes, from one goroutine, and returns once none
// can be missed any more.
func (h *host) watch(which agents.Change, uris []string, emit func(agents.Change)) context.CancelFunc {
	ctx, cancel := context.WithCancel(context.Background())
	live := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		h.srv.catalog.Notify(ctx, h.who, which, uris, func(c agents.Change) error {
			if c == (agents.Change{}) {
				close(live)
			} else {
				emit(c)
			}
			return nil
		})
		close(ended)
		if ctx.Err() == nil { // the node ended it: the caller may not see that any more
			h.srv.expel(h)
		}
	}()
	select {
	case <-live:
	case <-ended:
	}
	return cancel
}

func (h *host) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	uri := req.Params.URI
	all, err := h.srv.Library.Resources(ctx, h.who)
	if err != nil {
		return asError(err)
	}
	if !slices.ContainsFunc(all, func(r tools.Resource) bool { return r.URI == uri }) {
		return sdk.ResourceNotFoundError(uri)
	}
	h.srv.mu.Lock()
	defer h.srv.mu.Unlock()
	x := h.srv.sessions[req.Session]
	switch {
	case x == nil:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the session has ended"}
	case x.watched[uri]:
		return nil
	case len(x.watched) >= maxWatched:
		return &jsonrpc.Error{Code: codeBusy, Message: "this session is subscribed to too many resources: unsubscribe from one first"}
	}
	w := h.watches[uri]
	if w == nil {
		w = &watch{stop: h.watch(agents.Change{}, []string{uri}, h.updated)}
		h.watches[uri] = w
	}
	w.sessions++
	x.watched[uri] = true
	return nil
}

func (h *host) unsubscribe(_ context.Context, req *sdk.UnsubscribeRequest) error {
	h.srv.mu.Lock()
	defer h.srv.mu.Unlock()
	if x := h.srv.sessions[req.Session]; x != nil && x.watched[req.Params.URI] {
		delete(x.watched, req.Params.URI)
		h.unwatch(req.Params.URI)
	}
	return nil
}

// unwatch ends one session's part in a watch. The server's lock is held.
func (h *host) unwatch(uri string) {
	w := h.watches[uri]
	if w.sessions--; w.sessions == 0 {
		w.stop()
		delete(h.watches, uri)
	}
}

// updated tells the sessions that are subscribed: the SDK knows which.
func (h *host) updated(c agents.Change) {
	h.sdk.ResourceUpdated(context.Background(), &sdk.ResourceUpdatedNotificationParams{URI: c.URI})
}
