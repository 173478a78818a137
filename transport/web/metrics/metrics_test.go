package metrics

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/node/identity"
	"agentsite/transport/adapter/adaptertest"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// newRoute returns the route of a test site.
func newRoute(s *adaptertest.Site, returns *Returns) web.Route {
	return Route(Options{
		Node: s.Node, Hub: s.Hub, Outputs: s.Guard, Returns: returns, Version: `1.0 "x"`, Started: time.Now(), Now: s.Now,
		Report: func() Report {
			return Report{Journal: 1 << 20, History: 2e7, Free: 3e9, Entries: 7, Sessions: 2, Waiting: 4}
		},
	})
}

// scrape parses an answer: the samples by name and labels, and the kinds and labels of the metrics.
func scrape(t *testing.T, body string) (samples map[string]float64, metrics map[string]string) {
	t.Helper()
	samples, metrics = make(map[string]float64), make(map[string]string)
	help := regexp.MustCompile(`^# HELP ([a-z_]+) [A-Z0-9].*\.$`)
	kind := regexp.MustCompile(`^# TYPE ([a-z_]+) (gauge|counter)$`)
	sample := regexp.MustCompile(`^([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (-?[0-9.e+-]+)$`)
	label := regexp.MustCompile(`([a-z]+)="(?:[^"\\]|\\.)*"`)
	if !strings.HasSuffix(body, "\n") {
		t.Error("the last line has no end")
	}
	labels := make(map[string]map[string]bool)
	var helped, name string
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if m := help.FindStringSubmatch(line); m != nil && labels[m[1]] == nil {
			helped = m[1]
		} else if m := kind.FindStringSubmatch(line); m != nil && m[1] == helped {
			name = m[1]
			metrics[name], labels[name] = m[2], make(map[string]bool)
			if (m[2] == "counter") != strings.HasSuffix(name, "_total") {
				t.Errorf("%s is a %s", name, m[2])
			}
		} else if m := sample.FindStringSubmatch(line); m != nil && m[1] == name {
			n, err := strconv.ParseFloat(m[3], 64)
			key := strings.TrimSuffix(strings.TrimPrefix(line, name), " "+m[3])
			if _, again := samples[name+key]; again || err != nil {
				t.Errorf("%s: again, or %v", line, err)
			}
			samples[name+key] = n
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				labels[name][l[1]] = true
			}
		} else {
			t.Errorf("not the text format: %s", line)
		}
	}
	for name, all := range labels {
		metrics[name] += " " + strings.Join(slices.Sorted(maps.Keys(all)), " ")
	}
	return samples, metrics
}

// get asks the route as a principal.
func get(route web.Route, who agents.Principal) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	route.Serve(w, httptest.NewRequest("GET", "/metrics", nil), web.Caller{Sender: rpc.Sender{Who: who}})
	return w
}

