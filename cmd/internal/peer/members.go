package peer

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/remote"
	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"

	"golang.org/x/sync/errgroup"
)

const (
	// listPatience is how long a site may take to say what it offers.
	listPatience = 10 * time.Second
	// pollEvery is how often a site is asked that has no subscription left.
	pollEvery = 10 * time.Second
)

// remoteSite is a contact as agents/remote has it.
type remoteSite struct {
	client *client.Client
	person Person
	router *router

	mu    sync.Mutex
	known Contact
}

var _ remote.Site = (*remoteSite)(nil)

func newRemoteSite(h *members, k Contact) (*remoteSite, error) {
	id, err := identity.Parse(k.DID)
	if err != nil {
		return nil, err
	}
	s := &remoteSite{person: h.person, known: k}
	s.client, s.router, err = newSession(h.key, id, func() []string { return s.site().Addresses }, func(at []string) {
		h.person.Contacts().updateNear(k.DID, at)
	}, rpc.JSON, h.network, h.version)
	return s, err
}

func (s *remoteSite) site() Contact {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// becomes takes over the contact's addresses and reports true where nothing else of it has
// changed.
func (s *remoteSite) becomes(k Contact) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.known
	now.Addresses = k.Addresses
	if !reflect.DeepEqual(now, k) {
		return false
	}
	s.known = k
	return true
}

func (s *remoteSite) Call(ctx context.Context, p agents.Principal, c agents.Call) (agents.Result, error) {
	return answered(s.client.Call(ctx, p, c))
}

// Follow begins on a new connection: an idle one may lead to where the site was.
func (s *remoteSite) Follow(ctx context.Context, uris []string, tell func(remote.News)) error {
	s.router.invalidateRoute()
	if err := s.person.greet(ctx, s.site(), s.client, internetTimeout); err != nil {
		return err
	}
	return follow(ctx, s.client, uris, tell)
}

// localSite is the site that runs on this machine, as agents/remote has it.
type localSite struct {
	folder        state.Folder
	version, name string
	did           string            // "" where the site is another user's
	made          state.FileVersion // of its socket

	mu     sync.Mutex
	client *client.Client // nil while there is no connection
}

var _ remote.Site = (*localSite)(nil)

func (s *localSite) Call(ctx context.Context, p agents.Principal, call agents.Call) (agents.Result, error) {
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	if c == nil { // it is not followed, and may answer all the same
		once, conn, err := dialSocket(s.folder, s.folder.SocketPath(state.AgentSocket), s.version)
		if err != nil {
			return agents.Result{}, &remote.Unreached{Err: err}
		}
		defer conn.Close()
		c = once
	}
	return answered(c.Call(ctx, p, call))
}

func (s *localSite) Follow(ctx context.Context, uris []string, tell func(remote.News)) error {
	c, conn, err := dialSocket(s.folder, s.folder.SocketPath(state.AgentSocket), s.version)
	if err != nil {
		return err
	}
	defer conn.Close()
	s.use(c)
	defer s.use(nil)
	return follow(ctx, c, uris, tell)
}

func (s *localSite) use(c *client.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = c
}

// answered translates the outcome of a call for agents/remote.
func answered(res agents.Result, err error) (agents.Result, error) {
	var waits *agents.ApprovalNeeded
	var away unreached
	switch {
	case errors.As(err, &waits):
		return agents.Result{NeedInput: &agents.NeedInput{State: waits.State, Elsewhere: waits.Says}}, nil
	case errors.As(err, &away):
		return res, &remote.Unreached{Err: away.error}
	}
	return res, err
}

// follow passes the site's tools to tell, again after each change, and changes of resources,
// until ctx or the connection ends.
func follow(ctx context.Context, c *client.Client, uris []string, tell func(remote.News)) error {
	all, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(listPatience, func() { cancel(errSilent) })
	defer late.Stop()
	var mu sync.Mutex // one is told at a time
	offered := make(chan struct{}, 1)
	heard := func(n agents.Change) {
		if n.URI != "" {
			mu.Lock()
			defer mu.Unlock()
			tell(remote.News{URI: n.URI})
			return
		}
		select {
		case offered <- struct{}{}:
		default: // it is asked anyway
		}
	}
	all.Go(func() error {
		for {
			err := c.Follow(ctx, uris, heard)
			var refused *client.Refusal
			switch {
			case err == nil:
				return errors.New("it has ended")
			case !errors.As(err, &refused) || refused.Kind != string(device.Busy):
				return err
			}
			// It has no subscription left for us, and can be asked now and then all the same.
			heard(agents.Change{})
			for _, uri := range uris {
				heard(agents.Change{URI: uri})
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pollEvery):
			}
		}
	})
	all.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-offered:
			}
			tools, err := toolsOf(ctx, c)
			if err != nil {
				return err
			}
			late.Stop()
			mu.Lock()
			tell(remote.News{Tools: tools})
			mu.Unlock()
		}
	})
	err := all.Wait()
	if context.Cause(ctx) == errSilent {
		return errSilent
	}
	return err
}

var errSilent = errors.New("it does not say what it offers")

// toolsOf lists a site's tools, without their texts.
func toolsOf(ctx context.Context, c *client.Client) ([]agents.Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	list, err := c.Tools(ctx)
	tools := make([]agents.Tool, 0, len(list))
	for _, t := range list {
		schema, err := t.Input.JSONText()
		if err != nil {
			return nil, err
		}
		tools = append(tools, agents.Tool{Name: t.Name, Input: schema})
	}
	return tools, err
}

// askName asks a site what it calls itself.
func askName(ctx context.Context, c *client.Client) (string, error) {
	now, err := c.Status(ctx, agents.Principal{}, agents.SiteRequest{})
	if err != nil || len(now.Sites) != 1 {
		return "", err
	}
	return now.Sites[0].Site, nil
}
