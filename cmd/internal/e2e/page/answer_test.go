//go:build e2e

package page

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agents/llm/chat"
	"agentsite/agents/llm/chat/chattest"
	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/chromedp"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// inbox is the receiver of a webhook.
type inbox struct {
	*httptest.Server
	mu    sync.Mutex
	links []string // of the calls that waited, in order
	kinds []string // of all items
	whole string
}

func newInbox(t *testing.T) *inbox {
	i := new(inbox)
	i.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			Items []struct {
				Kind string `json:"kind"`
				Link string `json:"link"`
			} `json:"items"`
		}
		if err := json.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.whole += string(body)
		for _, item := range m.Items {
			i.kinds = append(i.kinds, item.Kind)
			if item.Kind == "approval" {
				i.links = append(i.links, item.Link)
			}
		}
	}))
	t.Cleanup(i.Close)
	return i
}

// count returns how many items of a kind came.
func (i *inbox) count(kind string) (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, k := range i.kinds {
		if k == kind {
			n++
		}
	}
	return n
}

// link waits for the nth message about a call that waits, and returns its link and the handle of the call.
func (i *inbox) link(t *testing.T, n int) (link, handle string) {
	t.Helper()
	harness.WaitFor(t, time.Minute, fmt.Sprintf("message %d about a call that waits", n), func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		if len(i.links) >= n {
			link = i.links[n-1]
		}
		return link != ""
	})
	_, query, _ := strings.Cut(link, "?")
	of, err := url.ParseQuery(query)
	if err != nil || of.Get("call") == "" {
		t.Fatal(link, err)
	}
	return link, of.Get("call")
}

// answerScript answers a call as the page does, with the key of this browser or another one, and may sign one thing and
// send another. It returns the status.
const answerScript = `
const base64 = b => btoa(String.fromCharCode(...new Uint8Array(b)));
const got = r => new Promise((ok, no) => { r.onsuccess = () => ok(r.result); r.onerror = () => no(r.error); });
window.answer = async ({ says, signs = says, path = "/page/answer", fresh, bearer, again }) => {
	const kept = (await got((await got(indexedDB.open("agentsite", 1))).transaction("keys").objectStore("keys").get("key"))).pair;
	const pair = fresh ? await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]) : kept;
	const { site, challenge } = again ? window.used : await (await fetch("/page/challenge")).json();
	window.used = { site, challenge };
	const text = ["agentsite page 1", path, site, location.host, challenge, signs, ""].join("\n");
	const headers = bearer ? { Authorization: "Bearer " + sessionStorage.getItem("token"), "Agentsite-Code": says } : {
		"Agentsite-Key": base64(await crypto.subtle.exportKey("raw", pair.publicKey)), "Agentsite-Challenge": challenge, "Agentsite-Code": says,
		"Agentsite-Signature": base64(await crypto.subtle.sign("Ed25519", pair.privateKey, new TextEncoder().encode(text))) };
	return (await fetch("/page/answer", { method: "POST", headers })).status;
}; true`

// phoneWith lets a phone in with a permission, and returns its browser.
func phoneWith(t *testing.T, ann harness.Person, words, name string) *tab {
	t.Helper()
	g := grantPhone(t, ann, words, "--name", name)
	b := newBrowser(t, chromedp.WindowSize(390, 844), chromedp.Flag("ignore-certificate-errors", true))
	b.expect("responded with a status of 4") // the browser notes what the site refuses
	b.open(g.Link)
	g.letIn(t, b)
	return b
}

