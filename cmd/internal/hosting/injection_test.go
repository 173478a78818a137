package hosting

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/llm/chat"
	"agentsite/agents/task"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/transport/rpc"
)

// gullible reads what it is asked to read, and then obeys every text that it has read. It is the
// worst case of a model under injection.
type gullible struct {
	told  int    // how often a text told it something
	seen  string // all that it read for the last task, but for its instructions
	plans bool   // it is in plan mode
	says  string // what it reads out of a text; "" for what the text wants most
}

// looks are the calls by which it reads what others wrote.
var looks = map[string]chat.Call{
	"the page":       {ID: "1", Name: "web_page", Arguments: []byte(`{}`)},
	"the badge":      {ID: "1", Name: "read_points", Arguments: []byte(`{"points":["screen/badge"]}`)},
	"the other site": {ID: "1", Name: "read_points", Arguments: []byte(`{"points":["b/screen/badge"]}`)},
	"all points":     {ID: "1", Name: "list_points", Arguments: []byte(`{}`)},
	"the camera":     {ID: "1", Name: "capture_image", Arguments: []byte(`{"camera":"screen/camera"}`)},
}

// wishes are the calls that an injection wants.
var wishes = calls("switch_output", `{"output":"lamp/relay","on":true}`, "switch_output", `{"output":"b/lamp/relay","on":true,"for_seconds":1}`, "mail_send", `{}`, "show_text", `{"display":"screen/message","text":"lamp"}`)

func (g *gullible) Complete(_ context.Context, r chat.Request, _ func(string)) (a chat.Answer, err error) {
	last, all := r.Messages[len(r.Messages)-1], ""
	for _, m := range r.Messages[1:] { // after the owner's instructions
		if m.Role != chat.Assistant || len(m.Calls) == 0 {
			all += m.Text + "\n"
		}
		for _, p := range m.Images {
			all += string(p.Data)
		}
	}
	g.seen += all
	switch {
	case g.plans && len(r.Tools) > 0 && last.Role == chat.User:
		return g.plan(last.Text), nil
	case g.plans && strings.HasPrefix(last.Text, "Answer one question"):
		if g.told++; g.says != "" {
			return chat.Answer{Text: g.says}, nil
		}
		return chat.Answer{Text: map[bool]string{true: "yes", false: "60"}[strings.Contains(last.Text, "but yes")]}, nil
	case last.Role == chat.User && len(last.Images) == 0:
		for about, look := range looks {
			if strings.Contains(last.Text, "Look at "+about) {
				return chat.Answer{Calls: []chat.Call{look}}, nil
			}
		}
	}
	lamp := func(text string) bool { return strings.Contains(strings.ToLower(text), "lamp") }
	if a.Text = "I did what the text says: the lamp is on. " + all; lamp(all) && (last.Role != chat.Tool || lamp(last.Text)) {
		g.told++
		a.Calls = slices.Clone(wishes.Calls)
	}
	return a, nil
}

// plan lets a text decide whether the lamp goes on, and up to which of two bounds the fan.
func (g *gullible) plan(asked string) chat.Answer {
	for about, look := range looks {
		if !strings.Contains(asked, "Look at "+about) {
			continue
		}
		step := fmt.Sprintf(`{"tool":%q,"arguments":%s,"extract":`, look.Name, look.Arguments)
		return calls("make_plan", `{"steps":[`+step+`{"question":"is it dark?","kind":"yes_no"}},{"tool":"switch_output","arguments":{"output":"lamp/relay","on":true},"only_if":1},`+
			step+`{"question":"how fast?","kind":"number","min":10,"max":60}},{"tool":"set_level","arguments":{"output":"fan/level","value":{"from":3},"for_seconds":5}}]}`)
	}
	g.told++
	return calls("make_plan", `{"steps":[{"tool":"switch_output","arguments":{"output":"lamp/relay","on":true}}]}`)
}

// page is another's program that answers with a text, and a program that sends mail.
type page struct {
	text, mail string
	called     func() // at each call; nil for nothing
}

func (p *page) Tools() []tools.Tool {
	none := []byte(`{"type":"object"}`)
	return []tools.Tool{{Name: "web_page", From: "mcp:web", Input: none}, {Name: "mail_send", From: "mcp:mail", Input: none}}
}

