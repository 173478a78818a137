//go:build e2e && linux

// Package internet tests sites behind routers, relays and the table of public sites, in network namespaces.
package internet

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/discovery/bed"
)

// TestInternet: a site is found by its capabilities and called over every kind of route by one
// person. The permissions and the refusals are the same on all.
func TestInternet(t *testing.T) {
	var mu sync.Mutex
	said := make(map[string][]string) // what is refused, by the way
	t.Run("ways", func(t *testing.T) {
		for _, path := range []string{"lan", "direct", "punched", "relayed"} {
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				w := newWay(t, path)
				w.found(t)
				w.used(t)
				refused := w.rules(t)
				w.agent(t)
				mu.Lock()
				defer mu.Unlock()
				said[path] = refused
			})
		}
	})
	for path, refused := range said {
		for other, too := range said {
			if path < other && !slices.Equal(refused, too) {
				t.Errorf("%s says\n%s\nand %s says\n%s", path, strings.Join(refused, "\n"), other, strings.Join(too, "\n"))
			}
		}
	}
}

// way is a world in which there is one way to a site.
type way struct {
	*far
	path  string
	from  *bed.Home // where its callers are
	home  *bed.Home // where the site is; nil where that is no home
	site  *harness.Site
	peer  string // --peer=KEY
	owner harness.Person
	ann   harness.Laptop // hers, the owner's
}

func newWay(t *testing.T, path string, agents ...string) *way {
	t.Helper()
	w := &way{far: newFar(t), path: path, owner: harness.NewPerson(t)}
	w.agents = strings.Join(agents, "")
	var on string
	var flags []string
	switch path {
	case "direct":
		on, _ = w.Public()
		w.from = w.Home(bed.Preserving)
	case "lan":
		w.from = w.Home(bed.Preserving)
		on, flags = w.from.Host(), []string{"--listen-https", ":8474"}
	case "punched", "relayed":
		kind := map[string]bed.NAT{"punched": bed.Preserving, "relayed": bed.Symmetric}[path]
		w.home = w.Home(kind)
		on = w.home.Host()
		w.from = w.Home(kind)
	}
	w.site = w.far.site(t, on, flags...)
	w.peer = "--peer=" + w.site.DID(t)
	w.ann = w.laptop(t, w.from.Host(), w.owner)
	return w
}

// found: an unclaimed site is not found by its capabilities. After the claim its owner finds it,
// from a machine that knows only the realm. A person in another realm does not.
func (w *way) found(t *testing.T) {
	t.Helper()
	if w.path != "lan" { // where it is known from the first moment
		harness.WaitFor(t, time.Minute, "the site is reached", func() bool {
			_, err := w.ann.CLI(t, w.peer, "ping", "-c1")
			return err == nil
		})
	}
	w.ann.CheckRefused(t, 3, "has no permission here", w.peer, "points")
	if all := w.ann.Find(t, "--capability", "switch"); len(all) > 0 {
		t.Errorf("a site that nobody owns shows that it can switch: %v", all)
	}
	w.ann.MustCLI(t, "claim", w.site.Invitation(t).String())
	begun := time.Now()
	elsewhere := w.laptop(t, w.ann.Host, w.owner)
	harness.WaitFor(t, time.Minute, "the site is found by what it measures", func() bool {
		all := elsewhere.Find(t, "--capability", "measurement/temperature")
		return len(all) == 1 && w.peer == "--peer="+all[0].DID
	})
	t.Logf("found by what it measures %v after it was claimed", time.Since(begun).Round(10*time.Millisecond))
	if all := elsewhere.Find(t, "--capability", "camera"); len(all) > 0 {
		t.Errorf("it has no camera: %v", all)
	}
	begun = time.Now()
	if out := elsewhere.MustCLI(t, w.peer, "read", "den/temperature"); !strings.Contains(out, "°C") {
		t.Errorf("read says %s", out)
	}
	t.Logf("called by its key, from where only that is known: %v", time.Since(begun).Round(10*time.Millisecond))

	stranger := harness.NewLaptop(t, w.ann.Host)
	stranger.JoinRealm(t, w.newRealm(t, "office"))
	if all := stranger.Find(t); len(all) > 0 {
		t.Errorf("another realm finds %v", all)
	}
}

