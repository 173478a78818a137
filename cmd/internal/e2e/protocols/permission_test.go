//go:build e2e

package protocols

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/ops"
	"agentsite/device"
	"agentsite/node/config"
	"agentsite/node/state"
)

// request is a request to a site, rendered in every protocol.
type request struct {
	op     string // read, history, move or stop; a move without a value is a release
	point  string // "" for none
	value  device.Value
	length float64 // seconds; 0 for none
	key    string  // of idempotency; "" for none
	within float64 // seconds; 0 for none
}

// speaker asks in one protocol, and returns the kind of the fault, or "" when it was done.
// An owner that has to approve first is the fault approval.
type speaker func(context.Context, request) (fault string, err error)

const approval = "approval"

// site is one for a protocol, and its only caller.
type site struct {
	*harness.Site
	token  string
	caller string // whose permissions end by agentsite revoke
}

// speakers are the protocols. Each connects to a site that it has for itself, which speaks all.
var speakers = map[string]func(*testing.T, *site) speaker{
	"MCP in JSON":  func(t *testing.T, s *site) speaker { return ofSite(s.dial(t, false)) },
	"MCP in CBOR":  func(t *testing.T, s *site) speaker { return ofSite(s.dial(t, true)) },
	"MCP to peers": func(t *testing.T, s *site) speaker { return ofSite(s.dialPeer(t)) },
	"openapi":      speakHTTP,
	"wot":          speakWoT,
	"lmosprotocol": speakLMOS,
	"agora":        speakAgora,
	"a2a":          speakA2A("a2a"),

	"a2a over HTTP":     speakA2A("a2a over HTTP"),
	"a2a 0.3":           speakA2A("a2a 0.3"),
	"a2a 0.3 over HTTP": speakA2A("a2a 0.3 over HTTP"),

	"aitp": speakAITP,
	"anp":  speakANP,
}

var permissionConfig = `site: { name: shed }
protocols: [` + strings.Join(config.Protocols, ", ") + `]
internet: { realm: "zorilla:aaaaaaaaaaaaaaaaaaaaaaaaaa" }
devices:
  lamp: { driver: sim, model: relay, min_off: 0s, max_on: 5m }
  fan: { driver: sim, model: relay, min_off: 10m }
  gate: { driver: sim, model: relay, min_off: 0s, confirm: owner }
  bolt: { driver: sim, model: relay, min_off: 0s }
  dim: { driver: sim, model: dimmer, min_off: 0s }
  latch: { driver: sim, model: relay, min_off: 0s }
  door: { driver: sim, model: relay, min_off: 0s }
  den: { driver: sim, model: climate }
  attic: { driver: sim, model: climate }
`

// permission is the caller's permission.
const permission = "read den+lamp+dim+gate, set lamp+gate+dim+latch+fan, set bolt 2/h, stop"

func read(point string) request { return request{op: "read", point: point} }

func release(output string) request { return request{op: "move", point: output} }

func set(output string, value device.Value, seconds float64) request {
	return request{op: "move", point: output, value: value, length: seconds}
}

func (r request) keyed(key string) request { r.key = key; return r }

func (r request) begunWithin(seconds float64) request { r.within = seconds; return r }

var on = device.Bool(true)

// things are asked in this order. want is the kind of the fault.
var things = []struct {
	name string
	request
	want string
}{
	{"a reading", read("den/temperature"), ""},
	{"a reading that it may not see", read("attic/temperature"), "denied"},
	{"a point that there is not", read("den/nothing"), "invalid"},
	{"a history", request{op: "history", point: "den/temperature"}, ""},
	{"a history that it may not see", request{op: "history", point: "attic/temperature"}, "denied"},
	{"on", set("lamp/relay", on, 60), ""},
	{"on again", set("lamp/relay", on, 90), ""},
	{"back", release("lamp/relay"), ""},
	{"back again", release("lamp/relay"), ""},
	{"longer than its limit", set("lamp/relay", on, 3600), "invalid"},
	{"longer than a lease can be", set("lamp/relay", on, 1e9), "invalid"},
	{"a level", set("dim/level", device.Number(40), 60), ""},
	{"another level", set("dim/level", device.Number(60), 60), ""},
	{"a level out of range", set("dim/level", device.Number(140), 60), "invalid"},
	{"a number for a switch", set("lamp/relay", device.Number(1), 60), "invalid"},
	{"a switch for a level", set("dim/level", on, 60), "invalid"},
	{"a sensor", set("den/temperature", device.Number(20), 60), "denied"},
	{"an output that it may not move", set("door/relay", on, 60), "denied"},
	{"an output that there is not", set("lamp/nothing", on, 60), "invalid"},
	{"once by a key", set("latch/relay", on, 60).keyed("k1"), ""},
	{"the same by that key", set("latch/relay", on, 60).keyed("k1"), ""},
	{"something else by that key", set("lamp/relay", on, 60).keyed("k1"), "invalid"},
	{"a key that is too long", set("lamp/relay", on, 60).keyed(strings.Repeat("k", 65)), "invalid"},
	{"an output that rests", set("fan/relay", on, 60), "unsafe"},
	{"in time", set("bolt/relay", on, 60).begunWithin(30), ""},
	{"with an end before its beginning", set("bolt/relay", on, 60).begunWithin(-1), "invalid"},
	{"back, which no rate counts", release("bolt/relay"), ""},
	{"the second of two an hour", set("bolt/relay", on, 60), ""},
	{"back once more", release("bolt/relay"), ""},
	{"the third of two an hour", set("bolt/relay", on, 60), "busy"},
	{"what an owner confirms", set("gate/relay", on, 60), approval},
	{"the emergency stop", request{op: "stop"}, ""},
	{"a move of a stopped site", set("lamp/relay", on, 60), "unsafe"},
	{"back, of a stopped site", release("lamp/relay"), ""},
	{"a reading of a stopped site", read("lamp/relay"), ""},
}

