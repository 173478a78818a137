package mqtt

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/task"
	"agentsite/agents/task/tasktest"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/device/mqtt/packet"
	"agentsite/transport/adapter/adaptertest"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a bridge between a site and a broker.
type rig struct {
	*broker
	*Agent
	site *adaptertest.Site
	end  func()

	cancel context.CancelCauseFunc
}

const all = "read greenhouse, set greenhouse/heater+greenhouse/vent+greenhouse/lamp max 5m, show greenhouse/message, capture greenhouse/camera"

// newRig starts a bridge with a permission, and waits until the broker has been told of the site.
func newRig(t *testing.T, may string, policy func(*guard.Policy), bend func(*Agent), confirm ...string) *rig {
	r := &rig{broker: newBroker(t), site: adaptertest.New(t, policy, confirm...)}
	a := Kind(World{
		Site: "garden", ID: "agentsite-test", Version: "9", Claimed: func() bool { return true },
		Tasks: func() task.Host { return r.site.Tasks },
	}).New().(*Agent)
	a.Broker, a.Every, a.retry, a.lease = r.url(), time.Second, 20*time.Millisecond, 2*time.Second
	if bend != nil {
		bend(a)
	}
	if _, err := a.Define(); err != nil {
		t.Fatal(err)
	}
	r.Agent = a
	token, _ := r.site.Token(t, "bridge", may)
	self, err := r.site.Node.Bearer(token, true)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, self, r.site.Node) }()
	r.cancel = cancel
	r.end = func() {
		cancel(nil)
		if done != nil {
			if err := <-done; err != nil {
				t.Error(err)
			}
			done = nil
		}
	}
	t.Cleanup(r.end)
	r.until("the site is there", func() bool { s, _ := r.last(r.base() + "/status"); return s == online })
	r.until("a state is told", func() bool { _, n := r.last(r.topic("heater")); return n > 0 })
	return r
}

func (r *rig) topic(point string) string { return r.base() + "/greenhouse/" + point }

// is waits until an output has a value.
func (r *rig) is(output string, v device.Value) {
	r.broker.Helper()
	r.until(output+" is "+v.String(), func() bool { return r.site.Value("greenhouse/"+output) == v })
}

// said waits until the state of a point is told as so.
func (r *rig) said(point string, so func(map[string]any) bool) {
	r.broker.Helper()
	r.until("the state of "+point, func() bool {
		text, _ := r.last(r.topic(point))
		var s map[string]any
		return json.Unmarshal([]byte(text), &s) == nil && so(s)
	})
}

var (
	on  = device.Bool(true)
	not = device.Bool(false)
)

// TestMove: a command moves an output under the bridge's permission, and the output stays so by renewals until another
// command.
func TestMove(t *testing.T) {
	for _, version := range []byte{packet.V5, packet.V311} {
		r := newRig(t, all, nil, func(a *Agent) { a.version, a.lease = version, time.Second })
		r.send(r.topic("heater/set"), "ON", 0)
		r.is("heater", on)
		r.said("heater", func(s map[string]any) bool { return s["value"] == true && s["quality"] == "good" })
		r.send(r.topic("vent/set"), "42.5", 0)
		r.is("vent", device.Number(42.5))
		for began := time.Now(); time.Since(began) < 3*r.Agent.lease; time.Sleep(10 * time.Millisecond) {
			if r.site.Value("greenhouse/heater") != on {
				t.Fatal("the lease is not renewed")
			}
		}
		r.send(r.topic("heater/set"), "OFF", 0)
		r.is("heater", not)
		r.said("heater", func(s map[string]any) bool { return s["value"] == false })
		r.send(r.topic("vent/set"), "OFF", 0)
		r.is("vent", device.Number(0))
		r.end()
	}
}

