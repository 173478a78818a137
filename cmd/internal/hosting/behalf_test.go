package hosting

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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
	"agentsite/device/guard"
	"agentsite/node/access"
	"agentsite/transport/a2a"
	"agentsite/transport/adapter"
	"agentsite/transport/openapi"
	"agentsite/transport/rpc"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

// bounded is a site with a model, which somebody asks by one way.
type bounded struct {
	*village
	*site
	page   *page
	screen *screen
	model  *scripted
	http   http.Handler
	way    string
	names  int
}

// asker is a principal that asks, with a token for what comes over HTTP.
type asker struct {
	agents.Principal
	token string
}

// ways are the ways by which a model is asked. Each returns after the task has ended, or waits.
var ways = map[string]func(*bounded, asker) error{
	"chat":      (*bounded).askDirectly,
	"a rule":    (*bounded).askDirectly,
	"a routine": (*bounded).askDirectly,
	"MCP": func(b *bounded, a asker) error {
		c := tools.New(b.site.Node, b.site.Node)
		c.Tasks = b.tasks
		args := mapArgs(`{"agent":"gpt","text":"do it","wait_seconds":0}`)
		_, err := c.Call(b.ctx, a.Principal, tools.Call{Tool: tools.AskAgent, Args: &args, Note: func(tools.Note) {}})
		return err
	},
	"REST": func(b *bounded, a asker) error { return b.post(a, "/api/agents/gpt/tasks", `{"text":"do it"}`) },
	"A2A": func(b *bounded, a asker) error {
		b.names++ // each message is another
		return b.post(a, "/a2a/agents/gpt", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"`+fmt.Sprint(b.names)+`","role":"ROLE_USER","parts":[{"text":"do it"}]},"configuration":{"returnImmediately":true}}}`)
	},
}

type mapArgs string

func (a *mapArgs) Decode(into any) error { return json.Unmarshal([]byte(*a), into) }

func (b *bounded) askDirectly(a asker) error {
	_, err := b.tasks.Ask(b.ctx, a.Principal, task.Request{Agent: "gpt", Text: "do it"})
	return err
}

func (b *bounded) post(a asker, path, body string) error {
	r := httptest.NewRequestWithContext(b.ctx, "POST", "http://127.0.0.1:1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("A2A-Version", "1.0")
	w := httptest.NewRecorder()
	b.http.ServeHTTP(w, r)
	if w.Code >= 300 || strings.Contains(w.Body.String(), `"error"`) {
		return fmt.Errorf("%d %s", w.Code, w.Body)
	}
	return nil
}

// askerWith returns somebody with a permission: a token, or an agent of the site where one asks.
func (b *bounded) askerWith(may string) (a asker, end func()) {
	b.Helper()
	words, err := access.ParsePermissions(may)
	if err != nil {
		b.Fatal(err)
	}
	g, err := access.Issue(b.owner, access.Block{Audience: b.key.ID(), Node: b.key.ID(), Permissions: words})
	if err != nil {
		b.Fatal(err)
	}
	b.names++
	name := fmt.Sprint("t", b.names)
	token, err := b.access.AddToken(name, g.Bytes(), time.Time{})
	if err != nil {
		b.Fatal(err)
	}
	who, err := b.access.Bearer(token)
	if err != nil {
		b.Fatal(err)
	}
	return asker{who, token}, func() {
		if err := b.access.Revoke(access.Revocation{Token: name}); err != nil {
			b.Fatal(err)
		}
	}
}

const boundedModel = `  b: { kind: remote, peer: "KEY_b", may: "read *, set *" }
  gpt: { kind: llm, model: { url: "http://127.0.0.1:1/v1", name: test, images: true, context: 65536 }, limits: { tokens_per_day: 1000000000, calls_per_hour: 3600 },
    may: "read *, use web_page, %s" }
  routine: { kind: routine, may: "ask gpt, use web_page, %[2]s", steps: [ { wait: 1s } ] }
  rule: { kind: rule, may: "ask gpt, use web_page, %[2]s", when: climate/temperature < -90 Cel, hold: { fan/level: 1 } }