// TestMetrics: an owner gets everything, in the format, and as the table of the documentation says.
func TestMetrics(t *testing.T) {
	var returns Returns
	s := adaptertest.New(t, nil)
	route := newRoute(s, &returns)
	move := func(output string) error {
		r := agents.MoveRequest{Output: output, Value: device.Number(30)}
		_, err := s.Node.Move(t.Context(), node.LocalOwner, r)
		return err
	}
	if err := move("greenhouse/vent"); err != nil {
		t.Fatal(err)
	}
	returns.Add("greenhouse/heater", "its max_on was spent")
	returns.Add("greenhouse/heater", "its lease was over")
	returns.Add("greenhouse/heater", "somebody pulled the plug")
	if _, err := s.Node.Bearer("wrong", true); err == nil {
		t.Error("a wrong token counts")
	}
	if err := move("greenhouse/nothing"); err == nil {
		t.Error("nothing was moved")
	}
	before := time.Now()
	var samples map[string]float64
	var metrics map[string]string
	for samples["agentsite_reading{point=\"greenhouse/vent\",unit=\"%\"}"] != 30 { // the hub hears of it soon
		if time.Since(before) > 20*time.Second {
			t.Fatal("the move is not told")
		}
		w := get(route, node.LocalOwner)
		if got := w.Header().Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
			t.Fatal(got)
		}
		samples, metrics = scrape(t, w.Body.String())
	}
	for name, want := range map[string]float64{
		`agentsite_sessions`: 2, `agentsite_notifications_waiting`: 4, `agentsite_approvals_waiting`: 0,
		`agentsite_info{version="1.0 \"x\""}`:                                       1,
		`agentsite_reading_quality{point="greenhouse/temperature",quality="good"}`:  1,
		`agentsite_reading_quality{point="greenhouse/temperature",quality="fault"}`: 0,
		`agentsite_reading{point="greenhouse/heater"}`:                              0,
		`agentsite_output_away_from_safe{point="greenhouse/vent"}`:                  1,
		`agentsite_output_away_from_safe{point="greenhouse/heater"}`:                0,
		`agentsite_output_lease_seconds{point="greenhouse/heater"}`:                 0,
		`agentsite_output_broken_leases_total{point="greenhouse/heater"}`:           2,
		`agentsite_output_broken_leases_total{point="greenhouse/vent"}`:             0,
		`agentsite_returns_total{cause="max_on"}`:                                   1,
		`agentsite_returns_total{cause="expiry"}`:                                   1,
		`agentsite_returns_total{cause="other"}`:                                    1,
		`agentsite_returns_total{cause="stop"}`:                                     0,
		`agentsite_calls_total{operation="move"}`:                                   2,
		`agentsite_refusals_total{kind="invalid"}`:                                  1,
		`agentsite_unauthenticated_total`:                                           1,
		`agentsite_emergency_stop`:                                                  0,
		`agentsite_clock_known`:                                                     1,
		`agentsite_outputs_away_from_safe`:                                          1,
		`agentsite_journal_bytes`:                                                   1 << 20,
		`agentsite_journal_entries_total`:                                           7,
		`agentsite_disk_free_bytes`:                                                 3e9,
	} {
		if got, ok := samples[name]; got != want || !ok {
			t.Errorf("%s is %v (there: %v), want %v", name, got, ok, want)
		}
	}
	if left := samples[`agentsite_output_lease_seconds{point="greenhouse/vent"}`]; left <= 0 || left > 60 {
		t.Errorf("the lease has %v s", left)
	}
	for _, name := range []string{`agentsite_reading_timestamp_seconds{point="greenhouse/temperature"}`, "agentsite_time_seconds"} {
		if at := samples[name]; at < unix(before)-60 || at > unix(time.Now())+1 {
			t.Errorf("%s is %v", name, at)
		}
	}
	doc, err := os.ReadFile("../../../docs/prometheus.md")
	if err != nil {
		t.Fatal(err)
	}
	told := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (gauge|counter) \\| ([a-z, ]*)\\|").FindAllStringSubmatch(string(doc), -1) {
		labels := strings.FieldsFunc(row[3], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels)
		told[row[1]] = row[2] + " " + strings.Join(labels, " ")
	}
	// The test site has no text of a state.
	told["agentsite_reading"] = strings.TrimSuffix(told["agentsite_reading"], " value")
	if !maps.Equal(told, metrics) {
		t.Errorf("docs/prometheus.md has\n%v\nand /metrics\n%v", told, metrics)
	}
}