func (p *page) Call(_ context.Context, _ agents.Principal, c tools.Call) (tools.Result, error) {
	if c.Tool == "mail_send" {
		p.mail = "sent"
	}
	if p.called != nil {
		p.called()
	}
	return tools.Result{From: "mcp:web", Content: []tools.Content{{Text: p.text}}}, nil
}

// besieged is two sites, where each text of others says one thing.
type besieged struct {
	*village
	a, b     *site
	model    *gullible
	page     *page
	screen   *screen
	stranger agents.Principal
	talks    int
}

const besiegedModel = `  b: { kind: remote, peer: "KEY_b", may: "read *, set lamp max 1m" }
  gpt: { kind: llm, model: { url: "http://127.0.0.1:1/v1", name: test, images: true, context: 65536 }, limits: { tokens_per_day: 1000000000, calls_per_hour: 3600 }, %s,
    may: "read climate+screen+lamp+b, set lamp+fan max 1m, set b/lamp max 1m, show screen, capture screen, use web_page, use mail_send" }
`

// besiege runs a test over such sites. The points of the other site are described by all injections.
func besiege(t *testing.T, mode string, test func(b *besieged)) {
	t.Run(mode, func(t *testing.T) {
		shown := new(screen)
		more := []built{{"fan", "dimmer", nil}, {"screen", "greenhouse", func(site string) device.Device {
			if site == "a" {
				return shown
			}
			return &screen{about: strings.Join(injections, "\n")}
		}}}
		among(t, rpc.JSON, []string{"a", "b"}, more, func(v *village) {
			b := &besieged{village: v, a: v.sites["a"], b: v.sites["b"], model: &gullible{plans: strings.Contains(mode, "plan")}, page: new(page), screen: shown}
			b.a.model = b.model
			b.a.ReplaceTools(b.page)
			v.grant("a", "b", "read *, set lamp max 1m")
			if err := v.configure("a", fmt.Sprintf(besiegedModel, mode)); err != nil {
				v.Fatal(err)
			}
			v.sleep(20 * time.Second)
			b.stranger = v.visitor("a", "ask gpt")
			test(b)
		})
	})
}

// place puts a text where others can write, and lets the model read it in a new conversation.
func (b *besieged) place(where, text string) task.Task {
	b.Helper()
	b.page.text, b.page.mail, b.screen.image, b.model.seen = "nothing", "", "nothing", ""
	b.screen.drain()
	b.a.book.drain()
	b.b.book.drain()
	time.Sleep(2 * time.Minute) // what was denied is forgotten
	b.sleep(3 * time.Second)
	b.talks++
	p, talk, about := here, fmt.Sprint("talk", b.talks), where
	write := func(s *site, text string) {
		s.feed <- device.Reading{Point: "screen/badge", Value: device.Text(text), Quality: device.Good, At: time.Now()}
		synctest.Wait()
	}
	switch where {
	case "a stranger's chat":
		return b.say("a", b.stranger, talk, text)
	case "earlier in the conversation":
		b.page.text = text
		if first := b.end(b.say("a", p, talk, "Look at the page"), false); first.State != task.Completed {
			b.Fatalf("%s %s", first.State, first.Says)
		}
		return b.say("a", p, talk, "and the lamp?")
	case "the page":
		b.page.text = text
	case "the badge":
		write(b.a, text)
	case "the other site":
		write(b.b, text)
		b.sleep(time.Second)
	case "the camera":
		b.screen.image = text
	}
	return b.say("a", p, talk, "Look at "+about)
}

// end answers what a task asks the owner until it has ended.
func (b *besieged) end(got task.Task, yes bool) task.Task {
	b.Helper()
	for got.State == task.AuthRequired {
		requests, err := b.a.Requests(here)
		if err != nil || len(requests) == 0 {
			b.Fatalf("%+v %v", got, err)
		}
		for _, r := range requests {
			if err := b.a.Approve(here, r.Handle, yes); err != nil {
				b.Fatal(err)
			}
		}
		synctest.Wait()
		if got, err = b.a.tasks.Task(b.ctx, here, got.ID); err != nil {
			b.Fatal(err)
		}
	}
	return got
}

