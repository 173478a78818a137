package site

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentsite/agents/things"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/node/history"
	"agentsite/transport/rpc"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

func TestHosts(t *testing.T) {
	for _, tt := range []struct {
		listens string
		own     []string
		want    string
	}{
		{"127.0.0.1:8473", nil, "127.0.0.1:8473 [::1]:8473 127.0.0.1:8473 localhost:8473"},
		{"[::1]:8473", nil, "127.0.0.1:8473 [::1]:8473 [::1]:8473 localhost:8473"},
		{"127.0.0.2:9", []string{"greenhouse.local", "fd00::1"}, "127.0.0.1:9 [::1]:9 127.0.0.2:9 localhost:9 greenhouse.local:9 [fd00::1]:9"},
		{"127.0.0.1:80", []string{"g"}, "127.0.0.1:80 127.0.0.1 [::1]:80 [::1] 127.0.0.1:80 127.0.0.1 localhost:80 localhost g:80 g"},
	} {
		addr, err := net.ResolveTCPAddr("tcp", tt.listens)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(hosts(addr, append([]string{"localhost"}, tt.own...)), " "); got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.listens, got, tt.want)
		}
	}
}

// stoppedGuard is one without outputs, with the emergency stop on.
func stoppedGuard(t *testing.T) *guard.Guard {
	t.Helper()
	g, err := guard.New(nil, guard.Latch{File: filepath.Join(t.TempDir(), "armed")})
	if err != nil || !g.Stopped() {
		t.Fatalf("stopped: %v, %v", g.Stopped(), err)
	}
	return g
}

// direct is a guard without a process between.
type direct struct{ *guard.Guard }

func (d direct) Reset(context.Context) error {
	_, _, stops := d.State()
	return d.Guard.Reset(stops)
}
func (d direct) TakeOver(_ context.Context, holder, output string) error {
	return d.Guard.TakeOver(holder, output)
}

