package imports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/heartbeat"
	"agentsite/agents/principal"
	"agentsite/agents/routine"
	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/bundle"
	"agentsite/node/config"
	"agentsite/node/hosted"
	"agentsite/node/identity"
)

// rig is a site's imports with a real manager, and a disk that may be full.
type rig struct {
	*Store
	manager   *hosted.Manager
	permitted map[string][]access.Permission
	refuse    error // of Permit
	disk      []byte
	full      bool
}

var hundred = 100.0

var points = []agents.Point{
	{Point: "climate/temperature", Kind: device.KindMeasurement, Unit: "Cel", Description: "of the air"},
	{Point: "climate/humidity", Kind: device.KindMeasurement, Unit: "%"},
	{Point: "house/heater", Kind: device.KindSwitch},
	{Point: "house/pump", Kind: device.KindSwitch},
	{Point: "house/vent", Kind: device.KindLevel, Unit: "%", Min: new(float64), Max: &hundred},
}

const here = `site: { name: a }
agents:
  alive: { kind: heartbeat, display: house/message }
  wet: { kind: rule, may: set house/pump, when: climate/humidity < 20 %, hold: { house/pump: on } }
  cold:
    kind: rule
    may: set house max 5m, read *, stop
    when: climate/temperature < 5 Cel and age(climate/temperature) < 2m
    hold: { house/heater: on }
    tests: [{ given: { climate/temperature: 4 Cel }, after: 1m, holds: { house/heater: on } }]
`

func newRig(t *testing.T, file string) *rig {
	t.Helper()
	r := new(rig)
	r.start(t, file)
	return r
}

