package peer

import (
	"context"
	"net"
	"reflect"
	"sync"

	"agentsite/agents"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"
)

// remoteSite is a contact as a member of a group.
type remoteSite struct {
	*client.Client
	person Person
	router *router

	mu    sync.Mutex
	known Contact
}

func newRemoteSite(h *members, k Contact) (*remoteSite, error) {
	id, err := identity.Parse(k.DID)
	if err != nil {
		return nil, err
	}
	s := &remoteSite{person: h.person, known: k}
	s.Client, s.router, err = newSession(h.key, id, func() []string { return s.contact().Addresses }, func(at []string) {
		h.person.Contacts().updateNear(k.DID, at)
	}, rpc.JSON, h.network, h.version)
	return s, err
}

func (s *remoteSite) contact() Contact {
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

// Watch begins on a new connection: an idle one may lead to where the site was.
func (s *remoteSite) Watch(ctx context.Context, p agents.Principal, r agents.WatchRequest, emit func(agents.Update) error) error {
	if err := s.renew(ctx); err != nil {
		return err
	}
	return s.Client.Watch(ctx, p, r, emit)
}

// renew searches a new route to the site, and presents the person's grant.
func (s *remoteSite) renew(ctx context.Context) error {
	s.router.invalidateRoute()
	return s.person.greet(ctx, s.contact(), s.Client, internetTimeout)
}

// localSite is the site that runs on this machine, as a member of a group.
type localSite struct {
	*client.Client
	caller socketCaller
	name   string
	did    string            // "" where the site is another user's
	made   state.FileVersion // of its socket
}

func newLocalSite(f state.Folder, socket, version string, made state.FileVersion) *localSite {
	caller := socketCaller{f, f.SocketPath(socket)}
	s := &localSite{Client: client.New(caller, "agentsite", version), caller: caller, made: made}
	if key, err := f.ReadKey(); err == nil {
		s.did = key.ID().String()
	}
	return s
}

// askName asks the site for its name.
func (s *localSite) askName(ctx context.Context) (string, error) {
	now, err := s.Status(ctx, agents.Principal{}, agents.SiteRequest{})
	if err != nil || len(now.Sites) != 1 {
		return "", err
	}
	return now.Sites[0].Site, nil
}

// socketCaller calls the site that runs from a folder through one of its sockets, each
// time over another connection.
type socketCaller struct {
	folder state.Folder
	socket string
}

// Call implements rpc.Caller.
func (s socketCaller) Call(ctx context.Context, r rpc.Request, note func(string, rpc.Raw)) (rpc.Raw, error) {
	conn, err := net.Dial("unix", s.socket)
	if err != nil {
		return rpc.Raw{}, &agents.Unreached{Err: notRunning(s.folder, err)}
	}
	defer conn.Close()
	stream := rpc.NewStreamClient(conn, rpc.JSON)
	go stream.Run() // ends with conn
	return stream.Call(ctx, r, note)
}