// TestReset: the owner's socket alone ends the emergency stop.
func TestReset(t *testing.T) {
	for _, tt := range []struct {
		name string
		e    rpc.Evidence
		ok   bool
	}{
		{"nobody", rpc.Evidence{}, false},
		{"the token", rpc.Evidence{Bearer: "secret", Local: rpc.LocalLoopback}, false},
		{"an agent", rpc.Evidence{Local: rpc.LocalAgent}, false},
		{"an agent as root", rpc.Evidence{Local: rpc.LocalAgent, Bearer: "secret"}, false},
		{"a peer", rpc.Evidence{Peer: "12D3"}, false},
		{"the owner", rpc.Evidence{Local: rpc.LocalOwner}, true},
	} {
		g := stoppedGuard(t)
		methods := map[string]rpc.Method{}
		addOwner(methods, node.New(node.NewHub(nil, history.New(nil), things.URI), "secret", nil), direct{g}, nil)
		_, err := methods[ResetMethod](t.Context(), &rpc.Call{Evidence: tt.e})
		if g.Stopped() == tt.ok {
			t.Errorf("%s: stopped afterwards: %v", tt.name, g.Stopped())
		}
		var refused *rpc.Error
		if !tt.ok && (!errors.As(err, &refused) || refused.Code != rpc.CodeMethodNotFound || refused.Message != "this is an owner's: run agentsite reset on the site's own machine, or with --site where you own it") {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.ok && err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestReloadMethod: it is the owner's alone, and says by its code whether the file was
// at fault.
func TestReloadMethod(t *testing.T) {
	methods := map[string]rpc.Method{}
	var says error
	asked := 0
	addOwner(methods, node.New(node.NewHub(nil, history.New(nil), things.URI), "secret", nil), nil, func(context.Context) error {
		asked++
		return says
	})
	for _, e := range []rpc.Evidence{{}, {Bearer: "secret"}, {Local: rpc.LocalAgent}} {
		var refused *rpc.Error
		if _, err := methods[ReloadMethod](t.Context(), &rpc.Call{Evidence: e}); !errors.As(err, &refused) || refused.Code != rpc.CodeMethodNotFound || asked != 0 {
			t.Errorf("%+v: %v", e, err)
		}
	}
	_, mistake := config.Parse("test", []byte("site: {}"), nil)
	for _, tt := range []struct {
		err  error
		code int
	}{
		{nil, 0}, {mistake, rpc.CodeInvalidParams}, {device.Faultf(device.Invalid, "restart"), rpc.CodeInvalidParams},
		{device.Faultf(device.Offline, "it holds, but"), 502}, {errors.New("a defect"), rpc.CodeInternal},
	} {
		says = tt.err
		_, err := methods[ReloadMethod](t.Context(), &rpc.Call{Evidence: rpc.Evidence{Local: rpc.LocalOwner}})
		var refused *rpc.Error
		if (err == nil) != (tt.err == nil) || err != nil && (!errors.As(err, &refused) || refused.Code != tt.code || refused.Message != tt.err.Error()) {
			t.Errorf("%v: %v", tt.err, err)
		}
	}
}

// lamp is an output that is nowhere.
type lamp struct{}

func (lamp) Apply(context.Context, string, device.Value) error { return nil }

// TestTakeOver: the owner's socket alone makes its holder the holder of an output.
func TestTakeOver(t *testing.T) {
	dir := t.TempDir()
	latch := guard.Latch{File: filepath.Join(dir, "armed")}
	if err := latch.Arm(); err != nil {
		t.Fatal(err)
	}
	policy := guard.NewPolicy("lamp", device.Point{Name: "relay", Kind: device.KindSwitch, Safe: device.Bool(false)})
	policy.Rest = 0
	g, err := guard.New([]guard.Actuated{{Actuator: lamp{}, Policies: []guard.Policy{policy}}}, latch)
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string]rpc.Method{}
	addOwner(methods, node.New(node.NewHub(nil, history.New(nil), things.URI), "secret", nil), direct{g}, nil)
	params := rpc.RawJSON([]byte(`{"name":"lamp/relay"}`))
	for _, tt := range []struct {
		e      rpc.Evidence
		params rpc.Raw
		code   int
	}{
		{rpc.Evidence{}, params, rpc.CodeMethodNotFound},
		{rpc.Evidence{Bearer: "secret", Local: rpc.LocalLoopback}, params, rpc.CodeMethodNotFound},
		{rpc.Evidence{Local: rpc.LocalAgent}, params, rpc.CodeMethodNotFound},
		{rpc.Evidence{Local: rpc.LocalOwner}, params, 0},
		{rpc.Evidence{Local: rpc.LocalOwner}, rpc.Raw{}, rpc.CodeInvalidParams},
		{rpc.Evidence{Local: rpc.LocalOwner}, rpc.RawJSON([]byte(`{"name":"lamp/nothing"}`)), rpc.CodeInvalidParams},
		{rpc.Evidence{Local: rpc.LocalOwner}, rpc.RawJSON([]byte(`{"name":1}`)), rpc.CodeInvalidParams},
	} {
		_, err := methods[TakeOverMethod](t.Context(), &rpc.Call{Evidence: tt.e, Params: tt.params})
		var refused *rpc.Error
		if (err == nil) != (tt.code == 0) || err != nil && (!errors.As(err, &refused) || refused.Code != tt.code) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestResetThatFails(t *testing.T) {
	g, err := guard.New(nil, guard.Latch{File: filepath.Join(t.TempDir(), "no", "folder", "armed")})
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string]rpc.Method{}
	addOwner(methods, node.New(node.NewHub(nil, history.New(nil), things.URI), "secret", nil), direct{g}, nil)
	_, err = methods[ResetMethod](t.Context(), &rpc.Call{Evidence: rpc.Evidence{Local: rpc.LocalOwner}})
	if err == nil || !strings.HasPrefix(err.Error(), "the emergency stop stays: ") || !g.Stopped() {
		t.Error(err)
	}
}

func TestMetrics(t *testing.T) {
	w := httptest.NewRecorder()
	hub := node.NewHub(nil, history.New(nil), things.URI)
	metrics(node.New(hub, "", nil), hub, stoppedGuard(t), `1.0 "x"`)(w, httptest.NewRequest("GET", "/metrics", nil), rpc.Evidence{Local: rpc.LocalOwner})
	if got := w.Header().Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Error(got)
	}
	help := regexp.MustCompile(`^# HELP ([a-z_]+) [A-Z0-9].*\.$`)
	kind := regexp.MustCompile(`^# TYPE ([a-z_]+) (gauge|counter)$`)
	sample := regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="(?:[^"\\\n]|\\["\\n])*"\})? ([0-9.e+]+)$`)
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	if len(lines) != 3*6 || !strings.HasSuffix(w.Body.String(), "\n") {
		t.Fatalf("%d lines:\n%s", len(lines), w.Body)
	}
	values := map[string]string{}
	for trio := range slices.Chunk(lines, 3) {
		h, k, s := help.FindStringSubmatch(trio[0]), kind.FindStringSubmatch(trio[1]), sample.FindStringSubmatch(trio[2])
		if h == nil || k == nil || s == nil || h[1] != k[1] || k[1] != s[1] || values[s[1]] != "" {
			t.Errorf("not the text format:\n%s", strings.Join(trio, "\n"))
			continue
		}
		if (k[2] == "counter") != strings.HasSuffix(k[1], "_total") {
			t.Errorf("%s is a %s", k[1], k[2])
		}
		values[s[1]] = s[2] + s[3]
	}
	for name, want := range map[string]string{
		"agentsite_info": `{version="1.0 \"x\""}1`, "agentsite_readings_total": "0", "agentsite_watchers": "0", "agentsite_emergency_stop": "1", "agentsite_outputs_away_from_safe": "0",
	} {
		if values[name] != want {
			t.Errorf("%s is %s, want %s", name, values[name], want)
		}
	}
}
