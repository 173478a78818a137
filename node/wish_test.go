package node

import (
	"context"
	"encoding/hex"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/agents/task"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/identity"

	"github.com/go-json-experiment/json"
)

// programsIn are the programs that signed in at a desk.
type programsIn struct {
	*desk
	store *access.Store
	owner identity.Key
	site  identity.Key
}

// withPrograms is withGuard for programs that sign in.
func withPrograms(t *testing.T, do func(in *programsIn)) {
	withGuard(t, func(d *desk) {
		in := &programsIn{desk: d, owner: identity.New(), site: identity.New()}
		var err error
		in.store, err = access.NewStore(access.Options{
			Site: in.site.ID(), URL: "https://lan/mcp", SystemClock: func() (time.Time, bool) { return time.Now(), true },
			SaveAccess: func([]byte) error { return nil }, SaveCounts: func([]byte) error { return nil },
		})
		if err != nil || in.store.Claim(access.Owner{ID: in.owner.ID()}) != nil {
			t.Fatal(err)
		}
		in.store.SetSignInURL("https://here/mcp")
		in.store.OnEnd = func() { // as the wiring has it
			for _, s := range d.site.Outputs.Status() {
				if s.Holder != "" && !in.store.MayHold(s.Holder, s.Output) {
					d.site.Outputs.Release(context.Background(), s.Output)
				}
			}
			d.Recheck()
		}
		d.access = in.store
		do(in)
	})
}

// grant signs a permission as the owner.
func (in *programsIn) grant(words string) []byte { return in.grantTo(in.site.ID(), words) }

func (in *programsIn) grantTo(who identity.ID, words string) []byte {
	may, err := access.ParsePermissions(words)
	if err != nil {
		panic(err)
	}
	until := time.Now().Add(100 * time.Hour).Unix()
	g, err := access.Issue(in.owner, access.Block{Audience: who, Permissions: may, Until: until})
	if err != nil {
		panic(err)
	}
	return g.Bytes()
}

// signIn has a program sign in.
func (in *programsIn) signIn(t *testing.T, name, words string) agents.Principal {
	t.Helper()
	var secret [32]byte
	copy(secret[:], name)
	token := access.SignInPrefix + hex.EncodeToString(secret[:])
	hash, _ := access.HashSignIn(token)
	who := access.SignIn{Client: name, Host: "client.example", ID: hash, Pair: access.Pair{Access: hash, Refresh: hash}}
	if _, err := in.store.AddSignIn(name, in.grant(words), who, 99*time.Hour); err != nil {
		t.Fatal(err)
	}
	p, err := in.store.Bearer(token)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (in *programsIn) change(t *testing.T, name, words string) {
	t.Helper()
	if err := in.store.ReplaceTokenGrant(name, in.grant(words)); err != nil {
		t.Fatal(err)
	}
}

// arguments are the arguments of a tool.
type arguments string

func (a arguments) Decode(into any) error { return json.Unmarshal([]byte(a), into) }

// calls calls a tool that the program is not offered.
func (in *programsIn) calls(p agents.Principal, tool, args string) device.FaultKind {
	_, err := in.Node.Call(context.Background(), p, tools.Call{Tool: tool, Args: arguments(args)})
	return kindOf(err)
}

// wished returns the wishes in words.
func (in *programsIn) wished(t *testing.T) (says []string) {
	t.Helper()
	all, err := in.Wishes(own)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		says = append(says, fmt.Sprintf("%s %d %s", w.Token, w.Times, w.May))
	}
	return says
}