// TestLost: what was moved returns to safe when the broker or Home Assistant is gone, and does not come back by
// itself.
func TestLost(t *testing.T) {
	for what, lose := range map[string]func(*rig){
		"the connection":  func(r *rig) { r.kill() },
		"a frozen broker": func(r *rig) { r.do(func() { r.deaf = true }) },
		"home assistant":  func(r *rig) { r.send("homeassistant/status", offline, 0) },
		"the site":        func(r *rig) { r.end() },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, all, nil,
				func(a *Agent) { a.lease, a.timing = time.Minute, timing{50 * time.Millisecond, 300 * time.Millisecond} })
			r.send(r.topic("heater/set"), "ON", 0)
			r.is("heater", on)
			lose(r)
			r.is("heater", not)
			if what == "the connection" {
				r.until("it comes back", func() bool { n := 0; r.do(func() { n = r.count }); return n > 1 })
				_, told := r.last(r.base() + "/status")
				r.until("it is told again", func() bool { _, n := r.last(r.base() + "/status"); return n > told || n > 1 })
				r.is("heater", not)
				r.send(r.topic("heater/set"), "ON", 0)
				r.is("heater", on)
			}
		})
	}
}

// TestWill: the broker says that the site is gone, whichever way it went.
func TestWill(t *testing.T) {
	r := newRig(t, all, nil, nil)
	r.kill()
	r.until("the will", func() bool { n := 0; r.do(func() { n = len(r.wills) }); return n == 1 })
	r.until("it is back", func() bool { s := ""; r.do(func() { s = r.kept[r.base()+"/status"] }); return s == online })
	r.end()
	r.until("goodbye", func() bool { s := ""; r.do(func() { s = r.kept[r.base()+"/status"] }); return s == offline })
}

// TestMaxOn: the time that an output may be away from safe ends what is renewed, and no renewal begins it anew.
func TestMaxOn(t *testing.T) {
	r := newRig(t, all, func(p *guard.Policy) { p.MaxOn, p.Lease = 2*time.Second, 2*time.Second },
		func(a *Agent) { a.lease = time.Second })
	r.send(r.topic("heater/set"), "ON", 0)
	r.is("heater", on)
	r.is("heater", not)
	for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
		if r.site.Value("greenhouse/heater") != not {
			t.Fatal("it was moved again by itself")
		}
	}
	r.send(r.topic("heater/set"), "ON", 0) // it may again, without a rest
	r.is("heater", on)
}

// TestIgnored: what moves nothing.
func TestIgnored(t *testing.T) {
	r := newRig(t, all, nil, nil)
	for _, m := range []struct {
		topic, payload string
		flags          byte
	}{
		{"heater/set", "ON", 1}, // kept
		{"heater/set", "ON", 8}, // again
		{"heater/set", "", 0}, {"heater/set", "on", 0}, {"heater/set", "1", 0}, {"heater/set", "ON ", 0}, {"vent/set", "NaN", 0}, {"vent/set", "0x10", 0}, {"vent/set", "1e999", 0}, {"vent/set", "101", 0}, {"vent/set", "ON", 0},
		{"pump/set", "ON", 0}, // not permitted
		{"nothing/set", "ON", 0}, {"temperature/set", "20", 0}, {"button/set", "ON", 0}, {"camera/set", "ON", 0},
		{"heater/capture", "", 0}, {"heater/set/set", "ON", 0}, {"set", "ON", 0},
	} {
		r.send(r.topic(m.topic), m.payload, m.flags)
	}
	r.send(strings.Replace(r.topic("heater/set"), "agentsite-test", "agentsite-other", 1), "ON", 0)
	r.said("vent", func(s map[string]any) bool { return s["refused"] != nil && s["value"] == 0.0 })
	r.send(r.topic("vent/set"), "10", 0) // the last one that is heard
	r.said("vent", func(s map[string]any) bool { return s["refused"] == nil && s["value"] == 10.0 })
	for _, l := range r.site.Journal.Lines() {
		if !strings.Contains(l, `"value":10`) {
			t.Errorf("asked for: %s", l)
		}
	}
}

// TestPermission: outside of the permission nothing is shown and moved. Who asks for what is shown is told why, once.
func TestPermission(t *testing.T) {
	r := newRig(t, "read greenhouse/heater+greenhouse/temperature", nil, nil)
	r.send(r.topic("heater/set"), "ON", 0)
	r.said("heater", func(s map[string]any) bool { return s["refused"] != nil && s["value"] == false })
	r.send(r.topic("lamp/set"), "ON", 0)
	c := r.components()
	if len(c) != 2 || c["greenhouse.heater"]["platform"] != binarySensor || c["greenhouse.temperature"]["platform"] != sensor {
		t.Errorf("%v", c)
	}
	r.do(func() {
		for _, p := range r.broker.said {
			if strings.Contains(p.Topic, "humidity") || strings.Contains(string(p.Payload), "vent") {
				t.Errorf("told: %s %s", p.Topic, p.Payload)
			}
		}
	})
	if r.site.Value("greenhouse/heater") != not {
		t.Error("moved")
	}
}

