package llm

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/llm/chat"
	"agentsite/agents/llm/chat/chattest"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
)

// lamps is fakeSite with a switch.
type lamps struct{ *fakeSite }

func (lamps) Offer(context.Context, agents.Principal) (*agents.Offer, error) {
	return &agents.Offer{Switch: []string{"house/lamp"}}, nil
}

// TestQuirks: with each server a task gets past its first call, with its arguments.
func TestQuirks(t *testing.T) {
	for _, q := range chattest.Quirks {
		t.Run(string(q), func(t *testing.T) {
			s := chattest.New(t, q, func(body []byte) chat.Answer {
				if strings.Contains(string(body), `"role":"tool"`) {
					return chat.Answer{Text: "The lamp is on."}
				}
				return called("switch_output", `{"output":"house/lamp","on":true,"for_seconds":20}`)
			})
			e := &chat.Endpoint{URL: s.Endpoint()}
			defer e.CloseIdle()
			site := &fakeSite{}
			got, err := work(t, talker(t, e), lamps{site})
			if err != nil || got.Text != "The lamp is on." || strings.Join(site.done, " ") != "house/lamp on" {
				t.Errorf("%+v %v %q", got, err, site.done)
			}
		})
	}
}

// TestTypes: numbers and booleans in texts are taken as their tool's schema says, and nothing else is.
func TestTypes(t *testing.T) {
	for args, want := range map[string]string{
		`{"output":"house/lamp","on":"true","for_seconds":"20"}`:    "house/lamp on",
		`{"output":"house/lamp","on":"False"}`:                      "house/lamp off",
		`{"output":"house/lamp","on":true,"for_seconds":null}`:      "house/lamp on",
		`{"output":"house/lamp","on":"yes"}`:                        "",
		`{"output":"house/lamp","on":1}`:                            "",
		`{"output":"house/lamp","on":null}`:                         "",
		`{"output":"house/lamp","on":true,"for_seconds":"a while"}`: "",
		`{"output":"house/lamp","on":true,"for_seconds":"20 30"}`:   "",
		`{"output":"house/lamp","on":"true","on":"false"}`:          "",
		`{"output":"house/lamp","on":"true","other":null}`:          "",
	} {
		var told string
		site := &fakeSite{}
		a := talker(t, completer(func(r chat.Request) (chat.Answer, error) {
			last := r.Messages[len(r.Messages)-1]
			if last.Role == chat.Tool {
				told = last.Text
				if made := r.Messages[len(r.Messages)-2].Calls[0]; string(made.Arguments) != args {
					t.Errorf("it is told that it called with %s", made.Arguments)
				}
				return chat.Answer{Text: "done"}, nil
			}
			return called("switch_output", args), nil
		}))
		a.world.Decode = func(text jsontext.Value, into any) error {
			if (arguments{new(World), text}).Decode(into) != nil {
				return device.Faultf(device.Invalid, "as others are told")
			}
			return nil
		}
		if _, err := work(t, a, lamps{site}); err != nil || strings.Join(site.done, " ") != want || want == "" && strings.Contains(told, "unmarshal") {
			t.Errorf("%s: %q, %v, told %s", args, site.done, err, told)
		}
	}
	list := &tools.Tool{Input: []byte(`{"properties":{"points":{"type":"array"},"n":{"type":"integer"},"o":{"type":"object"},"s":{"type":"string"}}}`)}
	if got := coerce(jsontext.Value(`{"points":"[\"a\"]","n":"3","o":"{\"a\":1}","s":"4"}`), list); string(got) != `{"n":3,"o":{"a":1},"points":["a"],"s":"4"}` {
		t.Errorf("%s", got)
	}
}

// TestNoAnswer: a task whose model has no words for it fails, also after all its turns.
func TestNoAnswer(t *testing.T) {
	a := talker(t, completer(func(chat.Request) (chat.Answer, error) {
		return called("capture_image", `{"camera":"yard/image"}`), nil
	}))
	a.Limits.Tokens = 1e9
	if got, err := work(t, a, camera{&fakeSite{}}); err == nil || device.AsFault(err).Kind != device.Unavailable {
		t.Errorf("%+v %v", got, err)
	}
}

// TestSilence: how long a server may be silent is configured, and more than a minute when it is not.
func TestSilence(t *testing.T) {
	for _, tt := range []struct {
		first, between time.Duration
		ok             bool
	}{{0, 0, true}, {time.Hour, time.Second, true}, {2 * time.Hour, 0, false}, {0, time.Millisecond, false}, {-1, 0, false}} {
		a := talker(t, nil)
		a.world.Open = nil
		a.Model.FirstToken, a.Model.BetweenTokens = tt.first, tt.between
		_, err := a.Define()
		if _, is := err.(*agent.Mistake); is == tt.ok {
			t.Errorf("%+v: %v", tt, err)
		}
		if e, is := a.model.(*chat.Endpoint); tt.ok && (!is || e.First != tt.first || e.Between != tt.between) {
			t.Errorf("%+v: %+v", tt, a.model)
		}
	}
	if chat.DefaultFirst < 2*time.Minute || chat.DefaultBetween < time.Minute {
		t.Error("too short for a CPU")
	}
}

// TestExtraFits: what servers sent beside earlier calls is left out before results are, and that of
// the last turn stays.
func TestExtraFits(t *testing.T) {
	var last chat.Request
	turn := 0
	thought := chat.Extra{"reasoning_content": jsontext.Value(chat.Quote(strings.Repeat("x", 3000)))}
	a := talker(t, completer(func(r chat.Request) (chat.Answer, error) {
		last = r
		if turn++; turn > 6 {
			return chat.Answer{Text: "done"}, nil
		}
		c := called("capture_image", `{"camera":"yard/image"}`)
		c.Extra = thought
		return c, nil
	}))
	a.Limits.Tokens, a.Model.Context = 1e9, 5000
	if _, err := work(t, a, camera{&fakeSite{}}); err != nil {
		t.Fatal(err)
	}
	var with []int
	for i := range last.Messages {
		m := &last.Messages[i]
		if m.Extra != nil {
			with = append(with, len(last.Messages)-i)
		}
		if strings.Contains(m.Text, "left out") {
			t.Error("a result was left out")
		}
	}
	if len(with) == 0 || len(with) == 6 || with[len(with)-1] != 2 {
		t.Errorf("%d", with)
	}
}
