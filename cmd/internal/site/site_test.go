package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/things"
	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/guard"
	"agentsite/device/guard/proc"
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/node/history"
	"agentsite/transport/rpc"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if latch := os.Getenv("BENCH_GUARD"); latch != "" {
		if err := benchGuard(latch); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if mark := os.Getenv("SAFE_MARK"); mark != "" { // this is agentsite safe
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
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

// TestTakeOver: the owner's socket alone makes its holder the holder of an output.
func TestTakeOver(t *testing.T) {
	dir := t.TempDir()
	latch := guard.Latch{File: filepath.Join(dir, "armed")}
	if err := latch.Arm(); err != nil {
		t.Fatal(err)
	}
	policy := guard.NewPolicy("lamp", device.Point{Name: "relay", Kind: device.KindSwitch, Safe: device.Bool(false)})
	policy.Rest = 0
	g, err := guard.New([]guard.Actuated{{Actuator: benchActuator{}, Policies: []guard.Policy{policy}}}, latch)
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

// bench is a driver whose devices a test can count and bend.
type bench struct {
	mu             sync.Mutex
	opened, closed []string
	desc           map[string]device.Description // by what
}

type benchConfig struct {
	What string `json:"what"`
	b    *bench
}

// benchSwitch is a driver that knows its output beforehand.
type benchSwitch struct{ benchConfig }

func (c *benchSwitch) Describe() device.Description { return c.b.desc["switch"] }

func (b *bench) drivers() []driver.Driver {
	return []driver.Driver{
		{Name: "bench", Doc: "for tests", Config: func() driver.Config { return &benchConfig{b: b} }},
		{Name: "switch", Doc: "for tests", Config: func() driver.Config { return &benchSwitch{benchConfig{What: "switch", b: b}} }},
	}
}

func (c *benchConfig) Open(context.Context) (device.Device, error) {
	if c.What == "twice" {
		return nil, device.Faultf(device.Invalid, "there are two of them; write which")
	}
	if c.What == "damaged" {
		return nil, errors.New("its memory is worn out")
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.b.opened = append(c.b.opened, c.What)
	d := benchDevice{c.b, c.What}
	if c.What == "switch" {
		return benchActuator{d}, nil
	}
	return d, nil
}

type benchDevice struct {
	b    *bench
	what string
}

func (d benchDevice) Describe() device.Description { return d.b.desc[d.what] }
func (d benchDevice) Close() error {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	d.b.closed = append(d.b.closed, d.what)
	return errors.New("it is stuck")
}

// allClosed: each that was opened, in any order.
func (b *bench) allClosed() bool {
	return slices.Equal(slices.Sorted(slices.Values(b.closed)), slices.Sorted(slices.Values(b.opened)))
}

type benchActuator struct{ benchDevice }

func (benchActuator) Apply(context.Context, string, device.Value) error { return nil }

func TestOpenDevices(t *testing.T) {
	out := device.Description{Points: []device.Point{{Name: "p", Kind: device.KindSwitch, Safe: device.Bool(false)}}}
	for _, tt := range []struct {
		name, devices string
		opened        string
		says          string // the error begins so; then all are closed
		missing       string // so begins why b is missing
	}{
		{"good", "a: { driver: bench, what: sensor }\n  b: { driver: switch, lease: 5s, max_on: 1m, min_off: 2s }", "sensor", "", ""},
		{"one is damaged", "a: { driver: bench, what: sensor }\n  b: { driver: bench, what: damaged }\n  c: { driver: bench, what: switch }", "sensor switch", "", "its memory is worn out"},
		{"one is not as its owner wrote", "a: { driver: bench, what: sensor }\n  b: { driver: bench, what: twice }", "sensor", "", "there are two of them"},
		{"one describes nonsense", "a: { driver: bench, what: sensor }\n  b: { driver: bench, what: nonsense }", "nonsense sensor", "", `"No Name" is not a name`},
		{"outputs that come late", "a: { driver: bench, what: sensor }\n  b: { driver: bench, what: switch }", "sensor switch", "", "the driver bench knows of its outputs only once it is open"},
		{"the owner's keys do not fit", "a: { driver: bench, what: sensor }\n  b: { driver: bench, what: switch, range: 0..5 }", "sensor switch", "", "range"},
		{"keys for outputs that are not there", "a: { driver: bench, what: sensor }\n  b: { driver: bench, what: sensor, safe: off }", "sensor sensor", "", "safe"},
		{"a min_on beyond the default max_on", "a: { driver: switch, min_on: 1h }", "", "test:3:24: a/p: min_on 1h is longer than max_on 10m", ""},
		{"a slew of a switch", "a: { driver: switch, slew: 1/s }", "", "test:3:24: a/p: slew is for levels", ""},
		{"a lease beyond the default max_on", "a: { driver: switch, lease: 1h }", "", "test:3:24: a/p: lease 1h is longer than max_on 10m", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &bench{desc: map[string]device.Description{
				"sensor": {Points: []device.Point{{Name: "t", Kind: device.KindMeasurement}, {Name: "s", Kind: device.KindState}}},
				"switch": out, "nonsense": {Points: []device.Point{{Name: "No Name", Kind: device.KindState}}},
			}}
			cfg, err := config.Parse("test", []byte("site: { name: x }\ndevices:\n  "+tt.devices+"\n"), b.drivers())
			if err != nil {
				t.Fatal(err)
			}
			all, err := openDevices(t.Context(), cfg, board.New(), newOpener(proc.NewKeeper(nil, guard.Latch{}, nil)))
			if got := strings.Join(slices.Sorted(slices.Values(b.opened)), " "); got != tt.opened {
				t.Errorf("opened %q, want %q", got, tt.opened)
			}
			if tt.says != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.says) {
					t.Errorf("%v, want %s", err, tt.says)
				}
				if !b.allClosed() {
					t.Errorf("closed %q of %q", b.closed, b.opened)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.missing != "" {
				if len(all) < 2 || all[0].missing != nil || all[1].missing == nil || !strings.Contains(all[1].missing.Error(), tt.missing) || len(all[1].policies) > 0 {
					t.Errorf("%+v", all)
				}
				if len(b.closed) != len(b.opened)-1 { // all but a
					t.Errorf("closed %q of %q", b.closed, b.opened)
				}
				return
			}
			if len(all) != 2 || b.closed != nil || all[0].Name != "a" || all[0].missing != nil || !slices.Equal(measured(all), []string{"a/t"}) {
				t.Errorf("%+v", all)
			}
			planned, err := newPlan(cfg)
			if err != nil || len(planned.policies) != 1 || strings.Contains(string(planned.text), "sensor") {
				t.Fatalf("%+v, %v", planned, err)
			}
			if p := planned.policies[0]; p.Output != "b/p" || p.Lease.Seconds() != 5 || p.MaxOn.Seconds() != 60 || p.MinOff.Seconds() != 2 {
				t.Errorf("%+v", p)
			}
			if err := closeDevices(all); err == nil || err.Error() != "a: it is stuck" || !b.allClosed() {
				t.Errorf("%v, closed %q", err, b.closed)
			}
		})
	}
}

// stuck is a device that does not close until it is let go.
type stuck struct{ let chan struct{} }

func (s stuck) Describe() device.Description { return device.Description{} }
func (s stuck) Close() error                 { <-s.let; return nil }

// A device that hangs holds up neither the end nor the others' closing.
func TestCloseBesideAStuckDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		b := &bench{}
		var all []*wired
		for i, dev := range []device.Device{stuck{let}, benchDevice{b, "sensor"}, stuck{let}} {
			all = append(all, &wired{Device: config.Device{Name: string(rune('a' + i))}, device: dev})
		}
		begun := time.Now()
		err := closeDevices(all)
		if took := time.Since(begun); took > closeTimeout+time.Second {
			t.Errorf("it took %v", took)
		}
		if err == nil || err.Error() != "a: the driver does not come back\nb: it is stuck\nc: the driver does not come back" {
			t.Error(err)
		}
		if !slices.Equal(b.closed, []string{"sensor"}) {
			t.Errorf("closed %q", b.closed)
		}
		close(let)
	})
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	cfg, from, err := Check("")
	if err != nil || from != "" || cfg.Name != "demo" {
		t.Errorf("no file: %+v %q %v", cfg, from, err)
	}
	for _, tt := range []struct{ name, text, says string }{
		{"good", "site: { name: x }\ndevices:\n  g: { driver: sim, points: { heater: { lease: 1m } } }\n", ""},
		{"a long lease", "site: { name: x }\ndevices:\n  g: { driver: sim, points: { heater: { lease: 1h } } }\n", "agentsite.yaml:3:41: g/heater: lease 1h is longer than max_on 10m"},
		{"two mistakes", "site: { name: x }\ndevices:\n  g: { driver: sim, model: dimmer, lease: 1h }\n  h: { driver: sim, model: relay, lease: 2h }\n", "h/relay: lease 2h is longer than max_on 10m"},
		{"a limit without an output", "site: { name: x }\ndevices:\n  h: { driver: host, max_on: 5m }\n", "agentsite.yaml:3:22: h: max_on is for outputs and this device has none; remove it"},
		{"a measurement that is kept safe", "site: { name: x }\ndevices:\n  h: { driver: host, points: { uptime: { safe: off } } }\n", "agentsite.yaml:3:42: h/uptime: safe is not for a measurement"},
		{"an unknown driver", "site: { name: x }\ndevices:\n  g: { driver: sin }\n", `agentsite.yaml:3:16: g: there is no driver "sin"`},
		{"a wrong model", "site: { name: x }\ndevices:\n  g: { driver: sim, model: volcano }\n", `model: there is no "volcano"`},
		{"no YAML", "site: [", "agentsite.yaml:1:"},
	} {
		if err := os.WriteFile(config.DefaultFile, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"", config.DefaultFile} {
			_, from, err := Check(path)
			if from != config.DefaultFile || (err == nil) != (tt.says == "") || (err != nil && !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("%s: %q %v, want %s", tt.name, from, err, tt.says)
			}
			if tt.name == "two mistakes" && err != nil && !strings.Contains(err.Error(), "g/level") {
				t.Errorf("only one is told: %v", err)
			}
		}
	}
	if _, _, err := Check("nowhere.yaml"); err == nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a named file that is not there: %v", err)
	}
}