// TestDecisions: a command is decided as a call by any other protocol is: the node refuses it in the same words, and
// the journal has it under the bridge's name.
func TestDecisions(t *testing.T) {
	rest := func(p *guard.Policy) {
		if p.Output == "greenhouse/pump" {
			p.MinOff, p.Rest = time.Hour, time.Hour
		}
	}
	may := "read greenhouse, set greenhouse/heater+greenhouse/pump+greenhouse/vent max 5m, set greenhouse/lamp 1/h"
	r := newRig(t, may, rest, nil, "heater")
	token, _ := r.site.Token(t, "other", strings.Replace(may, "1/h", "2/h", 1))
	other, err := r.site.Node.Bearer(token, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		point string
		value device.Value
		says  string // the command
		want  bool   // whether it is done
	}{
		{"heater", on, "ON", false}, // an owner confirms each
		{"pump", on, "ON", false},   // it rests
		{"vent", device.Number(140), "140", false},
		{"vent", device.Number(40), "40", true},
		{"lamp", on, "ON", true},
		{"lamp", device.Value{}, "OFF", true},
		{"lamp", on, "ON", false}, // once an hour
	} {
		address := "greenhouse/" + tt.point
		r.send(r.topic(tt.point+"/set"), tt.says, 0)
		if tt.want {
			r.said(tt.point,
				func(s map[string]any) bool { return s["refused"] == nil && s["value"] != nil && (s["value"] != 0.0) })
			v := tt.value
			if v.IsZero() {
				v = not
			}
			r.is(tt.point, v)
			continue
		}
		r.said(tt.point, func(s map[string]any) bool { return s["refused"] != nil })
		if tt.point == "lamp" { // the other's rate is another
			continue
		}
		seconds := 60.0
		_, err := r.site.Node.Move(t.Context(), other,
			agents.MoveRequest{Output: address, Value: tt.value, For: &seconds, Terms: agents.Terms{NoApproval: true}})
		r.said(tt.point, func(s map[string]any) bool { return err != nil && s["refused"] == err.Error() })
	}
	if _, err := r.site.Node.Stop(t.Context(), owner(t, r), agents.SiteRequest{}); err != nil {
		t.Fatal(err)
	}
	r.is("vent", device.Number(0))
	r.send(r.topic("vent/set"), "40", 0)
	r.said("vent", func(s map[string]any) bool { return s["refused"] != nil && s["value"] == 0.0 })
	for _, l := range r.site.Journal.Lines() {
		if strings.Contains(l, `"pump"`) && strings.Contains(l, "done") {
			t.Errorf("done: %s", l)
		}
	}
}