// TestWish: a refused call of a program is one request at the owner, however often it comes, until the owner
// has widened the permission or said no, or an hour has passed.
func TestWish(t *testing.T) {
	withPrograms(t, func(in *programsIn) {
		wants := func(want ...string) {
			t.Helper()
			if got := in.wished(t); !slices.Equal(got, want) {
				t.Errorf("%q, wanted %q", got, want)
			}
		}
		p := in.signIn(t, "claude", "read *")
		const args = `{"output":"lever/arm","value":10,"for_seconds":120}`
		if kind := in.calls(p, "set_level", args); kind != device.Denied {
			t.Fatal(kind)
		}
		if kind := in.holdsFor(p, 20, 90); kind != device.Denied {
			t.Fatal(kind)
		}
		wants("claude 2 read *, set lever/arm max 90s")
		in.asks(p, 20, device.Denied)
		wants("claude 3 read *, set lever/arm max 1m")
		if kind := in.calls(p, "emergency_stop", `{}`); kind != device.Denied {
			t.Fatal(kind)
		}
		time.Sleep(time.Second)
		in.holdsFor(p, 20, 90)
		wants("claude 1 read *, stop", "claude 4 read *, set lever/arm max 90s")

		// What asks for nothing, or by others, is no request.
		in.calls(p, "switch_output", `{}`)
		in.calls(p, "set_level", `{"output":"a, set *","value":1}`)
		in.calls(p, "no_such_tool", `{}`)
		token, err := in.store.AddToken("kitchen", in.grant("read *"), time.Now().Add(time.Hour)) // which nobody signed in for
		if err != nil {
			t.Fatal(err)
		}
		kitchen, err := in.store.Bearer(token)
		if err != nil {
			t.Fatal(err)
		}
		in.asks(kitchen, 20, device.Denied)
		if _, err := in.Wishes(p); kindOf(err) != device.Denied {
			t.Error(err)
		}
		if all, err := in.Requests(own); err != nil || len(all) > 0 {
			t.Error(all, err)
		}
		wants("claude 1 read *, stop", "claude 4 read *, set lever/arm max 90s")

		// The owner widens it, and it is used at once.
		in.change(t, "claude", "read *, set lever/arm max 90s")
		wants("claude 1 read *, set lever/arm max 90s, stop")
		if kind := in.holdsFor(p, 20, 90); kind != "" {
			t.Error(kind)
		}
		if kind := in.holdsFor(p, 30, 91); kind != device.Denied {
			t.Error(kind)
		}
		wants("claude 1 read *, set lever/arm max 90s, stop", "claude 1 read *, set lever/arm max 91s")

		// The owner says no, which lasts for an hour.
		all, _ := in.Wishes(own)
		if err := in.Approve(own, all[1].Handle, true); kindOf(err) != device.Invalid {
			t.Error(err)
		}
		if err := in.Approve(own, all[1].Handle, false); err != nil {
			t.Error(err)
		}
		in.holdsFor(p, 30, 91)
		wants("claude 1 read *, set lever/arm max 90s, stop")
		time.Sleep(wishTime)
		wants()
		in.holdsFor(p, 30, 91)
		wants("claude 1 read *, set lever/arm max 91s")
		if err := in.store.Revoke(access.Revocation{Token: "claude"}); err != nil {
			t.Error(err)
		}
		wants()
		if n := len(in.requests.all); n > 0 {
			t.Errorf("%d are kept", n)
		}
	})
}

// TestWishIsNoApproval: an owner who said no to a wish, and then allows the same call after a yes each time, is asked.
func TestWishIsNoApproval(t *testing.T) {
	withPrograms(t, func(in *programsIn) {
		p := in.signIn(t, "claude", "read *")
		if kind := in.holdsFor(p, 20, 90); kind != device.Denied {
			t.Fatal(kind)
		}
		all, err := in.Wishes(own)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if err := in.Approve(own, all[0].Handle, false); err != nil {
			t.Fatal(err)
		}
		in.change(t, "claude", "read *, set lever max 2m confirm")
		in.holdsFor(p, 20, 90)
		if waiting, err := in.Requests(own); err != nil || len(waiting) != 1 {
			t.Error(waiting, err)
		}
	})
}