// TestQualities: a reading that is not good has no value, and keeps the time of the last good one.
func TestQualities(t *testing.T) {
	var out text
	at := time.UnixMilli(1_700_000_000_500)
	measured, state := &device.Point{Kind: device.KindMeasurement, Unit: `a"\`}, &device.Point{Kind: device.KindState, Values: []string{"open", "shut"}}
	out.readings([]node.Sample{
		{Address: "a/good", Point: measured, Value: device.Number(-1.5), Quality: device.Good, Good: at},
		{Address: "a/stale", Point: measured, Value: device.Number(2), Quality: device.Stale, Good: at},
		{Address: "a/fault", Point: measured, Quality: device.Bad, Good: at},
		{Address: "a/new", Point: measured, Quality: device.Stale},
		{Address: "a/door", Point: state, Value: device.Text("shut"), Quality: device.Good, Good: at},
		{Address: "a/out", Point: &device.Point{Kind: device.KindSwitch}, Quality: device.Bad, Away: true, Left: 1500 * time.Millisecond},
	}, &Returns{})
	samples, _ := scrape(t, string(out.buf))
	for name, want := range map[string]float64{
		`agentsite_reading{point="a/good",unit="a\"\\"}`:             -1.5,
		`agentsite_reading{point="a/door",value="open"}`:             0,
		`agentsite_reading{point="a/door",value="shut"}`:             1,
		`agentsite_reading_quality{point="a/fault",quality="fault"}`: 1,
		`agentsite_reading_quality{point="a/stale",quality="stale"}`: 1,
		`agentsite_reading_timestamp_seconds{point="a/fault"}`:       1_700_000_000.5,
		`agentsite_output_away_from_safe{point="a/out"}`:             1,
		`agentsite_output_lease_seconds{point="a/out"}`:              1.5,
	} {
		if got, ok := samples[name]; got != want || !ok {
			t.Errorf("%s is %v, want %v\n%s", name, got, want, out.buf)
		}
	}
	for name := range samples {
		if strings.HasPrefix(name, "agentsite_reading{") && !strings.Contains(name, "a/good") && !strings.Contains(name, "a/door") ||
			strings.HasPrefix(name, "agentsite_reading_timestamp") && strings.Contains(name, "a/new") {
			t.Errorf("%s is told", name)
		}
	}
}

// TestWhoSeesWhat: a reader sees the points of its permission, and the figures of the whole site only if it
// reads all; others see nothing, also after a revocation.
func TestWhoSeesWhat(t *testing.T) {
	s := adaptertest.New(t, nil)
	var returns Returns
	s.Serve(t, []web.Route{newRoute(s, &returns)})
	points := func(body string) []string {
		seen := make(map[string]bool)
		for _, m := range regexp.MustCompile(`[{,]point="([^"]*)"`).FindAllStringSubmatch(body, -1) {
			seen[m[1]] = true
		}
		return slices.Sorted(maps.Keys(seen))
	}
	all, err := s.Node.Offer(t.Context(), node.LocalOwner)
	if err != nil {
		t.Fatal(err)
	}
	whole := slices.Sorted(slices.Values(all.Read))
	for _, tt := range []struct {
		may    string
		status int
		points []string
		whole  bool
	}{
		{"read *", 200, whole, true},
		{"read greenhouse/temperature", 200, []string{"greenhouse/temperature"}, false},
		{"read greenhouse/temperature+greenhouse/vent", 200, []string{"greenhouse/temperature", "greenhouse/vent"}, false},
		{"read greenhouse/temperature, set greenhouse/vent max 5m", 200, []string{"greenhouse/temperature"}, false},
		{"show greenhouse/message", 403, nil, false},
		{"ask helper", 403, nil, false},
	} {
		token, revoke := s.Token(t, fmt.Sprint("t", len(tt.may)), tt.may)
		res, body := s.Ask(t, "GET", "/metrics", token, "")
		if res.StatusCode != tt.status {
			t.Errorf("%s: %s %s", tt.may, res.Status, body)
			continue
		}
		if got := points(body); !slices.Equal(got, tt.points) {
			t.Errorf("%s: sees %v, want %v", tt.may, got, tt.points)
		}
		for _, of := range []string{"agentsite_calls_total", "agentsite_returns_total", "process_", "go_", "agentsite_readings_total", "agentsite_outputs_away", "agentsite_journal", "agentsite_disk"} {
			if strings.Contains(body, "\n"+of) != tt.whole {
				t.Errorf("%s: is told of %s: %v", tt.may, of, !tt.whole)
			}
		}
		if revoke(); tt.status == 200 {
			if res, _ := s.Ask(t, "GET", "/metrics", token, ""); res.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s, revoked: %s", tt.may, res.Status)
			}
		}
	}
	key := identity.New().ID()
	for _, point := range []string{"temperature", "humidity", "vent"} {
		s.Grant(t, key, "read greenhouse/"+point)
	}
	several, err := s.Node.Key(key.String())
	if err != nil {
		t.Fatal(err)
	}
	w := get(newRoute(s, &returns), several)
	if got := points(w.Body.String()); w.Code != 200 || len(got) != 3 {
		t.Errorf("with several grants: %d, sees %v", w.Code, got)
	}
	token, _ := s.Token(t, "seldom", "read greenhouse/temperature 1/h")
	for _, want := range []int{200, 429} {
		if res, body := s.Ask(t, "GET", "/metrics", token, ""); res.StatusCode != want {
			t.Errorf("%s %s, want %d", res.Status, body, want)
		}
	}
}

