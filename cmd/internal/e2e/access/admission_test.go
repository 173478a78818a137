//go:build e2e

// Package access tests who may use a site, and what hostile clients can do.
package access

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/transport/mcp/client"
	ownerapi "agentsite/transport/owner"
)

const (
	floodEnv   = "E2E_FLOOD" // what it is sent against, as JSON; the test's own program is the flood
	floodConns = 400         // of each of those who attack
)

// target holds the parameters of the flood.
type target struct {
	HTTP, HTTPS string // addresses
	Tokens      []string
}

// TestAdmission: three callers with a grant for one reading open 400 connections each, over HTTP
// and HTTPS. They send half heads and half messages that are marked as urgent, and reconnect after
// evictions. Each has delegated its permission to eight keys, which open as many subscriptions and
// request as many approvals as they can. Meanwhile the calls of an owner, of this machine and of
// others are answered, stops above all. This holds for every carrier and an older revision, and for
// existing and new connections.
func TestAdmission(t *testing.T) {
	r := startOwned(t, "  den: { driver: sim, model: climate }\n"+
		"  box: { driver: sim, model: relay, min_off: 0s }\n  gate: { driver: sim, model: relay, min_off: 0s, confirm: owner }\n")
	i := access.Invitation{Site: r.id, Addresses: r.Access(t).At}

	to := target{HTTP: strings.TrimPrefix(r.URL, "http://"), HTTPS: i.Addresses[0]}
	for n := range 3 {
		token, _ := r.AddToken(t, fmt.Sprint("hostile", n), "read den/temperature")
		to.Tokens = append(to.Tokens, token)
	}
	alices, alice := r.AddToken(t, "alice", "read *, stop")
	bob := callOlder(t, r.Site, alices)
	over := newCaller(t, r.owner, r.id, r.peers)
	read := func(c *client.Client) func() error {
		return func() error {
			_, err := c.Ask(t.Context(), "read_points", []byte(`{"points":["den/temperature"]}`))
			return err
		}
	}
	stop := func(c *client.Client) func() error {
		return func() error {
			a, err := c.Ask(t.Context(), "emergency_stop", []byte(`{}`))
			if err == nil && !bytes.Contains(a.JSON, []byte(`"emergency_stop":true`)) {
				err = fmt.Errorf("it has not stopped: %s", a.JSON)
			}
			return err
		}
	}
	anew := func() *client.Client { return harness.DialAs(t, r.owner, i) }
	local := r.Client(t, false)
	over.p99(t, 20) // so that it is connected
	flows := []flow{
		{"the owner reads over HTTPS", read(anew())},
		{"the owner stops over HTTPS, by a new connection each time", func() error { return stop(anew())() }},
		{"the owner stops over libp2p", stop(over.Client)},
		{"this machine's token stops over HTTP", stop(local)},
		{"another token reads over HTTP", read(alice)},
		{"another token stops over HTTP, by a new connection each time", func() error { return stopOnce(r.Site, alices) }},
		{"another token stops in a session of an older revision", bob},
	}
	for _, f := range flows {
		if err := f.call(); err != nil {
			t.Fatal(f.name, err)
		}
	}

	flows = append(flows, flow{"a bare echo beside", bareEcho(t)})
	alone, _ := measure(t, flows, 2*time.Second)
	text, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	log := startAttack(t, floodEnv, string(text))
	hostile := passGrants(t, r.Site, r.owner, i, r.peers, 3)
	harness.WaitFor(t, time.Minute, "all connections were made", func() bool { return strings.Contains(log.String(), "all have come") })
	harness.WaitFor(t, time.Minute, "all subscriptions that there are for them are open", func() bool { return hostile.refused.Load() > 0 })

	const limit = 50 * time.Millisecond
	for try := 1; ; try++ {
		length, used := time.Duration(harness.Workload(6, 60))*time.Second, harness.CPUTime(t, r.Cmd.Process.Pid)
		worst, bare := measure(t, flows, length)
		t.Logf("%v of processor time of the site's in %v", harness.CPUTime(t, r.Cmd.Process.Pid)-used, length)
		busy := max(alone, bare) // what this machine takes for it without an attack
		if t.Logf("p99 of the slowest: %v alone, %v under attack; of a bare echo: %v", alone, worst, bare); worst <= limit {
			break
		}
		if try < 3 {
			continue
		}
		if busy <= limit/4 || worst > 10*busy {
			t.Errorf("a call took %v, more than %v, three times", worst, limit)
		}
		break
	}
	if out, err := r.CLI(t, "stop"); err != nil {
		t.Error(out, err)
	}
	if out, err := r.CLI(t, "stop", "--url", r.URL); err != nil {
		t.Error(out, err)
	}
	t.Logf("subscriptions of theirs: %d open, %d refused; resident %.1f MB", hostile.open.Load(), hostile.refused.Load(), harness.Status(t, r.Cmd.Process.Pid, "VmRSS:")/1024)
	if mb := harness.Status(t, r.Cmd.Process.Pid, "VmHWM:") / 1024; mb > 128 {
		t.Errorf("the site was %.1f MB large", mb)
	}
}