// used: the owner's calls are answered, and by the way that it is.
func (w *way) used(t *testing.T) {
	t.Helper()
	w.ann.MustCLI(t, "--site=shed", "set", "lamp/relay", "on", "--for", "1m")
	count := 1
	if w.path == "punched" || w.path == "relayed" {
		count = 5 // a hole would be there by then
	}
	paths := w.ann.Ping(t, count, "--site=shed")
	better := slices.Index(paths, w.path)
	if better < 0 { // on a busy machine it takes longer
		paths = w.ann.Ping(t, 6*count, "--site=shed")
		better = slices.Index(paths, w.path)
	}
	t.Log("pings, a second apart, went ", paths)
	if better < 0 || slices.ContainsFunc(paths[:better], func(p string) bool { return p != "relayed" }) ||
		slices.ContainsFunc(paths[better:], func(p string) bool { return p != w.path }) {
		t.Errorf("pings went %v, not %s", paths, w.path)
	}
	w.ann.MustCLI(t, "--site=shed", "stop")
	w.ann.CheckRefused(t, 4, "emergency stop", "--site=shed", "set", "lamp/relay", "on", "--for", "1m")
	if out, err := w.site.CLI(t, "read", "lamp/relay"); err != nil || !strings.Contains(out, "off") {
		t.Errorf("after the emergency stop the site itself says %s %v", out, err)
	}
	w.ann.MustCLI(t, "--site=shed", "reset")
}

// rules: calls beyond no, partial and ended permissions are refused. It returns the refusals by
// caller.
func (w *way) rules(t *testing.T) (said []string) {
	t.Helper()
	refused := func(who string, l harness.Laptop, code int, says string, args ...string) {
		t.Helper()
		words := l.CheckRefused(t, code, says, append(args, "--wait=30s")...) // what is refused is tested, not how soon
		said = append(said, fmt.Sprintf("%s, %s: %d %s", who, args[1:], code, words))
	}
	eve := w.laptop(t, w.ann.Host, harness.NewPerson(t))
	for _, args := range [][]string{{"points"}, {"read", "den/temperature"}, {"set", "lamp/relay", "on", "--for", "1m"}, {"stop"}} {
		refused("a stranger", eve, 3, "has no permission here", append([]string{w.peer}, args...)...)
	}

	refused("a stranger", eve, 3, "this is an owner's", w.peer, "owners")

	other := harness.NewPerson(t)
	bob := w.laptop(t, w.ann.Host, other)
	grant := func(words string, more ...string) {
		t.Helper()
		args := append([]string{"--site=shed", "grant", other.Key(t).ID().String(), words, "--json"}, more...)
		var pass struct{ Grant string }
		harness.DecodeJSON(t, w.ann.MustCLI(t, args...), &pass)
		bob.MustCLI(t, "accept", pass.Grant)
	}
	grant("read lamp/*")
	if out := bob.MustCLI(t, "--site=shed", "read", "lamp/relay"); !strings.Contains(out, "off") {
		t.Errorf("read says %s", out)
	}
	refused("may read the lamp", bob, 3, "you lack the permission", "--site=shed", "read", "den/temperature")
	refused("may read the lamp", bob, 3, "you lack the permission", "--site=shed", "set", "lamp/relay", "on", "--for", "1m")
	refused("may read the lamp", bob, 3, "you lack the permission", "--site=shed", "stop")
	w.ann.MustCLI(t, "--site=shed", "revoke", other.Key(t).ID().String())
	refused("revoked", bob, 3, "has no permission here", "--site=shed", "read", "lamp/relay")

	other = harness.NewPerson(t)
	bob = w.laptop(t, w.ann.Host, other)
	grant("read *", "--until", "10s")
	harness.WaitFor(t, time.Minute, "the grant ends", func() bool {
		_, err := bob.CLI(t, "--site=shed", "read", "den/temperature")
		return err != nil
	})
	refused("ended", bob, 3, "has no permission here", "--site=shed", "read", "den/temperature")
	return said
}