// TestWishWithoutLength: a call that gives no length needs the usual one of the output, and none where only its value
// is beyond the permission.
func TestWishWithoutLength(t *testing.T) {
	withPrograms(t, func(in *programsIn) {
		in.asks(in.signIn(t, "a", "read *"), 50, device.Denied)
		time.Sleep(time.Second)
		in.asks(in.signIn(t, "b", "set lever 0..5 max 10s"), 50, device.Denied)
		want := []string{"a 1 read *, set lever/arm max 1m", "b 1 set lever/arm 0..50 max 10s, set lever 0..5 max 10s"}
		if got := in.wished(t); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// TestWishesAreBounded: a program that wishes for everything hides no wish of another, and of long arguments none are
// kept.
func TestWishesAreBounded(t *testing.T) {
	withPrograms(t, func(in *programsIn) {
		greedy, modest := in.signIn(t, "greedy", "read lever/b"), in.signIn(t, "modest", "read lever/b")
		for i := range 100 {
			in.calls(greedy, "read_points", fmt.Sprintf(`{"points":["lever/p%d"]}`, i))
		}
		in.asks(modest, 1, device.Denied)
		all := in.wished(t)
		if len(all) != bounds[wishes].most+1 || !slices.Contains(all, "modest 1 read lever/b, set lever/arm max 1m") {
			t.Errorf("%q", all)
		}
		in.calls(in.signIn(t, "long", "read *"), "switch_output",
			`{"output":"lever/arm","on":true,"x":"`+strings.Repeat("x", maxWished)+`"}`)
		kept, err := in.Wishes(own)
		if i := slices.IndexFunc(kept, func(w Wish) bool { return w.Token == "long" }); i < 0 || kept[i].Args != nil {
			t.Errorf("%+v %v", kept, err)
		}
	})
}

// TestWatchWishes: an owner who watches is told at once that a wish came, and that it was granted.
func TestWatchWishes(t *testing.T) {
	withPrograms(t, func(in *programsIn) {
		p := in.signIn(t, "claude", "read *")
		told := make(chan int, 8)
		ctx, end := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() {
			ended <- in.Node.Watch(ctx, own, agents.WatchRequest{Points: []string{"lever/b"}}, func(u agents.Update) error {
				if u.Approvals != nil {
					told <- len(in.wished(t))
				}
				return nil
			})
		}()
		wants := func(n int) {
			t.Helper()
			begun := time.Now()
			if got := <-told; got != n || time.Since(begun) > time.Second {
				t.Errorf("%d wishes after %v, wanted %d", got, time.Since(begun), n)
			}
		}
		wants(0)
		in.asks(p, 1, device.Denied)
		wants(1)
		in.change(t, "claude", "read *, set lever")
		wants(0)
		end()
		<-ended
	})
}

// noAgents takes tasks for agents that nobody may ask.
type noAgents struct{ task.Host }

func (noAgents) Agents(context.Context, agents.Principal) ([]task.Agent, error) { return nil, nil }

var address = regexp.MustCompile(`[a-z]+/[a-z]+`)

// TestWishesAreListed: only a program that signed in is also told of the tools that it may ask the owner for, without a
// name that it may not read, and only until it may call them.
func TestWishesAreListed(t *testing.T) {
	withPrograms(t, func(in *programsIn) {
		points := func(kind device.Kind, names ...string) (all []device.Point) {
			for _, name := range names {
				all = append(all, device.Point{Name: name, Kind: kind})
			}
			return all
		}
		in.desk.site.Outputs = in.lever
		in.desk.site.Devices = append(in.desk.site.Devices,
			Device{Name: "pump", Description: device.Description{Points: points(device.KindSwitch, "relay", "valve")}},
			Device{Name: "door", Description: device.Description{Points: points(device.KindText, "sign")}},
			Device{Name: "porch", Description: device.Description{Points: points(device.KindImage, "eye")}})
		in.setSite()
		list := tools.New(in.Node, in.Node)
		list.Tasks = noAgents{}
		list.WishAsk = func(p agents.Principal) bool {
			return in.MayWish(p, agents.Ask{Op: agents.OpAsk, Points: []string{"beds"}}) == nil
		}
		wants := func(who string, p agents.Principal, want ...string) {
			t.Helper()
			may, err := list.Tools(t.Context(), p)
			all, err2 := list.Listed(t.Context(), p)
			if err != nil || err2 != nil || len(all) < len(may) || !reflect.DeepEqual(all[:len(may)], may) {
				t.Fatalf("%s: %v %v %+v", who, err, err2, all)
			}
			var got []string
			for _, tool := range all[len(may):] {
				says := strings.Join(append([]string{tool.Name}, address.FindAllString(string(tool.Input), -1)...), " ")
				got = append(got, says)
				if !strings.HasSuffix(tool.Description, tools.NotYet) || tool.Hints.ReadOnly {
					t.Errorf("%s: %+v", who, tool)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, wanted %q", who, got, want)
			}
		}
		in.store.URL = "https://site/mcp"
		token, err := in.store.AddToken("plain", in.grant("read *"), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := in.store.Bearer(token)
		if err != nil {
			t.Fatal(err)
		}
		key := identity.New()
		if _, err := in.store.AddGrant(in.grantTo(key.ID(), "read *")); err != nil {
			t.Fatal(err)
		}
		peer, err := in.store.Peer(key.ID().PeerID())
		if err != nil {
			t.Fatal(err)
		}
		for who, p := range map[string]agents.Principal{
			"a token": plain, "a key": peer, "an agent here": LocalAgent, "an owner": own,
			"an agent of the site": {Kind: principal.Hosted, ID: "rule:low"},
		} {
			wants(who, p)
		}
		wants("reads all", in.signIn(t, "all", "read *"),
			"switch_output pump/relay pump/valve", "set_level lever/arm", "emergency_stop", "show_text door/sign",
			"capture_image porch/eye", "ask_agent")
		wants("reads some", in.signIn(t, "some", "read lever/a+pump/valve"),
			"switch_output pump/valve", "set_level", "emergency_stop", "show_text", "capture_image", "ask_agent")
		wants("sets", in.signIn(t, "sets", "set pump"),
			"list_points", "read_points", "read_history", "set_level", "emergency_stop", "show_text", "capture_image",
			"site_status", "ask_agent")
		claude := in.signIn(t, "claude", "read *, set pump, stop, show *, capture *")
		wants("before", claude, "set_level lever/arm", "ask_agent")
		in.change(t, "claude", "read *, set lever/arm, stop, show *, capture *")
		wants("after", claude, "switch_output pump/relay pump/valve", "ask_agent")
		if err := in.store.Revoke(access.Revocation{Token: "claude"}); err != nil {
			t.Fatal(err)
		}
		wants("ended", claude)
	})
}

// TestNarrowed: a permission that becomes narrower counts at once, and what was moved by the former one returns to
// safe.
func TestNarrowed(t *testing.T) {
	withPrograms(t, func(in *programsIn) {
		p := in.signIn(t, "claude", "read *, set lever max 10m")
		if kind := in.holdsFor(p, 10, 600); kind != "" {
			t.Fatal(kind)
		}
		in.heldBy(t, p.ID, 10)
		in.change(t, "claude", "read *, set lever max 1m")
		in.heldBy(t, "", 0)
		time.Sleep(time.Minute) // its rest
		if kind := in.holdsFor(p, 10, 600); kind != device.Denied {
			t.Error(kind)
		}
		if kind := in.holdsFor(p, 10, 60); kind != "" {
			t.Error(kind)
		}
	})
}