// flow is a call that is repeated for as long as an attack lasts.
type flow struct {
	name string
	call func() error
}

// measure runs all flows concurrently, and returns the worst p99 of all but the last, and that of
// the last. None may fail.
func measure(t *testing.T, flows []flow, length time.Duration) (worst, last time.Duration) {
	t.Helper()
	var all sync.WaitGroup
	p99 := make([]time.Duration, len(flows))
	for i, f := range flows {
		all.Go(func() {
			var took []time.Duration
			failed := 0
			for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				begun := time.Now()
				if err := f.call(); err != nil {
					if failed++; failed <= 3 {
						t.Errorf("%s: %v", f.name, err)
					}
				}
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			p99[i] = took[len(took)*99/100]
			t.Logf("%s: %d calls, %d failed, median %v, p99 %v", f.name, len(took), failed, took[len(took)/2].Round(10*time.Microsecond), p99[i].Round(10*time.Microsecond))
		})
	}
	all.Wait()
	return slices.Max(p99[:len(p99)-1]), p99[len(p99)-1]
}

// bareEcho is a call of a server that does nothing and that nobody attacks.
func bareEcho(t *testing.T) func() error {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), echoEnv+"=1")
	log := &harness.LogBuffer{}
	cmd.Stdout = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	harness.WaitFor(t, time.Minute, "the echo is there", func() bool { return harness.AddressPattern.MatchString(log.String()) })
	url := harness.AddressPattern.FindStringSubmatch(log.String())[1] + "/mcp"
	return func() error {
		res, err := http.Post(url, "application/json", strings.NewReader(harness.ToolCall("read_points", "{}")))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
}

// oneStop stops the site by a connection of its own, and names nothing in a header.
func stopOnce(r *harness.Site, token string) error {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	req, err := http.NewRequest("POST", r.URL+"/mcp", strings.NewReader(harness.ToolCall("emergency_stop", "{}")))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "emergency_stop",
	} {
		req.Header.Set(name, value)
	}
	return stopped(c.Do(req))
}