// kept holds a site's records of the requests.
type kept struct {
	Journal []string            // without times and keys
	Moves   map[string][]string // what each output did
}

// TestOnePermission asks the same in all protocols: the decisions, the journal and the outputs'
// moves are the same. MQTT has no answers: e2e/home compares what it decides.
func TestOnePermission(t *testing.T) {
	program := harness.Need(t, "the program", harness.Program)
	for _, name := range config.Protocols {
		if speakers[name] == nil && name != "catalog" { // which has documents only
			t.Errorf("nothing is asked by %s: give it a speaker", name)
		}
	}
	all := make(map[string]kept)
	for name, connect := range speakers {
		t.Run(name, func(t *testing.T) {
			r := harness.Start(t, permissionConfig, program, "--listen-peers=127.0.0.1:0")
			harness.WaitFor(t, time.Minute, "the first readings and the outputs are there", func() bool {
				out, err := r.CLI(t, "read", "den/temperature", "--json")
				return err == nil && strings.Contains(out, `"good"`)
			})
			token, _ := r.AddToken(t, "caller", permission)
			its := &site{r, token, "caller"}
			ask := connect(t, its)
			for _, thing := range things {
				got, err := ask(t.Context(), thing.request)
				if got != thing.want {
					t.Errorf("%s: %q (%v), want %q", thing.name, got, err, thing.want)
				}
				if err != nil && thing.request.point != "den/nothing" && thing.request.point != "lamp/nothing" && strings.Contains(err.Error(), "there is no") {
					t.Errorf("%s: what is there is denied: %v", thing.name, err)
				}
			}
			var have kept
			harness.WaitFor(t, 30*time.Second, "the history has the stop, which was the last", func() bool {
				have.Moves = movesOf(t, r)
				return strings.Contains(strings.Join(have.Moves["dim/level"], " "), "sent to safe") && strings.Contains(strings.Join(have.Moves["latch/relay"], " "), "sent to safe")
			})
			if _, err := r.CLI(t, "revoke", its.caller); err != nil {
				t.Fatal(err)
			}
			for _, r := range []request{read("den/temperature"), set("lamp/relay", on, 60), {op: "stop"}} {
				if fault, err := ask(t.Context(), r); fault == "" && err == nil {
					t.Errorf("%s is done for a permission that was revoked", r.op)
				}
			}
			r.Stop(t)
			have.Journal = journalOf(t, r)
			all[name] = have
		})
	}
	const first = "MCP in JSON"
	for name, got := range all {
		if want := all[first]; !reflect.DeepEqual(got.Moves, want.Moves) {
			t.Errorf("%s: the outputs did\n%v\nand by %s\n%v", name, got.Moves, first, want.Moves)
		}
		if a, b := strings.Join(got.Journal, "\n"), strings.Join(all[first].Journal, "\n"); a != b {
			t.Errorf("%s: the journal is\n%s\nand by %s\n%s", name, a, first, b)
		}
	}
}

// movesOf returns what the outputs did, without times.
func movesOf(t *testing.T, r *harness.Site) map[string][]string {
	t.Helper()
	all, c := make(map[string][]string), r.Client(t, false)
	for _, output := range []string{"lamp/relay", "fan/relay", "gate/relay", "bolt/relay", "dim/level", "latch/relay", "door/relay"} {
		h, err := c.History(t.Context(), agents.Principal{}, agents.HistoryRequest{Point: output})
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range h.Changes {
			all[output] = append(all[output], fmt.Sprint(change.Value, change.Cause))
		}
	}
	return all
}

// journalOf returns the journal's lines of all callers but this machine's owner. Refusals are
// counted, in no order.
func journalOf(t *testing.T, r *harness.Site) (lines []string) {
	t.Helper()
	entries, _, err := ops.ReadJournal(state.Folder(r.Folder), time.Time{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Who != "" && e.Who != "local" && e.Who != "nobody" {
			lines = append(lines, fmt.Sprintf("%s %s %s %s %d", e.Tool, e.Args, e.Outcome, e.Says, e.Count))
		}
	}
	first := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, " refused ") })
	slices.Sort(lines[max(0, first):])
	return lines
}