// agent: calls of an MCP client go over the same route, stay within the agent's permission, and
// leave the relay once they can.
func (w *way) agent(t *testing.T) {
	t.Helper()
	w.ann.MustCLI(t, "agents", "allow", "read *, stop", "--site=shed")
	m := harness.ConnectSDK(t, w.ann.Command(t.Context(), "connect", w.peer), "2026-07-28")
	reads := func() bool {
		return strings.Contains(m.Call(t, "read_points", map[string]any{"points": []string{"shed/den/temperature"}}), `"good"`)
	}
	harness.WaitFor(t, time.Minute, "an agent reads", reads)
	quiet := func() bool {
		before := w.from.Sent(w.relay.IP)
		for range 20 {
			if !reads() {
				t.Fatal("the agent reads no more")
			}
		}
		return w.from.Sent(w.relay.IP)-before < 20
	}
	if w.path == "relayed" {
		if quiet() {
			t.Error("what the agent says does not go over the relay")
		}
	} else {
		harness.WaitFor(t, time.Minute, "what the agent says goes past the relay", quiet)
	}
	if says := m.Call(t, "switch_output", map[string]any{"output": "shed/lamp/relay", "on": true, "for_seconds": 5}); !strings.Contains(says, "Unknown tool") {
		t.Error("an agent that may not switch:", says)
	}
	if says := m.Call(t, "emergency_stop", map[string]any{}); !strings.Contains(says, "shed") {
		t.Error("emergency stop:", says)
	}
	w.ann.CheckRefused(t, 4, "emergency stop", "--site=shed", "set", "lamp/relay", "on", "--for", "1m")
	var all struct {
		Yours []peer.Agent `json:"yours"`
	}
	harness.DecodeJSON(t, w.ann.MustCLI(t, "agents", "--json"), &all)
	w.ann.MustCLI(t, "--site=shed", "revoke", all.Yours[0].DID)
	if says := m.Call(t, "read_points", map[string]any{"points": []string{"shed/den/temperature"}}); !strings.HasPrefix(says, "denied") {
		t.Error("an agent whose grant is revoked:", says)
	}
}

// TestInternetRelay: the only relay is killed and restarted while calls go through it. The next
// call is answered within ten seconds, from a new process and from a running one.
func TestInternetRelay(t *testing.T) {
	t.Parallel()
	w := newWay(t, "relayed")
	harness.WaitFor(t, time.Minute, "the site is claimed", func() bool {
		_, err := w.ann.CLI(t, "claim", w.site.Invitation(t).String())
		return err == nil
	})
	w.ann.MustCLI(t, "agents", "allow")
	m := harness.ConnectSDK(t, w.ann.Command(t.Context(), "connect", w.peer), "2026-07-28")
	reads := func() bool {
		return strings.Contains(m.Call(t, "read_points", map[string]any{"points": []string{"shed/den/temperature"}}), `"good"`)
	}
	harness.WaitFor(t, time.Minute, "the agent reads", reads)
	watch := w.ann.Command(t.Context(), "--site=shed", "read", "--watch", "den/temperature")
	first := lines(t, watch)
	<-first

	w.relay.Kill()
	begun := time.Now()
	time.Sleep(time.Second) // as deploy/agentsite-relay.service has it
	w.relay.Start(t)
	t.Logf("the relay was gone for %v", time.Since(begun).Round(10*time.Millisecond))
	var next sync.WaitGroup
	again := func(what string, ok func() bool) {
		next.Go(func() {
			tries := 1
			for ; !ok() && time.Since(begun) < 30*time.Second; tries++ {
			}
			took := time.Since(begun)
			t.Logf("%s is answered %v after the relay was killed (at most 10 s), when asked %d times", what, took.Round(10*time.Millisecond), tries)
			if took > 30*time.Second {
				t.Errorf("%s: that is more than 30 s", what)
			}
		})
	}
	again("an agent's call", reads)
	again("a new command", func() bool {
		_, err := w.ann.CLI(t, "--site=shed", "read", "den/temperature")
		if err != nil {
			t.Log(time.Since(begun), err)
		}
		return err == nil
	})
	next.Wait()
	for range first { // who goes on with what does not come would not know
	}
	t.Logf("the subscription ended by itself within %v", time.Since(begun).Round(10*time.Millisecond))
}

// TestInternetGone: a site that was killed is not found, though the tables have it still.
func TestInternetGone(t *testing.T) {
	t.Parallel()
	w := newWay(t, "direct")
	harness.WaitFor(t, time.Minute, "the site is claimed", func() bool {
		_, err := w.ann.CLI(t, "claim", w.site.Invitation(t).String())
		return err == nil
	})
	harness.WaitFor(t, time.Minute, "the site is found", func() bool { return len(w.ann.Find(t, "--capability", "switch")) == 1 })
	w.site.Kill(t)
	begun := time.Now()
	if all := w.ann.Find(t, "--capability", "switch"); len(all) > 0 {
		t.Errorf("found, and dead: %v", all)
	}
	t.Logf("find says so after %v", time.Since(begun).Round(10*time.Millisecond))
	begun = time.Now()
	w.ann.CheckRefused(t, 6, "cannot connect", "--site=shed", "read", "den/temperature")
	t.Logf("and read after %v", time.Since(begun).Round(10*time.Millisecond))
}