// owner returns who may stop the site.
func owner(t *testing.T, r *rig) agents.Principal {
	p, err := r.site.Node.Bearer(adaptertest.SiteToken, true)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPicture: a camera takes a picture when it is asked to.
func TestPicture(t *testing.T) {
	r := newRig(t, all, nil, nil)
	r.send(r.topic("camera/capture"), "PRESS", 0)
	r.until("a picture", func() bool { p, _ := r.last(r.topic("camera/image")); return len(p) > 100 })
}

// TestAsk: an agent that the bridge may ask is a button for each of its skills; a press is a task.
func TestAsk(t *testing.T) {
	r := newRig(t, all+", ask "+tasktest.Helper.Name, nil, nil)
	skill := tasktest.Helper.Skills[0].ID
	c := r.components()["ask."+tasktest.Helper.Name+"."+skill]
	topic, _ := c["command_topic"].(string)
	if topic == "" {
		t.Fatalf("%v", r.components())
	}
	r.send(topic, "PRESS", 1)
	r.send(topic, "PRESS", 0)
	r.until("it is asked", func() bool { p, _ := r.last(strings.TrimSuffix(topic, "/press")); return p != "" })
	r.send(strings.Replace(topic, tasktest.Helper.Name, "nobody", 1), "PRESS", 0)
	r.end()
	if _, n := r.last(strings.TrimSuffix(topic, "/press")); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}

// TestOlder: a broker of the older version alone is spoken to in it.
func TestOlder(t *testing.T) {
	r := newRig(t, all, nil, func(a *Agent) {})
	r.do(func() { r.refuse[packet.V5] = 0x84 })
	r.kill()
	r.until("the older version",
		func() bool { var v byte; r.do(func() { v = r.broker.version }); return v == packet.V311 })
}

// TestFlood: a broker that sends too much is left, and outputs are safe.
func TestFlood(t *testing.T) {
	r := newRig(t, all, nil, func(a *Agent) { a.retry = time.Minute })
	r.send(r.topic("lamp/set"), "ON", 0)
	r.is("lamp", on)
	for i := range 10_000 {
		r.send(r.topic("heater/set"), []string{"ON", "OFF"}[i%2], 0)
	}
	r.is("lamp", not)
	r.is("heater", not)
	r.until("it waits", func() bool { return strings.Contains(r.Report(t.Context()).Says, "messages in a second") })
	if n := len(r.site.Journal.Lines()); n > 200 {
		t.Errorf("%d calls were made", n)
	}
}

// TestBirth: Home Assistant that comes is told everything.
func TestBirth(t *testing.T) {
	r := newRig(t, all, nil, nil)
	_, told := r.last(r.topic("heater"))
	_, described := r.last(r.discoveryTopic())
	r.send("homeassistant/status", online, 0)
	r.until("it is told again", func() bool { _, n := r.last(r.topic("heater")); return n > told })
	if _, n := r.last(r.discoveryTopic()); n <= described {
		t.Error("it was not described again")
	}
}

// discoveryTopic returns the topic of the site's description.
func (r *rig) discoveryTopic() string { return "homeassistant/device/agentsite-test/config" }

// components returns the components of the last description.
func (r *rig) components() map[string]map[string]any {
	r.broker.Helper()
	text, _ := r.last(r.discoveryTopic())
	var d struct {
		Components map[string]map[string]any `json:"components"`
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		r.Fatal(err)
	}
	return d.Components
}

// TestGone: what is not there any more is removed from Home Assistant, also what an earlier run left.
func TestGone(t *testing.T) {
	r := newRig(t, all, nil, nil)
	old := `{"components":{"old.thing":{"platform":"sensor","name":"x"},"greenhouse.heater":{"platform":"switch"},"bad key":{"platform":"sensor","a":1},"old.b":{"platform":7}}}`
	r.send(r.discoveryTopic(), old, 1)
	r.until("it is removed", func() bool {
		n := 0
		r.do(func() {
			for _, p := range r.broker.said {
				if p.Topic == r.discoveryTopic() && strings.Contains(string(p.Payload), `"old.thing":{"platform":"sensor"}`) {
					n++
				}
			}
		})
		return n > 0
	})
	r.until("it is left out",
		func() bool { c := r.components(); return c["old.thing"] == nil && c["greenhouse.heater"] != nil })
	r.do(func() {
		for _, p := range r.broker.said {
			if strings.Contains(string(p.Payload), "bad key") || strings.Contains(string(p.Payload), "old.b") {
				t.Errorf("told: %s", p.Payload)
			}
		}
	})
}

// TestRemoved: a bridge that its owner removed leaves nothing at the broker, and does not close before the broker has
// read its goodbye: otherwise the broker publishes its will.
func TestRemoved(t *testing.T) {
	r := newRig(t, all, nil, nil)
	r.send(r.topic("heater/set"), "ON", 0)
	r.is("heater", on)
	r.cancel(agent.ErrRemoved)
	r.end()
	r.is("heater", not)
	r.until("nothing is kept", func() bool { n := 0; r.do(func() { n = len(r.kept) }); return n == 0 })
	r.do(func() {
		if !r.clean || r.early {
			t.Errorf("goodbye %t, closed before the broker did %t", r.clean, r.early)
		}
	})
}

// TestOff: a site without discovery takes itself out of Home Assistant.
func TestOff(t *testing.T) {
	r := newRig(t, all, nil, func(a *Agent) { a.Discovery = off })
	r.until("it is removed", func() bool { _, n := r.last(r.discoveryTopic()); return n > 0 })
	if p, _ := r.last(r.discoveryTopic()); p != "" {
		t.Errorf("%s", p)
	}
	r.do(func() {
		if len(r.kept) > 0 {
			t.Errorf("kept: %v", r.kept)
		}
	})
}
