package owner_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/history"
	"agentsite/node/identity"
	"agentsite/transport/owner"
	"agentsite/transport/owner/client"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Senders on the site's own machine.
var (
	theOwner = rpc.Sender{Who: node.LocalOwner}
	anAgent  = rpc.Sender{Who: node.LocalAgent}
	theToken = rpc.Sender{Who: principal.Principal{Kind: principal.SiteToken, ID: principal.SiteTokenID}}
)

// formerOwner is a key whose ownership has ended since its request came.
func formerOwner(key identity.ID) principal.Principal {
	return principal.Principal{Kind: principal.Key, ID: key.String(), Owner: true}
}

// disk holds the files that a site's access store wrote.
type disk struct{ book, meter []byte }

// site is one whose methods are called in this process by some sender.
type site struct {
	acts.Site
	sender rpc.Sender
}

func newSite(t testing.TB, key identity.Key, d *disk) *site {
	t.Helper()
	book, err := access.NewStore(access.Options{
		Site: key.ID(), URL: "u", Access: d.book, Counts: d.meter, SystemClock: func() (time.Time, bool) { return time.Now(), true },
		SaveAccess: func(b []byte) error { d.book = slices.Clone(b); return nil },
		SaveCounts: func(b []byte) error { d.meter = slices.Clone(b); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return &site{
		acts.Site{
			Node: node.New(node.Parts{Hub: node.NewHub(nil, history.New(nil), agents.PointURI), Token: "secret"}), Access: book,
			Key: key, Name: "greenhouse", Addresses: func() []string { return []string{"192.0.2.1:1"} },
		},
		theOwner,
	}
}

// owner is a client with the site's sender, at first that of the site's own machine.
func (s *site) owner() *client.Client {
	return client.New(caller{owner.Methods(&s.Site), s.sender}, identity.ID{}, "")
}

// caller calls methods as some sender.
type caller struct {
	methods map[string]rpc.Method
	sender  rpc.Sender
}

func (c caller) CallMethod(ctx context.Context, method string, params any) ([]byte, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	result, err := c.call(ctx, method, rpc.RawJSON(text))
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

func (c caller) call(ctx context.Context, method string, params rpc.Raw) (any, error) {
	return c.methods[method](ctx, &rpc.Call{Params: params, Sender: c.sender})
}

// signer passes a key to what signs by it.
func signer(key identity.Key) func() (identity.Key, error) {
	return func() (identity.Key, error) { return key, nil }
}

// code is a JSON-RPC error's, 0 for none.
func code(t *testing.T, err error) int {
	t.Helper()
	var refused *rpc.Error
	if err == nil {
		return 0
	}
	if !errors.As(err, &refused) {
		t.Errorf("%v is no JSON-RPC error", err)
		return -1
	}
	return refused.Code
}

// TestOwnersMethodsAreTheOwners: every owner's method is refused to every other caller.
func TestOwnersMethodsAreTheOwners(t *testing.T) {
	s := newSite(t, identity.New(), new(disk))
	s.Node = node.New(node.Parts{Hub: node.NewHub(nil, history.New(nil), agents.PointURI), Token: "secret", Access: s.Access})
	stranger := identity.New().ID()
	forKeys := []string{string(owner.PresentMethod), string(owner.ReclaimMethod)}
	count := 0
	for name := range owner.Methods(&s.Site) {
		for _, e := range []rpc.Sender{{}, theToken, anAgent, {Key: "12D3"}, {Key: stranger.String()}, {Who: formerOwner(stranger)}} {
			_, err := caller{owner.Methods(&s.Site), e}.call(t.Context(), name, rpc.Raw{})
			if slices.Contains(forKeys, name) && e.Key != "" {
				if err == nil {
					t.Errorf("%s by %+v is done without a grant or a code", name, e)
				}
				continue
			}
			if code(t, err) != rpc.CodeMethodNotFound {
				t.Errorf("%s by %+v: %v", name, e, err)
			}
		}
		if strings.HasPrefix(name, "owner/") {
			count++
		}
	}
	if count != 52 || s.Access.Claimed() {
		t.Errorf("%d methods", count)
	}
}

// latched is a guard without a process between.
type latched struct{ *guard.Guard }

func (g latched) Reset(context.Context) error {
	_, _, stops := g.State()
	return g.Guard.Reset(stops)
}

func (g latched) TakeOver(_ context.Context, holder, output string) error {
	return g.Guard.TakeOver(holder, output)
}

// stopped is a guard without outputs, with the emergency stop on.
func stopped(t *testing.T, folder string) latched {
	t.Helper()
	g, err := guard.New(nil, guard.Latch{File: filepath.Join(folder, "armed")})
	if err != nil || !g.Stopped() {
		t.Fatalf("stopped: %v, %v", g.Stopped(), err)
	}
	return latched{g}
}

// TestReset: the owner's socket alone ends the emergency stop.
func TestReset(t *testing.T) {
	for _, tt := range []struct {
		name string
		e    rpc.Sender
		ok   bool
	}{
		{"nobody", rpc.Sender{}, false},
		{"the token", theToken, false},
		{"an agent", anAgent, false},
		{"an agent as root", anAgent, false},
		{"a peer", rpc.Sender{Key: "12D3"}, false},
		{"the owner", theOwner, true},
	} {
		g := stopped(t, t.TempDir())
		s := newSite(t, identity.New(), new(disk))
		s.Outputs, s.sender = g, tt.e
		_, err := client.Call(t.Context(), s.owner(), acts.ResetAct, acts.None{})
		if g.Stopped() == tt.ok {
			t.Errorf("%s: stopped afterwards: %v", tt.name, g.Stopped())
		}
		want := rpc.CodeMethodNotFound
		if tt.ok {
			want = 0
		}
		if code(t, err) != want {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestResetThatFails(t *testing.T) {
	g := stopped(t, filepath.Join(t.TempDir(), "no", "folder"))
	s := newSite(t, identity.New(), new(disk))
	s.Outputs = g
	if _, err := client.Call(t.Context(), s.owner(), acts.ResetAct, acts.None{}); code(t, err) != 503 || !g.Stopped() {
		t.Error(err)
	}
}

// TestReload: it is the owner's alone, and says by its code whether the file was at fault.
func TestReload(t *testing.T) {
	s := newSite(t, identity.New(), new(disk))
	var says error
	asked := 0
	s.Reload = func(context.Context) error {
		asked++
		return says
	}
	for _, s.sender = range []rpc.Sender{{}, theToken, anAgent} {
		if _, err := client.Call(t.Context(), s.owner(), acts.ReloadAct, acts.None{}); code(t, err) != rpc.CodeMethodNotFound || asked != 0 {
			t.Errorf("%+v: %v", s.sender, err)
		}
	}
	s.sender = theOwner
	_, mistake := config.Parse("test", []byte("site: {}"), nil)
	for _, tt := range []struct {
		err  error
		code int
	}{
		{nil, 0}, {mistake, rpc.CodeInvalidParams}, {device.Faultf(device.Invalid, "restart"), rpc.CodeInvalidParams},
		{device.Faultf(device.Offline, "it holds, but"), 502}, {errors.New("a defect"), rpc.CodeInternal},
	} {
		says = tt.err
		_, err := client.Call(t.Context(), s.owner(), acts.ReloadAct, acts.None{})
		if code(t, err) != tt.code || err != nil && err.(*rpc.Error).Message != tt.err.Error() {
			t.Errorf("%v: %v", tt.err, err)
		}
	}
}

type noActuator struct{}

func (noActuator) Apply(context.Context, string, device.Value) error { return nil }

// TestTakeOver: the owner's socket alone makes its user the holder of an output.
func TestTakeOver(t *testing.T) {
	latch := guard.Latch{File: filepath.Join(t.TempDir(), "armed")}
	if err := latch.Arm(); err != nil {
		t.Fatal(err)
	}
	policy := guard.NewPolicy("lamp", device.Point{Name: "relay", Kind: device.KindSwitch, Safe: device.Bool(false)})
	policy.Rest = 0
	g, err := guard.New([]guard.Actuated{{Actuator: noActuator{}, Policies: []guard.Policy{policy}}}, latch)
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, identity.New(), new(disk))
	s.Outputs = latched{g}
	params := rpc.RawJSON([]byte(`{"name":"lamp/relay"}`))
	for _, tt := range []struct {
		e      rpc.Sender
		params rpc.Raw
		code   int
	}{
		{rpc.Sender{}, params, rpc.CodeMethodNotFound},
		{theToken, params, rpc.CodeMethodNotFound},
		{anAgent, params, rpc.CodeMethodNotFound},
		{theOwner, params, 0},
		{theOwner, rpc.Raw{}, rpc.CodeInvalidParams},
		{theOwner, rpc.RawJSON([]byte(`{"name":"lamp/nothing"}`)), rpc.CodeInvalidParams},
		{theOwner, rpc.RawJSON([]byte(`{"name":1}`)), rpc.CodeInvalidParams},
	} {
		if _, err := (caller{owner.Methods(&s.Site), tt.e}).call(t.Context(), string(acts.TakeOverAct), tt.params); code(t, err) != tt.code {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// noted is a journal that keeps what was done without asking.
type noted struct {
	node.Journal
	all []node.Asked
}

func (n *noted) Add(a node.Asked, _ node.Outcome) { n.all = append(n.all, a) }

// TestImportIsNoted: whatever is imported is in the journal, once a minute for each point.
func TestImportIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, identity.New(), new(disk))
		j := &noted{}
		s.Node = node.New(node.Parts{Hub: node.NewHub(nil, history.New(nil), agents.PointURI), Token: "secret", Journal: j})
		s.Import = func(string, []device.Summary) (int, error) { return 1, nil }
		c := s.owner()
		send := func(point string) {
			if got, err := client.Call(t.Context(), c, acts.ImportAct, acts.Import{Point: point, Readings: []acts.PastReading{{Count: 1}}}); err != nil || got.Imported != 1 {
				t.Error(got, err)
			}
		}
		for range 3 {
			send("a/t")
			send("a/h")
		}
		if len(j.all) != 2 || j.all[0].Tool != "import" || string(j.all[0].Args) != `{"name":"a/t"}` {
			t.Errorf("%+v", j.all)
		}
		time.Sleep(time.Minute + time.Second)
		send("a/t")
		if len(j.all) != 3 {
			t.Errorf("%+v", j.all)
		}
	})
}
