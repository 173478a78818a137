package hosting

import (
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents/llm/chat"
	"agentsite/agents/task"
	"agentsite/transport/rpc"
)

const farGPT = `  b: { kind: remote, peer: "KEY_b", may: "read *, set lamp max 1m" }
  gpt: { kind: llm, model: { url: "http://127.0.0.1:1/v1", name: test }, may: "read climate+b, set b/lamp max 1m" }
`

// TestModelElsewhere: a model reads and moves points of another site, within its site's permission
// there and its own. Each move is in the receipt and in both journals. For an asker who may not
// move them an owner of its site has to approve, and without a link nothing is claimed.
func TestModelElsewhere(t *testing.T) {
	over(t, []string{"a", "b"}, func(v *village) {
		a, b, m := v.sites["a"], v.sites["b"], &scripted{}
		a.model = m
		v.grant("a", "b", "read *, set *")
		if err := v.configure("a", farGPT); err != nil {
			v.Fatal(err)
		}
		v.sleep(time.Minute)
		lamp := func() chat.Answer {
			return calls("switch_output", `{"output":"b/lamp/relay","on":true,"for_seconds":30}`)
		}
		m.answers = []chat.Answer{calls("read_points", `{"points":["b/climate/temperature"]}`), lamp(), calls("switch_output", `{"output":"b/heater/relay","on":true}`), {Text: "done"}}
		got := answerOf(v.T, v.say("a", here, "c", "is it dark there?"))
		if len(got.Receipt) != 2 || got.Receipt[0].Outcome != "done" || got.Receipt[1].Outcome != "denied" || got.Foreign != "" {
			v.Errorf("%+v", got)
		}
		if said := m.asked[1].Messages[3].Text; !strings.Contains(said, `"point":"b/climate/temperature"`) || !strings.Contains(said, `"quality":"good"`) {
			v.Errorf("it reads %s", said)
		}
		if !b.on("lamp/relay") || b.on("heater/relay") {
			v.Error("the lamp there is not on, or the heater is")
		}
		its, own := b.book.moves(), a.book.moves()
		if len(its) != 1 || its[0].Who != a.key.Derive("llm:gpt").ID().String() {
			v.Errorf("there: %+v", its)
		}
		if len(own) != 1 || own[0].Who != "llm:gpt" || !slices.Contains(own[0].Via, here.ID) {
			v.Errorf("here: %+v", own)
		}
		v.sleep(time.Minute)
		if b.on("lamp/relay") {
			v.Error("the lease there did not end")
		}

		visitor := v.visitor("a", "ask gpt")
		m.answers = []chat.Answer{lamp(), {Text: "It is on."}}
		waits := v.say("a", visitor, "v", "lamp on")
		if waits.State != task.AuthRequired || b.on("lamp/relay") {
			v.Errorf("%+v", waits)
		}
		if _, err := a.tasks.Cancel(v.ctx, visitor, waits.ID); err != nil {
			v.Fatal(err)
		}

		b.hang(true)
		m.answers = []chat.Answer{lamp(), {Text: "It is on."}}
		got = answerOf(v.T, v.say("a", here, "d", "lamp on"))
		if len(got.Receipt) != 1 || got.Receipt[0].Outcome == "done" || len(b.book.moves()) != 1 {
			v.Errorf("without a link: %+v", got)
		}
	})
}

// TestModelUngranted: a site's model makes no call there without the site's permission.
func TestModelUngranted(t *testing.T) {
	in(t, rpc.JSON, []string{"a", "b"}, func(v *village) {
		a, b, m := v.sites["a"], v.sites["b"], &scripted{}
		a.model = m
		v.grant("a", "b", "read climate")
		if err := v.configure("a", farGPT); err != nil {
			v.Fatal(err)
		}
		v.sleep(time.Minute)
		m.answers = []chat.Answer{calls("switch_output", `{"output":"b/lamp/relay","on":true}`), {Text: "It is on."}}
		if got := answerOf(v.T, v.say("a", here, "c", "lamp on")); slices.ContainsFunc(got.Receipt, func(l task.Step) bool { return l.Outcome == "done" }) || len(b.book.moves()) != 0 || b.on("lamp/relay") {
			v.Errorf("%+v", got)
		}
	})
}
