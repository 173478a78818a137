// Package adaptertest has a site for the tests of protocol adapters: a simulated greenhouse with
// a guard, a permission store and a host of tasks, behind the HTTP server of the program.
package adaptertest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/task/tasktest"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/device/sim"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/transport/adapter"
	"agentsite/transport/web"
)

// SiteToken is the token of a site's own folder, whose holder may do everything but what only
// owners may.
const SiteToken = "secret"

// Site is a site that runs until its test ends. Its points are those of the simulated
// greenhouse; its agent is tasktest.Helper, which SiteToken and the permission "ask helper" may ask.
type Site struct {
	adapter.Site
	URL     string // set by Serve
	Guard   *guard.Guard
	Hub     *node.Hub
	Journal *Journal

	store *access.Store
	owner identity.Key
	ends  []func()
}

// New starts a site. bend changes its outputs' policies, and confirm are the outputs whose moves
// an owner confirms.
func New(t testing.TB, bend func(*guard.Policy), confirm ...string) *Site {
	t.Helper()
	s := &Site{Journal: &Journal{refused: make(map[string]int), keys: make(map[string]*keyed)}, owner: identity.New()}
	c := sim.Driver().Config().(*sim.Config)
	d, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	var policies []guard.Policy
	for _, p := range d.Describe().Points {
		if p.Kind.Output() {
			policy := guard.NewPolicy("greenhouse", p)
			policy.Rest = 0 // after the start
			if bend != nil {
				bend(&policy)
			}
			policies = append(policies, policy)
		}
	}
	dir := t.TempDir()
	latch := guard.Latch{File: filepath.Join(dir, "armed"), Flag: filepath.Join(dir, "stopped")}
	if err := latch.Reset(); err != nil {
		t.Fatal(err)
	}
	if s.Guard, err = guard.New([]guard.Actuated{{Actuator: d.(device.Actuator), Policies: policies}}, latch); err != nil {
		t.Fatal(err)
	}
	s.Key, s.Name, s.Version = identity.New(), "zorilla", "1.2.3"
	s.Now = func() (time.Time, bool) { return time.Now(), true }
	s.store, err = access.NewStore(access.Options{
		Site: s.Key.ID(), URL: "here", SystemClock: func() (time.Time, bool) { return time.Now(), true },
		SaveAccess: func([]byte) error { return nil }, SaveCounts: func([]byte) error { return nil },
	})
	if err == nil {
		err = s.store.Claim(access.Owner{ID: s.owner.ID()})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Hub = node.NewHub(nil, past{}, agents.PointURI)
	s.Node = node.New(node.Parts{Hub: s.Hub, Token: SiteToken, Journal: s.Journal, Access: s.store})
	if err := s.Node.Replace(node.Site{
		Name: s.Name, Version: s.Version, Simulated: true, Started: time.Now(), History: past{}, Outputs: s.Guard,
		Devices: []node.Device{{Name: "greenhouse", Device: d, Description: d.Describe(), Confirm: confirm, Busy: device.NewMutex()}},
	}); err != nil {
		t.Fatal(err)
	}
	host := tasktest.New(t)
	host.May = func(p agents.Principal) bool { return s.Node.MayAsk(p, tasktest.Helper.Name) == nil }
	host.Owner = func(p agents.Principal) bool { return s.Node.Owner(p) == nil }
	s.Tasks = host
	s.Tools = tools.New(s.Node, s.Node)
	s.Tools.Tasks = host
	s.run(t, d)
	return s
}

// run runs what a site runs, until the test ends.
func (s *Site) run(t testing.TB, d device.Device) {
	ctx, cancel := context.WithCancel(context.Background()) // t.Context ends before cleanups run
	var running sync.WaitGroup
	s.Ending, s.Go = ctx, running.Go
	running.Go(func() {
		s.Hub.Sample(ctx, []node.Source{{Name: "greenhouse", Device: d, Every: 20 * time.Millisecond}}, outputs{s.Guard})
	})
	running.Go(func() {
		if err := s.Guard.Run(ctx); err != nil {
			t.Errorf("the guard: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		for _, end := range s.ends {
			end()
		}
	})
	if err := s.Guard.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		_, read := s.Hub.Latest("greenhouse/temperature")
		_, moved := s.Hub.Latest("greenhouse/vent")
		if read && moved {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the site has no readings")
		}
	}
}

// outputs tells what outputs do, as the guard's process does.
type outputs struct{ *guard.Guard }

func (o outputs) Watch(ctx context.Context, emit func(device.Reading)) error {
	for {
		changed := o.Changed()
		for _, s := range o.Status() {
			emit(device.Reading{Point: s.Output, Value: s.Value, Quality: device.Good, At: time.Now()})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Serve serves routes over HTTP until the test ends.
func (s *Site) Serve(t testing.TB, routes []web.Route) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.URL = "http://" + ln.Addr().String()
	h := s.Handler(ln.Addr().String(), routes)
	served := make(chan error, 1)
	go func() { served <- web.Serve(s.Ending, ln, h) }()
	s.ends = append(s.ends, func() {
		if err := <-served; err != nil {
			t.Errorf("the server: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
}

// Handler serves routes under a host.
func (s *Site) Handler(host string, routes []web.Route) http.Handler {
	return web.Handler(web.Options{Hosts: []string{host}, Routes: routes, Callers: s.Node})
}

// AskAsOwner sends a request with the certificate of an owner's key to the handler of some routes, and
// returns the status and the text.
func (s *Site) AskAsOwner(t testing.TB, routes []web.Route, verb, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), verb, "https://site"+path, strings.NewReader(body))
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{PublicKey: s.owner.Private().Public()}}}
	w := httptest.NewRecorder()
	s.Handler(r.Host, routes).ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// Token returns a token with a permission in words, such as "read greenhouse", and what revokes it.
func (s *Site) Token(t testing.TB, name, words string) (token string, revoke func()) {
	t.Helper()
	g := s.issue(t, s.Key.ID(), words)
	token, err := s.store.AddToken(name, g.Bytes(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return token, func() {
		if err := s.store.Revoke(access.Revocation{Block: g.ID()}); err != nil {
			t.Error(err)
		}
		s.Hub.Announce(agents.Change{Permissions: true})
	}
}

// Grant grants a key a permission in words.
func (s *Site) Grant(t testing.TB, to identity.ID, words string) {
	t.Helper()
	if _, err := s.store.AddGrant(s.issue(t, to, words).Bytes()); err != nil {
		t.Fatal(err)
	}
}

// issue has the owner sign a permission in words.
func (s *Site) issue(t testing.TB, to identity.ID, words string) *access.Grant {
	t.Helper()
	may, err := access.ParsePermissions(words)
	if err != nil {
		t.Fatal(err)
	}
	g, err := access.Issue(s.owner, access.Block{Audience: to, Permissions: may})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Ask sends a request, and returns the response, whose body is closed, with its text. headers are
// pairs of names and values; a token of "" sends none.
func (s *Site) Ask(t testing.TB, verb, path, token, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), verb, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

// Value returns the value of an output.
func (s *Site) Value(output string) device.Value {
	all := s.Guard.Status()
	return all[slices.IndexFunc(all, func(o guard.Status) bool { return o.Output == output })].Value
}

// past is a history with a mean of 20 in each step, and no changes.
type past struct{}

func (past) Record(device.Reading) {}

func (past) Summaries(_ string, from, to time.Time, steps int) (all []device.Summary, step time.Duration, err error) {
	step = to.Sub(from) / time.Duration(steps)
	for i := range steps {
		all = append(all, device.Summary{At: from.Add(time.Duration(i) * step), Min: 19, Mean: 20, Max: 21, Last: 20, Good: 2, Count: 2})
	}
	return all, step, nil
}

func (past) Changes(string, time.Time, time.Time, func(device.Change) bool) {}

func (past) ValueAt(string, time.Time) (device.Change, bool) { return device.Change{}, false }

// Journal is a journal in memory.
type Journal struct {
	mu      sync.Mutex
	lines   []string
	refused map[string]int
	keys    map[string]*keyed
}

type keyed struct {
	asked   node.Asked
	outcome *node.Outcome
}

// Lines returns what was done: the tool, the arguments and the fault.
func (j *Journal) Lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// Refused returns how often a tool was refused with a kind of fault.
func (j *Journal) Refused(tool string, kind device.FaultKind) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.refused[tool+" "+string(kind)]
}

func (j *Journal) write(a node.Asked, o node.Outcome) {
	j.lines = append(j.lines, strings.TrimSpace(strings.Join([]string{a.Tool, string(a.Args), strings.Join(a.Via, ","), o.Fault}, " ")))
}

// Hold makes the journal wait, as for a slow disk, until release is called.
func (j *Journal) Hold() (release func()) {
	j.mu.Lock()
	return j.mu.Unlock
}

// Replay implements node.Journal.
func (j *Journal) Replay(a node.Asked) (*node.Outcome, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.replay(a)
}

func (j *Journal) replay(a node.Asked) (*node.Outcome, error) {
	first := j.keys[a.Who+"\x00"+a.Key]
	switch {
	case a.Key == "" || first == nil:
		return nil, nil
	case first.asked.Tool != a.Tool || string(first.asked.Args) != string(a.Args):
		return nil, device.Faultf(device.Invalid, "this key was used for another call")
	case first.outcome == nil:
		return nil, device.Faultf(device.UnknownOutcome, "the first call has not ended")
	}
	return first.outcome, nil
}

// Begin implements node.Journal.
func (j *Journal) Begin(a node.Asked) (func(node.Outcome), *node.Outcome, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if earlier, err := j.replay(a); earlier != nil || err != nil {
		return nil, earlier, err
	}
	k := &keyed{asked: a}
	j.keys[a.Who+"\x00"+a.Key] = k
	return func(o node.Outcome) {
		j.mu.Lock()
		defer j.mu.Unlock()
		k.outcome = &o
		j.write(a, o)
	}, nil, nil
}

// Add implements node.Journal.
func (j *Journal) Add(a node.Asked, o node.Outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(a, o)
}

// Deny implements node.Journal.
func (j *Journal) Deny(_, tool string, kind device.FaultKind) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refused[tool+" "+string(kind)]++
}

// Recent implements node.Journal.
func (j *Journal) Recent(string) []node.Recorded { return nil }