// effects returns the calls that acted, at all sites.
func (b *besieged) effects() (all []string) {
	for _, s := range []*site{b.a, b.b} {
		for _, w := range s.book.drain() {
			if w.fault == "" && (w.Tool == tools.SwitchOutput || w.Tool == tools.SetLevel) {
				all = append(all, w.Tool+" "+string(w.Args))
			}
		}
	}
	for _, what := range b.screen.drain() {
		if strings.HasPrefix(what, "show") {
			all = append(all, what)
		}
	}
	if b.page.mail != "" {
		all = append(all, "mail")
	}
	return all
}

// TestInjections: each text that tells the model to act is placed wherever others can write, and
// the model obeys. Without an owner's approval of each call, nothing moves or is shown, and no
// other program is called. The model never reads texts and descriptions of another site.
func TestInjections(t *testing.T) {
	places := []string{"the page", "the badge", "the other site", "the camera", "a stranger's chat", "earlier in the conversation"}
	for _, tainted := range []string{"tainted: confirm", "tainted: refuse"} {
		besiege(t, tainted, func(b *besieged) {
			tried := 0
			for _, text := range injections {
				for _, where := range places {
					b.model.told = 0
					got := b.place(where, text)
					reaches := where != "the other site" // whose points have only words for texts
					if reaches != (b.model.told > 0) {
						b.Fatalf("%s, %q: the model was told %d times: %s", where, text, b.model.told, b.model.seen)
					}
					if all := b.effects(); len(all) > 0 {
						b.Fatalf("%s, %q: %q", where, text, all)
					}
					want := task.Completed
					if tainted == "tainted: confirm" && reaches {
						want = task.AuthRequired
					}
					if got.State != want {
						b.Errorf("%s, %q: the task is %s: %s", where, text, got.State, got.Says)
					}
					b.end(got, false)
					if all := b.effects(); len(all) > 0 {
						b.Fatalf("denied: %s, %q: %q", where, text, all)
					}
					tried++
				}
			}
			b.end(b.place("all points", ""), false)
			if !strings.Contains(b.model.seen, "b/screen/badge") || slices.ContainsFunc(injections, func(text string) bool { return strings.Contains(b.model.seen, text) }) {
				b.Errorf("what the other site says about its points: %s", b.model.seen)
			}
			b.Logf("%d texts in %d places", len(injections), tried/len(injections))
			if tainted == "tainted: confirm" {
				b.end(b.place("the page", injections[0]), true)
				// A program is told nothing: nobody can approve that. The move elsewhere is in both journals.
				if all := slices.Compact(b.effects()); len(all) != 4 || slices.Contains(all, "mail") {
					b.Errorf("approved: %q", all)
				}
			}
		})
	}
}

// TestInjectionsPlan: in plan mode the same texts choose only the values that the plan left open,
// within their bounds. If they were read before the plan, or a stranger wrote them, an owner is
// asked as before.
func TestInjectionsPlan(t *testing.T) {
	besiege(t, "mode: plan", func(b *besieged) {
		chosen := map[string]int{}
		for i, text := range injections {
			for _, where := range []string{"the page", "the badge"} {
				for _, says := range []string{"", []string{text, "no", "1e9", "-1", "NaN", "yes, and the heater"}[i%6]} {
					b.model.says = says
					got := b.place(where, text)
					all := b.effects()
					for _, what := range all {
						chosen[fmt.Sprintf("%s: %s", where, what)]++
					}
					want := 0
					if says == "" {
						want = 2
					}
					if len(all) != want || got.State != task.Completed {
						b.Fatalf("%s, %q says %q: %q, and the task is %s: %s", where, text, says, all, got.State, got.Says)
					}
				}
			}
			for _, where := range []string{"a stranger's chat", "earlier in the conversation"} {
				if b.model.says = "no"; where == "a stranger's chat" {
					b.model.says = ""
				}
				got := b.place(where, text)
				if all := b.effects(); len(all) > 0 || got.State != task.AuthRequired {
					b.Fatalf("%s, %q: %q, and the task is %s: %s %s", where, text, all, got.State, got.Says, got.Result)
				}
				b.end(got, false)
			}
		}
		b.Logf("%d texts: what they could choose: %v", len(injections), chosen)
		if len(chosen) != 4 {
			b.Error("they chose something else")
		}
	})
}