`

// deeds are what a model is made to do, with the permission for it, as an agent has it and an asker.
var deeds = map[string]struct {
	call  chat.Answer
	agent string
	asker string // "" for what no asker but an owner may
	done  func(*bounded) bool
}{
	"move":         {calls("switch_output", `{"output":"lamp/relay","on":true,"for_seconds":30}`), "set lamp max 1m", "set lamp max 1m", func(b *bounded) bool { return b.on("lamp/relay") }},
	"release":      {calls("release_output", `{"output":"heater/relay"}`), "set heater", "set heater", func(b *bounded) bool { return !b.on("heater/relay") }},
	"safe value":   {calls("switch_output", `{"output":"heater/relay","on":false}`), "set heater", "set heater", func(b *bounded) bool { return !b.on("heater/relay") }},
	"stop":         {calls("emergency_stop", `{}`), "stop", "stop", func(b *bounded) bool { return b.guard.Stopped() }},
	"show":         {calls("show_text", `{"display":"screen/message","text":"x"}`), "show screen", "show screen", func(b *bounded) bool { return len(b.screen.drain()) > 0 }},
	"capture":      {calls("capture_image", `{"camera":"screen/camera"}`), "capture screen", "capture screen", func(b *bounded) bool { return len(b.screen.drain()) > 0 }},
	"program":      {calls("mail_send", `{}`), "use mail_send", "use mail_send", func(b *bounded) bool { return b.page.mail != "" }},
	"another site": {calls("switch_output", `{"output":"b/lamp/relay","on":true,"for_seconds":30}`), "set b/lamp", "", func(b *bounded) bool { return b.village.sites["b"].on("lamp/relay") }},
}

// fresh makes the site as it is before each deed: the heater is held by an owner, all else is safe.
func (b *bounded) fresh() {
	b.Helper()
	if b.guard.Stopped() {
		_, _, stops := b.guard.State()
		if err := b.guard.Reset(stops); err != nil {
			b.Fatal(err)
		}
	}
	for _, output := range []string{"lamp/relay", "heater/relay"} {
		b.site.Move(b.ctx, here, agents.MoveRequest{Output: output})
	}
	b.village.sites["b"].Move(b.ctx, here, agents.MoveRequest{Output: "lamp/relay"})
	b.screen.drain()
	b.page.mail = ""
	time.Sleep(12 * time.Second)
	if _, err := b.site.Move(b.ctx, here, agents.MoveRequest{Output: "heater/relay", Value: device.Bool(true)}); err != nil {
		b.Fatal(err)
	}
}

// does asks the model to make calls, and returns whether an owner is asked first. The owner says no.
func (b *bounded) does(a asker, answers ...chat.Answer) (asks bool) {
	b.Helper()
	b.model.answers = answers
	if err := ways[b.way](b, a); err != nil {
		b.Fatal(err)
	}
	synctest.Wait()
	for range 3 { // at most two calls need an owner
		all, err := b.Requests(here)
		if err != nil {
			b.Fatal(err)
		}
		if len(all) == 0 {
			break
		}
		asks = true
		if err := b.Approve(here, all[0].Handle, false); err != nil {
			b.Fatal(err)
		}
		synctest.Wait()
	}
	if list, err := b.tasks.List(b.ctx, here); err != nil || !list[0].State.Ended() {
		b.Fatalf("%+v %v", list[0], err)
	}
	return asks
}

// bound runs a test over such a site for each way.
func bound(t *testing.T, test func(b *bounded)) {
	for way := range ways {
		t.Run(way, func(t *testing.T) {
			shown := new(screen)
			more := []built{{"fan", "dimmer", nil}, {"screen", "greenhouse", func(site string) device.Device {
				if site == "a" {
					return shown
				}
				return new(screen)
			}}}
			among(t, rpc.JSON, []string{"a", "b"}, more, func(v *village) {
				s := v.sites["a"]
				b := &bounded{village: v, site: s, page: &page{text: "words of others"}, screen: shown, model: new(scripted), way: way}
				s.model = b.model
				s.ReplaceTools(b.page)
				v.grant("a", "b", "read *, set *")
				at := &adapter.Site{Node: s.Node, Tasks: s.tasks, Tools: tools.New(s.Node, s.Node), Key: s.key, Name: "a", Now: s.access.Now, Ending: v.ctx, Go: func(f func()) { go f() }}
				b.http = web.Handler(web.Options{
					Hosts: []string{"127.0.0.1:1"}, Routes: slices.Concat(openapi.Routes(at), a2a.Routes(at)),
					Callers: s.Node,
				})
				test(b)
			})
		})
	}
}

// TestNobodyGetsMore: whatever a model does for an asker, by whichever way, it does as far as both
// may, or an owner is asked; and after the words of others an owner is asked about each effect.
func TestNobodyGetsMore(t *testing.T) {
	bound(t, func(b *bounded) {
		for name, d := range deeds {
			for _, agentMay := range []bool{true, false} {
				for _, askerMay := range []string{"", "may", "confirm", "owner"} {
					if askerMay == "owner" && b.way != "chat" || askerMay == "confirm" && (d.asker == "" || d.asker == "use mail_send") || askerMay == "may" && d.asker == "" {
						continue
					}
					for _, tainted := range []bool{false, true} {
						what := fmt.Sprintf("%s, agent may %t, asker %q, tainted %t", name, agentMay, askerMay, tainted)
						may, most := "use nothing", "use nothing"
						if agentMay {
							most = d.agent
						}
						if askerMay == "may" || askerMay == "confirm" {
							may = strings.TrimSuffix(d.asker+" "+askerMay, " may")
						}
						if err := b.configure("a", fmt.Sprintf(boundedModel, most, may)); err != nil {
							b.Fatal(err)
						}
						b.sleep(20 * time.Second)
						b.fresh()
						a, end := b.askerWith("ask gpt, use web_page, " + may)
						switch {
						case askerMay == "owner":
							a.Principal = here
						case strings.HasPrefix(b.way, "a "):
							kind := strings.TrimPrefix(b.way, "a ")
							a.Principal = agents.Principal{ID: kind + ":" + kind}
						}
						answers := []chat.Answer{d.call}
						if tainted {
							answers = []chat.Answer{calls("web_page", `{}`), d.call}
						}
						asks := b.does(a, answers...)
						returns := name == "release" || name == "safe value" || name == "stop"
						free := askerMay == "owner" || askerMay == "may" || askerMay == "confirm" && returns // which no permission confirms
						wantAsks := agentMay && (!free || tainted && name != "capture") && name != "program"
						wantDone := agentMay && free && (!tainted || name == "capture")
						if done := d.done(b); asks != wantAsks || done != wantDone {
							b.Errorf("%s: an owner is asked: %t, want %t; it is done: %t, want %t", what, asks, wantAsks, done, wantDone)
						}
						end()
					}
				}
			}
		}
	})
}

// TestBothLimits: lengths, values and rates are the narrower of both, and what the asker's permission
// moved ends with it.
func TestBothLimits(t *testing.T) {
	on := calls("switch_output", `{"output":"lamp/relay","on":true}`)
	longer := calls("switch_output", `{"output":"lamp/relay","on":true,"for_seconds":30}`)
	left := func(b *bounded, output string) time.Duration {
		all := b.guard.Status()
		return all[slices.IndexFunc(all, func(s guard.Status) bool { return s.Output == output })].Left
	}
	bound(t, func(b *bounded) {
		if strings.HasPrefix(b.way, "a ") {
			return // tokens
		}
		if err := b.configure("a", fmt.Sprintf(boundedModel, "set lamp+fan max 1m", "use nothing")); err != nil {
			b.Fatal(err)
		}
		b.sleep(20 * time.Second)
		b.fresh()
		a, end := b.askerWith("ask gpt, set lamp max 5s 2/h, set fan 0..20")
		if b.does(a, on) || !b.on("lamp/relay") || left(b, "lamp/relay") > 5*time.Second {
			b.Errorf("by default it is on for %v", left(b, "lamp/relay"))
		}
		b.sleep(10 * time.Second)
		if !b.does(a, longer) || b.on("lamp/relay") {
			b.Error("it is on for longer than its asker may")
		}
		for range 2 {
			if b.sleep(10 * time.Second); b.does(a, on) {
				b.Error("an owner is asked about a rate")
			}
		}
		if b.on("lamp/relay") {
			b.Error("it is on for the third time within the hour")
		}
		if b.does(a, calls("set_level", `{"output":"fan/level","value":20,"for_seconds":50}`)) || left(b, "fan/level") == 0 {
			b.Error("its asker may do this")
		}
		if !b.does(a, calls("set_level", `{"output":"fan/level","value":21,"for_seconds":50}`)) {
			b.Error("its asker may not set this value")
		}
		end()
		if synctest.Wait(); left(b, "fan/level") != 0 {
			b.Error("it is on although the permission of its asker has ended")
		}
		a, end = b.askerWith("ask gpt, read climate") // an owner says yes
		b.model.answers = []chat.Answer{longer}
		if err := ways[b.way](b, a); err != nil {
			b.Fatal(err)
		}
		synctest.Wait()
		all, err := b.Requests(here)
		if err != nil || len(all) != 1 || !slices.Contains(all[0].Via, a.ID) {
			b.Fatalf("%+v %v", all, err)
		}
		if err := b.Approve(here, all[0].Handle, true); err != nil {
			b.Fatal(err)
		}
		if synctest.Wait(); left(b, "lamp/relay") != 30*time.Second {
			b.Errorf("an owner approved it: %v", left(b, "lamp/relay"))
		}
		end()
		if synctest.Wait(); b.on("lamp/relay") {
			b.Error("it is on although its asker may not ask any more")
		}
	})
}