// TestProgramsAreTold: an owner is told that a program asks to sign in, without its code and what it calls itself, and
// once it has signed in, that it asks for more than it may.
func TestProgramsAreTold(t *testing.T) {
	t.Parallel()
	in, ann := newInbox(t), harness.NewPerson(t)
	site := claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0", "http: { oauth: on }",
		fmt.Sprintf("notify: { to: { hook: { webhook: %q } } }", in.URL))
	ann.MustCLI(t, "clock", "--set", "--site", "shed")
	p := newProgram(t, site, "Claude")
	code := p.begin()
	harness.WaitFor(t, 90*time.Second, "a message that a program asks to sign in",
		func() bool { return in.count("sign_in") == 1 })
	in.mu.Lock()
	if strings.Contains(in.whole, code) || strings.Contains(in.whole, "Claude") {
		t.Errorf("a stranger's words, or the code that an owner compares, are told: %s", in.whole)
	}
	in.mu.Unlock()
	ann.MustCLI(t, "approve", code, "--may", "read *", "--until", "3d", "--site", "shed")
	token := p.exchange(p.brought().Get("code"))
	if status, refused := p.call(token, "switch_output", boxOn); status == 200 && !refused {
		t.Fatal("it is not refused")
	}
	harness.WaitFor(t, time.Minute, "a message that it asks for more", func() bool { return in.count("wish") == 1 })
}