// start starts the site anew with the files of its disk.
func (r *rig) start(t *testing.T, file string) {
	t.Helper()
	r.manager = hosted.New(hosted.Options{
		Kinds: func(*config.Site) []agent.Kind {
			return []agent.Kind{heartbeat.Kind, rule.Kind(rule.World{Untested: true, Points: points}), routine.Kind(rule.World{Points: points}), {Name: "mcp", New: func() agent.Agent { panic("a program is run") }}}
		},
		Permit: func(all map[string][]access.Permission) error {
			if r.refuse == nil {
				r.permitted = all
			}
			return r.refuse
		},
		Tell: func(map[string]node.Hosted) {},
		Keep: func([]string) error { return nil },
	})
	var err error
	r.Store, err = New(Options{
		Hosted: r.manager, File: r.disk,
		Points: func(context.Context, agents.Principal) ([]agents.Point, error) { return points, nil },
		Write: func(b []byte) error {
			if r.full {
				return errors.New("no space left on device")
			}
			r.disk = b
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.manager.Apply(parse(t, file)); err != nil {
		t.Fatal(err)
	}
}

func parse(t *testing.T, file string) *config.Site {
	t.Helper()
	cfg, err := config.Parse("a.yaml", []byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// running returns the agents and what they may.
func (r *rig) running() string {
	var all []string
	for _, a := range append(r.manager.List(context.Background()), r.List()...) {
		all = append(all, fmt.Sprintf("%s %s %d", a.Principal, a.State, len(r.permitted[a.Principal])))
	}
	return strings.Join(all, ", ")
}

func frost() bundle.Content {
	return bundle.Content{
		Name: "frost", Kind: "rule", Definition: "when: need/t < 5 Cel\nuntil: need/t > 7 Cel\nhold: { need/out: 40 }\n",
		Needs: []bundle.Need{{Name: "out", Kind: device.KindLevel, Unit: "%"}, {Name: "t", Kind: device.KindMeasurement, Unit: "Cel"}},
		May:   "set need/out max 5m", Created: 1_790_000_000,
	}
}

func seal(t testing.TB, c bundle.Content) []byte {
	t.Helper()
	b, err := bundle.Seal(identity.New(), c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (r *rig) bring(q Request) (Draft, error) {
	return r.Import(context.Background(), agents.Principal{Kind: principal.Local, ID: "local", Owner: true}, q)
}

const before = "heartbeat:alive runs 0, rule:wet runs 2, rule:cold runs 4"

// TestImport brings a rule to a site, from the file to its removal.
func TestImport(t *testing.T) {
	r := newRig(t, here)
	if got := r.running(); got != before {
		t.Fatal(got)
	}
	b := seal(t, frost())
	d, err := r.bring(Request{Bundle: b, As: "winter"})
	if err != nil || d.Wish != "set house/vent max 5m" || d.Excess != nil || fmt.Sprint(d.Bound) != "[{out house/vent} {t climate/temperature}]" {
		t.Fatal(d, err)
	}
	if got := r.running(); got != before+", rule:winter draft 0" {
		t.Error(got)
	}
	if l := r.List()[0]; l.Definition != frost().Definition || l.Wish != d.Wish || fmt.Sprint(l.Bound) != "map[out:house/vent t:climate/temperature]" {
		t.Error("an owner cannot read what waits for acceptance", l)
	}
	c, ok, err := r.Draft("winter")
	if _, isRule := c.Agent.(*rule.Rule); !ok || err != nil || !isRule || c.Principal != "rule:winter" {
		t.Error(c, ok, err)
	}
	r.start(t, here)
	if got := r.running(); got != before+", rule:winter draft 0" {
		t.Error("after a restart", got)
	}
	if _, err := r.Accept(Acceptance{"winter", "set house/vent max 1m"}); err != nil {
		t.Fatal(err)
	}
	const after = before + ", rule:winter runs 2"
	if got := r.running(); got != after {
		t.Error(got)
	}
	if err := r.manager.Apply(parse(t, here+"  more: { kind: rule, every: 1h, do: [{ set: { house/heater: on } }], priority: 3 }\n")); err != nil {
		t.Fatal(err)
	}
	if got := r.running(); got != before+", rule:more runs 1, rule:winter runs 2" {
		t.Error("after a reload", got)
	}
	r.start(t, here)
	if got := r.running(); got != after {
		t.Error("after a restart", got)
	}
	if err := r.Remove("winter"); err != nil {
		t.Fatal(err)
	}
	if got := r.running(); got != before {
		t.Error(got)
	}
	r.start(t, here)
	if _, err := r.bring(Request{Bundle: b}); err == nil {
		t.Error("what was removed comes back by itself")
	}
	if _, err := r.bring(Request{Bundle: b, Again: true}); err != nil {
		t.Error(err)
	}
}

// TestImportRefused: nothing is stored and nothing runs or may more of what is refused, in one
// line of text.
func TestImportRefused(t *testing.T) {
	r := newRig(t, here)
	change := func(change func(*bundle.Content)) Request {
		c := frost()
		change(&c)
		return Request{Bundle: seal(t, c)}
	}
	define := func(text string) Request { return change(func(c *bundle.Content) { c.Definition = text }) }
	const rest = "\nhold: { need/out: 40 }\n"
	var wide strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&wide, " or need/x%d", i)
	}
	bombed := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
	for name, q := range map[string]Request{
		"a smuggled kind":                define("kind: mcp\ncommand: [rm, -r, /]\n"),
		"a smuggled kind of a rule":      define("kind: rule\nwhen: need/t < 5 Cel" + rest),
		"a smuggled permission":          define("may: set *\nwhen: need/t < 5 Cel" + rest),
		"a command":                      define("command: [rm, -r, /]\nwhen: need/t < 5 Cel" + rest),
		"an agent beside it":             define("when: need/t < 5 Cel\nagents: { other: { kind: mcp } }" + rest),
		"a point that is no need":        define("when: climate/humidity < 5 % and need/t < 5 Cel" + rest),
		"an output that is no need":      define("when: need/t < 5 Cel\nhold: { need/out: 40, house/heater: on }\n"),
		"another site's output":          define("when: need/t < 5 Cel\nhold: { need/out: 40, shed/house/heater: on }\n"),
		"a need that it does not name":   define("when: need/t < 5 Cel and need/other" + rest),
		"an anchor":                      define("when: &x need/t < 5 Cel\nuntil: *x" + rest),
		"many aliases":                   define(bombed),
		"a tag":                          define("when: !!binary bmVlZA==" + rest),
		"a second document":              define("when: need/t < 5 Cel" + rest + "---\nkind: mcp\n"),
		"a key twice":                    define("when: need/t < 5 Cel\nwhen: need/t > 5 Cel" + rest),
		"deep nesting":                   define("when: need/t < 5 Cel\ntests: " + strings.Repeat("[", 20_000)),
		"deep parentheses":               define("when: \"" + strings.Repeat("(", 900) + "need/t\"" + rest),
		"many points":                    define("when: \"need/t < 5 Cel" + wide.String() + "\"" + rest),
		"a huge number":                  define("when: need/t < 1" + strings.Repeat("0", 400) + rest),
		"infinity":                       define("when: need/t < 5 Cel\nhold: { need/out: .inf }\n"),
		"a value out of all ranges":      define("when: need/t < 5 Cel\nhold: { need/out: 1e999 }\n"),
		"a name that looks alike":        define("when: nееd/t < 5 Cel" + rest),
		"nothing":                        define("{}"),
		"a list":                         define("- when: need/t < 5 Cel"),
		"another unit than its need":     define("when: need/t < 5 Pa" + rest),
		"a measurement as an output":     define("when: need/out < 5 %\nhold: { need/t: on }\n"),
		"a unit that no point has":       change(func(c *bundle.Content) { c.Needs[1].Unit = "K" }),
		"a kind that no point has":       change(func(c *bundle.Content) { c.Needs[0].Kind, c.Needs[0].Unit = device.KindEvent, "" }),
		"several points that fit":        change(func(c *bundle.Content) { c.Needs[0].Kind, c.Needs[0].Unit = device.KindSwitch, "" }),
		"a kind that is not here":        change(func(c *bundle.Content) { c.Kind = "routine" }),
		"the name of an agent":           {Bundle: seal(t, frost()), As: "cold"},
		"another kind's name":            {Bundle: seal(t, frost()), As: "alive"},
		"a name with a path":             {Bundle: seal(t, frost()), As: "../cold"},
		"a principal for a name":         {Bundle: seal(t, frost()), As: "rule:cold"},
		"no such need":                   {Bundle: seal(t, frost()), Bind: []bundle.Binding{{Need: "oat", Point: "house/vent"}}},
		"a need bound twice":             {Bundle: seal(t, frost()), Bind: []bundle.Binding{{Need: "out", Point: "house/vent"}, {Need: "out", Point: "house/vent"}}},
		"a need bound to another kind":   {Bundle: seal(t, frost()), Bind: []bundle.Binding{{Need: "out", Point: "house/heater"}}},
		"a need bound to another unit":   {Bundle: seal(t, frost()), Bind: []bundle.Binding{{Need: "t", Point: "climate/humidity"}}},
		"a need bound to a permission":   {Bundle: seal(t, frost()), Bind: []bundle.Binding{{Need: "out", Point: "house/vent, set *"}}},
		"a need bound to all":            {Bundle: seal(t, frost()), Bind: []bundle.Binding{{Need: "out", Point: "*"}}},
		"nothing of a file":              {},
		"a file that is cut":             {Bundle: seal(t, frost())[:200]},
		"a file whose middle is another": {Bundle: bytes.Replace(seal(t, frost()), []byte("max 5m"), []byte("max 9h"), 1)},
	} {
		_, err := r.bring(q)
		if err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 || device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		if r.disk != nil || r.running() != before {
			t.Fatalf("%s: something is stored or runs: %s", name, r.running())
		}
	}
}

// TestAcceptRefused: a draft stays one.
func TestAcceptRefused(t *testing.T) {
	r := newRig(t, here)
	if _, err := r.bring(Request{Bundle: seal(t, frost())}); err != nil {
		t.Fatal(err)
	}
	clash := frost()
	clash.Name = "clash"
	if _, err := r.bring(Request{Bundle: seal(t, clash)}); err != nil {
		t.Fatal(err)
	}
	same := frost()
	same.Name, same.Definition, same.Needs[0] = "same", "when: need/t < 5 Cel\nhold: { need/out: on }\n", bundle.Need{Name: "out", Kind: device.KindSwitch}
	same.May = ""
	if _, err := r.bring(Request{Bundle: seal(t, same), Bind: []bundle.Binding{{Need: "out", Point: "house/heater"}}}); err != nil {
		t.Fatal(err)
	}
	drafts, stored := r.running(), r.disk
	for name, a := range map[string]Acceptance{
		"no permission": {"frost", ""}, "nearly none": {"frost", "  "}, "not one": {"frost", "set everything on fire"}, "no draft": {"forst", "set house"},
		"an agent of the configuration": {"cold", "set *"}, "an output of the configuration's": {"same", "set house/heater"},
		"a point of a site that is none": {"frost", "set shed/house/vent"},
	} {
		if _, err := r.Accept(a); err == nil || strings.Contains(err.Error(), "\n") || device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		if r.running() != drafts || !bytes.Equal(r.disk, stored) {
			t.Fatalf("%s: %s", name, r.running())
		}
	}
	if _, err := r.Accept(Acceptance{"frost", "set house/vent"}); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]Acceptance{"twice": {"frost", "set *"}, "an import's output": {"clash", "set house/vent"}} {
		if _, err := r.Accept(a); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
}

// TestImportDisk: on a full disk each step is refused, and everything is as before, also after a
// restart. A step that the permissions refuse is undone on the disk.
func TestImportDisk(t *testing.T) {
	r := newRig(t, here)
	steps := []func() error{
		func() error { _, err := r.bring(Request{Bundle: seal(t, frost())}); return err },
		func() error { _, err := r.Accept(Acceptance{"frost", "set house/vent"}); return err },
		func() error { return r.Remove("frost") },
	}
	for i, step := range steps {
		was := r.running()
		r.full = true
		if err := step(); device.AsFault(err).Kind != device.Unavailable {
			t.Errorf("step %d on a full disk: %v", i, err)
		}
		r.full = false
		if got := r.running(); got != was {
			t.Errorf("step %d on a full disk: %s", i, got)
		}
		r.refuse = errors.New("no more permissions")
		if err := step(); err == nil {
			t.Errorf("step %d is done without its permissions", i)
		}
		r.refuse = nil
		r.start(t, here)
		if got := r.running(); got != was {
			t.Errorf("step %d and a restart: %s", i, got)
		}
		if err := step(); err != nil {
			t.Fatal(i, err)
		}
	}
}

// TestImportDamaged: the site starts without imports that cannot be read, and replaces nothing.
func TestImportDamaged(t *testing.T) {
	r := newRig(t, here)
	if _, err := r.bring(Request{Bundle: seal(t, frost())}); err != nil {
		t.Fatal(err)
	}
	r.disk = r.disk[:len(r.disk)-5]
	damaged := r.disk
	r.start(t, here)
	if _, err := r.bring(Request{Bundle: seal(t, frost())}); r.Damage() == nil || device.AsFault(err).Kind != device.Unavailable || !bytes.Equal(r.disk, damaged) {
		t.Error(err)
	}
}

// TestConfigurationWins: a reload does not end an import that works, and at a start the
// configuration wins.
func TestConfigurationWins(t *testing.T) {
	r := newRig(t, here)
	if _, err := r.bring(Request{Bundle: seal(t, frost())}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Accept(Acceptance{"frost", "set house/vent"}); err != nil {
		t.Fatal(err)
	}
	was := r.running()
	for _, more := range []string{
		"  frost: { kind: rule, every: 1h, do: [{ set: { house/heater: on } }], priority: 3 }\n",
		"  other: { kind: rule, every: 1h, do: [{ set: { house/vent: 3 } }] }\n",
	} {
		if err := r.manager.Apply(parse(t, here+more)); device.AsFault(err).Kind != device.Invalid || r.running() != was {
			t.Errorf("%v: %s", err, r.running())
		}
		r.start(t, here+more)
		if got := r.running(); !strings.HasSuffix(got, "rule:frost failed 0") && !strings.HasSuffix(got, "rule:frost failed 1") {
			t.Errorf("after a start: %s", got)
		}
		if err := r.manager.Apply(parse(t, here+more+"  third: { kind: heartbeat, display: house/message }\n")); err != nil {
			t.Errorf("another change is refused: %v", err)
		}
		r.start(t, here)
		if got := r.running(); got != was {
			t.Errorf("it does not come back: %s", got)
		}
	}
}

// TestExport: an exported bundle is the rule, without the names of this site, and can be imported
// here under another name.
func TestExport(t *testing.T) {
	r := newRig(t, here+"  airing: { kind: routine, may: set house, steps: [{ set: { house/vent: 40 }, for: 5m, wait: true }] }\n")
	who := agents.Principal{Kind: principal.Local, ID: "local", Owner: true}
	c, err := r.Export(context.Background(), who, "cold")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(c.Definition, "house") || strings.Contains(c.Definition, "climate") || strings.Contains(c.Definition, "kind:") || strings.Contains(c.Definition, "may:") {
		t.Errorf("it names what is here:\n%s", c.Definition)
	}
	if c.May != "set need/heater max 5m, read need/heater+need/temperature" || len(c.Needs) != 2 || c.Needs[1].Unit != "Cel" {
		t.Errorf("%+v", c)
	}
	c, err = r.Export(context.Background(), who, "airing")
	if err != nil || c.Kind != "routine" || len(c.Needs) != 1 || !strings.Contains(c.Definition, "need/vent: 40") {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = r.Export(context.Background(), who, "cold")
	if err != nil {
		t.Fatal(err)
	}
	c.Created = 1_790_000_000
	d, err := r.bring(Request{Bundle: seal(t, c), As: "again", Bind: []bundle.Binding{{Need: "heater", Point: "house/heater"}}})
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := r.Store.Draft(d.Name)
	if err != nil || fmt.Sprint(again.Reads) != "[climate/temperature house/heater]" {
		t.Error(again.Reads, err)
	}
	for _, name := range []string{"alive", "none", ""} {
		if _, err := r.Export(context.Background(), who, name); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%q: %v", name, err)
		}
	}
}
