package hosting

import (
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/llm/chat"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/transport/rpc"
)

// TestRuleOverModel: a rule takes an output over from a model, which cannot take it from the rule, and an
// owner takes it from both. Nobody's return to safe is refused: after a model's the rule yields for ten
// minutes.
func TestRuleOverModel(t *testing.T) {
	in(t, rpc.JSON, []string{"a"}, func(v *village) {
		s, m := v.sites["a"], &scripted{}
		s.model = m
		if err := v.configure("a", `  frost: { kind: rule, may: set lamp max 5m, when: climate/temperature < 2 Cel, hold: { lamp/relay: on } }
  gpt: { kind: llm, model: { url: "http://127.0.0.1:1/v1", name: test }, may: "read climate, set lamp max 5m" }
`); err != nil {
			v.Fatal(err)
		}
		v.sleep(20 * time.Second) // the outputs rest after a start
		by := func(holder string, on bool) {
			v.Helper()
			for _, o := range s.guard.Status() {
				if o.Output == "lamp/relay" && (o.Holder != holder || o.Value != device.Bool(on)) {
					v.Errorf("%q has it at %v; want %q at %v", o.Holder, o.Value, holder, on)
				}
			}
		}
		ask := func(tool, arguments string) task.Step {
			v.Helper()
			m.answers = []chat.Answer{calls(tool, arguments), {Text: "done"}}
			a := answerOf(v.T, v.say("a", here, "c", "the lamp"))
			if len(a.Receipt) != 1 {
				v.Fatalf("%+v", a)
			}
			return a.Receipt[0]
		}
		refused := func(holder string) {
			v.Helper()
			if got := ask("switch_output", `{"output":"lamp/relay","on":true}`); got.Outcome != "busy" {
				v.Errorf("%+v", got)
			}
			by(holder, true)
		}
		takes := func() {
			v.Helper()
			if _, err := s.Move(v.ctx, here, agents.MoveRequest{Output: "lamp/relay", Value: device.Bool(true)}); err != nil {
				v.Fatal(err)
			}
			by(here.ID, true)
			refused(here.ID)
		}
		lights := func() {
			v.Helper()
			if got := ask("switch_output", `{"output":"lamp/relay","on":true,"for_seconds":200}`); got.Outcome != "done" {
				v.Errorf("%+v", got)
			}
			by("llm:gpt", true)
		}
		lights()
		takes()
		if _, err := s.Move(v.ctx, here, agents.MoveRequest{Output: "lamp/relay"}); err != nil {
			v.Fatal(err)
		}
		v.sleep(time.Minute)
		by("", false)

		lights()
		s.warm(1)
		by("rule:frost", true)
		refused("rule:frost")

		if got := ask("release_output", `{"output":"lamp/relay"}`); got.Outcome != "done" {
			v.Errorf("%+v", got)
		}
		by("", false)
		yields := func() { // as long as a model's word counts, while it is cold
			v.Helper()
			for range 59 {
				time.Sleep(10 * time.Second)
				s.warm(1)
				if got := s.report(v.ctx, "frost"); got.State != agent.Yielding {
					v.Errorf("the rule %s: %s", got.State, got.Says)
				}
			}
			by("", false)
		}
		yields()
		time.Sleep(20 * time.Second)
		s.warm(1)
		by("rule:frost", true)

		takes()
		yields()
		time.Sleep(20 * time.Second)
		s.warm(1)
		by("", false) // an owner's counts until the condition was false once
	})
}