// TestPhoneAnswers: a model wants to open a valve that its owner confirms. The owner is told, the site is killed, and
// the task asks anew. The link of the first message says that its call is over; the second leads to the call, which
// the owner's phone allows by a tap. The valve opens, and the task ends by itself. No other answer moves anything: one
// that no key signed, that another key or a phone without this permission signed, for another call, with the challenge
// of another answer, that is repeated, or that comes too late.
func TestPhoneAnswers(t *testing.T) {
	t.Parallel()
	model := chattest.New(t, chattest.Plain, func(body []byte) (a chat.Answer) {
		last := body[max(0, bytes.LastIndex(body, []byte(`"role":"user"`))):]
		if i := bytes.LastIndex(last, []byte(`"role":"tool"`)); i >= 0 && bytes.Contains(last[i:], []byte(`valve/relay`)) {
			return chat.Answer{Text: "The valve is open."}
		}
		return chat.Answer{Calls: []chat.Call{{ID: "c", Name: "switch_output", Arguments: jsontext.Value(`{"output":"valve/relay","on":true,"for_seconds":60}`)}}}
	})
	in, ann, data := newInbox(t), harness.NewPerson(t), harness.TempDir(t)
	at := net.JoinHostPort("127.0.0.1", harness.FreePort(t))
	more := []string{
		"  valve: { driver: sim, model: relay, min_off: 0, confirm: owner }",
		"approvals: { wait: 1h }",
		fmt.Sprintf("agents: { gpt: { kind: llm, model: { url: %q, name: test }, may: set valve } }", model.Endpoint()),
		fmt.Sprintf("notify: { to: { hook: { webhook: %q } }, page: %q }", in.URL, "https://"+at),
	}
	site := claimed(t, ann, data, "shed", at, more...)
	ann.MustCLI(t, "clock", "--set", "--site", "shed")
	valve := func(when, want string) {
		t.Helper()
		if says, err := site.CLI(t, "read", "valve/relay"); err != nil || !strings.Contains(says, " "+want+" ") {
			t.Errorf("%s: %s %v", when, says, err)
		}
	}
	b := phoneWith(t, ann, "read *, set *, stop, use approve", "anns")
	if b.host != at {
		t.Fatalf("the phone is at %s, and the page at %s", b.host, at)
	}
	other := phoneWith(t, ann, "read *, set *, stop", "other")
	if _, err := site.CLI(t, "ask", "gpt", "water, please", "--no-wait"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			says, _ := site.CLI(t, "tasks", "--json")
			who, _ := site.CLI(t, "agents")
			t.Log(says, who, site.Log)
		}
	}()
	first, old := in.link(t, 1)
	for _, tab := range []*tab{b, other} {
		if err := chromedp.Do(tab.ctx, chromedp.Navigate("about:blank")); err != nil {
			t.Fatal(err)
		}
	}
	site.Kill(t)
	site = harness.StartHTTPSAt(t, data, at, more...)
	ann.MustCLI(t, "clock", "--set", "--site", "shed") // without it a permission that ends allows nothing
	second, handle := in.link(t, 2)
	if first == second {
		t.Fatal("a call that ended with the site waits again under its handle")
	}

	b.open(first)
	b.live()
	b.is(20*time.Second, `document.querySelector("[data-over]")`)
	b.is(10*time.Second, fmt.Sprintf(`document.querySelector("[data-approval=%s]")`, handle))
	b.look(phone, "dark")
	b.axe("a call that the phone answers", phone)
	other.open("https://" + at + "/")
	other.live()
	run[bool](b, answerScript)
	run[bool](other, answerScript)
	refused := func(what string, by *tab, how string, want ...int) {
		t.Helper()
		status := run[int](by, "answer({"+how+"})")
		if status/100 != 4 || len(want) > 0 && status != want[0] {
			t.Errorf("%s: %d", what, status)
		}
		valve(what, "off")
	}
	yes := fmt.Sprintf("says: %q", "approve "+handle)
	refused("a session without a signature", b, yes+", bearer: true", 403)
	refused("a key that nobody knows", b, yes+", fresh: true")
	refused("a phone without this permission", other, yes, 403)
	refused("a signature for the call of before", b, yes+fmt.Sprintf(", signs: %q", "approve "+old))
	refused("a signature of the other answer", b, yes+", signs: "+fmt.Sprintf("%q", "deny "+handle))
	refused("a signature to sign in", b, yes+`, path: "/page/key"`)
	refused("the call of before", b, fmt.Sprintf("says: %q", "approve "+old), 410)
	refused("the challenge of another answer", b, yes+", again: true")
	refused("no answer", b, fmt.Sprintf("says: %q", handle), 400)
	if says, err := site.CLI(t, "tasks"); err != nil || !strings.Contains(says, "auth_required") {
		t.Fatalf("the task does not wait any more: %s %v", says, err)
	}

	b.open(second)
	b.press(fmt.Sprintf("[data-approval=%s] [data-act=approve]:not([aria-disabled])", handle))
	harness.WaitFor(t, 30*time.Second, "the task ends", func() bool {
		says, err := site.CLI(t, "tasks")
		return err == nil && strings.Contains(says, "completed")
	})
	valve("after the tap", "on")
	b.is(10*time.Second, fmt.Sprintf(`!document.querySelector("[data-approval=%s]")`, handle))
	if status := run[int](b, "answer({"+yes+"})"); status != 410 {
		t.Errorf("an answer again: %d", status)
	}
	if _, err := site.CLI(t, "set", "valve/relay", "safe"); err != nil {
		t.Fatal(err)
	}

	// Its own calls are for others to answer. It knows no handle of a program's or a person's that is none of a call.
	run[bool](b, script)
	run[said](b, `call("/mcp", "tools/call", {name: "switch_output", arguments: {output: "valve/relay", on: true, for_seconds: 60}}, "switch_output")`)
	_, own := in.link(t, 3)
	refused("its own call", b, fmt.Sprintf("says: %q", "approve "+own), 403)

	// The task is cancelled before the answer; and the phone is revoked before another.
	if _, err := site.CLI(t, "ask", "gpt", "water again", "--no-wait"); err != nil {
		t.Fatal(err)
	}
	_, late := in.link(t, 4)
	var waiting string
	harness.WaitFor(t, 10*time.Second, "the task waits", func() bool {
		says, err := site.CLI(t, "tasks")
		for line := range strings.Lines(says) {
			if strings.Contains(line, "auth_required") {
				waiting = strings.Fields(line)[0]
			}
		}
		return err == nil && waiting != ""
	})
	if says, err := site.CLI(t, "tasks", "cancel", waiting); err != nil {
		t.Fatal(says, err)
	}
	refused("an answer that comes too late", b, fmt.Sprintf("says: %q", "approve "+late), 410)
	journal, err := site.CLI(t, "journal", "--json")
	if n := strings.Count(journal, `"tool":"approve"`); err != nil || n != 1 {
		t.Errorf("%d calls were approved: %v\n%s", n, err, journal)
	}
	ann.MustCLI(t, "revoke", "anns", "--site", "shed")
	refused("a phone that was revoked", b, fmt.Sprintf("says: %q", "approve "+own))
}