// older begins a session of an older revision and returns what stops the site in it.
func callOlder(t *testing.T, r *harness.Site, token string) func() error {
	session := r.BeginSession(t, token)
	c := &http.Client{Timeout: 10 * time.Second}
	return func() error {
		req, err := http.NewRequest("POST", r.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"emergency_stop","arguments":{}}}`))
		if err != nil {
			return err
		}
		for name, value := range map[string]string{
			"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2025-06-18", "Mcp-Session-Id": session,
		} {
			req.Header.Set(name, value)
		}
		return stopped(c.Do(req))
	}
}

func stopped(res *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || !bytes.Contains(b, []byte(`emergency_stop`)) || bytes.Contains(b, []byte(`"isError":true`)) {
		return fmt.Errorf("%s %.200s %v", res.Status, b, err)
	}
	return nil
}

// passedOn counts what delegates hold.
type passedOn struct{ open, refused atomic.Int64 }

// passOn grants a few something; each passes it on to eight keys, and all of these open as
// many subscriptions as they can.
func passGrants(t *testing.T, r *harness.Site, own identity.Key, i access.Invitation, peers []string, roots int) *passedOn {
	t.Helper()
	g, p := granting{t}, &passedOn{}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	for range roots {
		grantee := identity.New()
		root := g.issue(own, g.block(grantee.ID(), i.Site, "read den, set gate", time.Hour))
		for n := range 8 {
			key := identity.New()
			c := harness.DialAs(t, key, i)
			if n == 0 { // one of them over libp2p
				c = newCaller(t, key, i.Site, peers).Client
			}
			passed := g.pass(root, grantee, g.block(key.ID(), i.Site, "read den, set gate", time.Hour))
			harness.WaitFor(t, time.Minute, "the grant is shown", func() bool {
				_, err := c.CallMethod(ctx, string(ownerapi.PresentMethod), acts.Signed{Grant: passed.Bytes()})
				return err == nil
			})
			for n := range 9 { // none of these goes through
				c.Ask(ctx, "switch_output", []byte(fmt.Sprintf(`{"output":"gate/relay","on":true,"for_seconds":%d}`, n+1)))
			}
			for range 16 {
				all.Go(func() {
					for ctx.Err() == nil {
						opened := false
						c.Watch(ctx, agents.Principal{}, agents.WatchRequest{Points: []string{"den/temperature"}}, func(agents.Update) error {
							if !opened {
								opened = true
								p.open.Add(1)
							}
							return nil
						})
						if opened {
							p.open.Add(-1)
						} else {
							p.refused.Add(1)
						}
						select {
						case <-ctx.Done():
						case <-time.After(time.Second):
						}
					}
				})
			}
		}
	}
	return p
}

// startAttack starts the test program again as an attack, at the lowest priority, because
// real attackers use their own processors. TestMain chooses the attack by the environment
// variable. The process ends with the test.
func startAttack(t *testing.T, variable, value string) *harness.LogBuffer {
	t.Helper()
	attack := exec.Command("nice", "-n", "19", os.Args[0])
	attack.Env = append(os.Environ(), variable+"="+value)
	log := &harness.LogBuffer{}
	attack.Stdout, attack.Stderr = log, log
	in, err := attack.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := attack.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // which ends it
		if err := attack.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", variable, err, log)
		}
		t.Log(strings.TrimSpace(log.String()))
	})
	return log
}

// flooding is the attack, until its input ends.
func flooding(text string) {
	var to target
	if err := json.Unmarshal([]byte(text), &to); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var made atomic.Int64
	var all sync.WaitGroup
	most := int64(len(to.Tokens) * floodConns)
	for n := range int(most) {
		all.Go(func() {
			for ctx.Err() == nil {
				one, done := context.WithTimeout(ctx, 10*time.Second)
				annoyHTTP(one, to, n)
				done()
				made.Add(1)
			}
		})
	}
	go func() {
		for made.Load() < most {
			time.Sleep(10 * time.Millisecond)
		}
		fmt.Println("all have come")
	}()
	os.Stdin.Read(make([]byte, 1))
	cancel()
	all.Wait()
	fmt.Println("connections that they made:", made.Load())
	os.Exit(0)
}

// annoyHTTP makes a connection, says half of something, and holds on until it is answered
// or sent away.
func annoyHTTP(ctx context.Context, to target, n int) {
	at, secured := to.HTTP, n%2 == 1
	if secured {
		at = to.HTTPS
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	head := "POST /mcp HTTP/1.1\r\nHost: " + at + "\r\nContent-Type: application/json\r\n"
	token := "Authorization: Bearer " + to.Tokens[n%len(to.Tokens)] + "\r\n"
	urgent := "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: emergency_stop\r\nContent-Length: 300\r\n\r\n{"
	say := []string{"", head, head + token, head + token + urgent, head + token + urgent, head + token + urgent}[n/2%6]
	if secured && n/2%6 > 0 {
		c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		if c.HandshakeContext(ctx) != nil {
			return
		}
		conn = c
	}
	io.WriteString(conn, say)
	conn.Read(make([]byte, 1)) // whatever is answered: again
}

// TestStopWithoutSubscription: if an agent itself has opened all the subscriptions that it can have
// at a site, connect still lists the site, reads it, and stops it.
func TestStopWithoutSubscription(t *testing.T) {
	h := harness.StartConnectedSites(t, "attic", "stranger")
	dial := func() *client.Client {
		t.Setenv("XDG_CONFIG_HOME", h.Folder)
		c, err := peer.Dial(peer.Target{Site: "attic", As: peer.Assistant, Version: "e2e"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c.Client
	}
	open, full := make(chan bool, 100), make(chan bool)
	go func() {
		for range 100 {
			if !<-open {
				close(full)
				return
			}
		}
	}()
	for range 40 {
		c := dial()
		go func() {
			told := false
			err := c.Watch(t.Context(), agents.Principal{}, agents.WatchRequest{OfferOnly: true}, func(agents.Update) error {
				if !told {
					told = true
					open <- true
				}
				return nil
			})
			if err != nil && !told {
				open <- false
			}
		}()
	}
	select {
	case <-full:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is full")
	}
	m := h.Connect(t, "2025-11-25")
	if points := m.ArgumentEnum(t, "read_points", "points"); !strings.Contains(points, "attic/attic/temperature") {
		t.Errorf("it is offered %s", points)
	}
	for tool, want := range map[string]string{"read_points": `"quality":"good"`, "emergency_stop": `"emergency_stop":true`} {
		if got := m.Call(t, tool, map[string]any{}); !strings.Contains(got, want) {
			t.Errorf("%s: %s", tool, got)
		}
	}
}

// TestPresentedWritesNothing: a grantee that passes a reading on again and again, for a
// second at a time, has nothing written to the card.
func TestPresentedWritesNothing(t *testing.T) {
	r, i := harness.StartUnclaimed(t, harness.TempDir(t), "  den: { driver: sim, model: climate }")
	anna := harness.NewPerson(t)
	anna.MustCLI(t, "claim", i.String())
	g, mallory := granting{t}, identity.New()
	root := g.issue(anna.Key(t), g.block(mallory.ID(), i.Site, "read den", time.Hour))
	kept := func() (all string) {
		for _, name := range []string{"access", "counts"} {
			info, err := os.Stat(filepath.Join(r.Folder, name))
			if err != nil {
				t.Fatal(err)
			}
			all += fmt.Sprintln(name, info.ModTime(), info.Size())
		}
		return all
	}
	before, shown := kept(), 0
	for range harness.Workload(10, 100) {
		key := identity.New()
		passed := g.pass(root, mallory, g.block(key.ID(), i.Site, "read den", 2*time.Second))
		c := harness.DialAs(t, key, i)
		if _, err := c.CallMethod(t.Context(), string(ownerapi.PresentMethod), acts.Signed{Grant: passed.Bytes()}); err != nil {
			continue // there are as many as there can be, until some end
		}
		if _, err := c.Ask(t.Context(), "read_points", []byte(`{"points":["den/temperature"]}`)); err == nil {
			shown++
		}
	}
	if shown == 0 {
		t.Error("none of these counts, so that this shows nothing")
	}
	if after := kept(); after != before {
		t.Errorf("it was written to the card:\n%s%s", before, after)
	}
}