// TestStart: the start does not move with the time that passes, but with a clock that is set.
func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var off time.Duration
		o := &Options{Started: time.Now(), Now: func() (time.Time, bool) { return time.Now().Add(off), true }}
		var s start
		first := s.by(o)
		for range 100 {
			time.Sleep(time.Second)
			off += 9 * time.Millisecond // slowly corrected
			if got := s.by(o); got != first {
				t.Fatalf("%v became %v", first, got)
			}
		}
		if off = time.Hour; s.by(o) != first+3600 {
			t.Errorf("%v after an hour's correction of %v", s.by(o), first)
		}
	})
}

// noWriter is a ResponseWriter that costs nothing.
type noWriter struct{ header http.Header }

func (w noWriter) Header() http.Header       { return w.header }
func (noWriter) Write(b []byte) (int, error) { return len(b), nil }
func (noWriter) WriteHeader(int)             {}

// many is a device with sensors.
type many []device.Point

func (m many) Describe() device.Description { return device.Description{Model: "many", Points: m} }
func (many) Close() error                   { return nil }

// TestAllocations: what a scrape allocates does not grow with the number of points.
func TestAllocations(t *testing.T) {
	measure := func(points int) float64 {
		hub := node.NewHub(nil, ignore{}, agents.PointURI)
		n := node.New(node.Parts{Hub: hub})
		var d many
		for i := range points {
			d = append(d, device.Point{Name: fmt.Sprint("p", i), Kind: device.KindMeasurement, Unit: "Cel"})
		}
		if err := n.Replace(node.Site{Devices: []node.Device{{Name: "a", Device: d, Description: d.Describe(), Busy: device.NewMutex()}}}); err != nil {
			t.Fatal(err)
		}
		g, err := guard.New(nil, guard.Latch{})
		if err != nil {
			t.Fatal(err)
		}
		route := Route(Options{
			Node: n, Hub: hub, Outputs: g, Returns: new(Returns), Now: func() (time.Time, bool) { return time.Now(), true },
			Report: func() (r Report) { return r },
		})
		w, r, c := noWriter{make(http.Header)}, httptest.NewRequest("GET", "/metrics", nil), web.Caller{Sender: rpc.Sender{Who: node.LocalOwner}}
		return testing.AllocsPerRun(20, func() { route.Serve(w, r, c) })
	}
	few, lots := measure(1), measure(300)
	t.Logf("%v allocations with 1 point, %v with 300", few, lots)
	if lots > few+10 || lots > 2*21 { // six counters, written by fmt, took 21
		t.Errorf("%v allocations with 1 point, %v with 300", few, lots)
	}
}

// ignore is a Recorder that forgets.
type ignore struct{}

func (ignore) Record(device.Reading) {}

// TestStarted: the start is the same each time, unless the clock was set.
func TestStarted(t *testing.T) {
	at := time.Unix(1_790_000_000, 0)
	o := &Options{Started: time.Now(), Now: func() (time.Time, bool) { return at, true }}
	var s start
	first := s.by(o)
	at = at.Add(600 * time.Millisecond)
	if again := s.by(o); again != first {
		t.Errorf("%v, and then %v", first, again)
	}
	at = at.Add(time.Hour)
	if set := s.by(o); set < first+3599 {
		t.Errorf("%v after the clock was set, and %v before", set, first)
	}
}
