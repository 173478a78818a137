//go:build e2e

package page

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/node/identity"
)

// venom is in every text of a hostile site: what a browser may run, and what hides or turns text.
const venom = "\u202e<img src=x onerror=window.pwned=1><script>window.pwned=1</script>javascript:window.pwned=1\u0000\u200b"

// hostile answers every call as one kind of hostile site.
func hostile(how string) http.HandlerFunc {
	type o = map[string]any
	points := []o{
		{"point": "a/t" + venom, "kind": "measurement", "unit": venom, "description": venom, "device": venom},
		{"point": "a/o", "kind": "switch", "safe": false, "description": venom, "limits": venom, "max_seconds": 1e300, "confirm": venom},
		{"point": venom, "kind": venom}, {"point": "__proto__", "kind": "constructor"}, {"point": "a/l", "kind": "level", "safe": 0, "min": 5, "max": -5},
	}
	return func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		body, _ := io.ReadAll(r.Body)
		if json.Unmarshal(body, &m) != nil {
			return
		}
		answer := func(result any) {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(o{"jsonrpc": "2.0", "id": m.ID, "result": result})
		}
		called := func(result any) {
			answer(o{"resultType": "complete", "content": []o{{"type": "text", "text": venom}}, "structuredContent": result})
		}
		switch {
		case how == "silent":
			<-r.Context().Done()
		case how == "endless" && m.Method != "owner/time":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"x":"`, m.ID)
			for err := error(nil); err == nil; {
				_, err = io.WriteString(w, strings.Repeat("A", 1<<16))
			}
		case m.Method == "subscriptions/listen":
			w.Header().Set("Content-Type", "text/event-stream")
			for n := 0; r.Context().Err() == nil && (how == "flood" || n < 2); n++ {
				note := o{"jsonrpc": "2.0", "method": "notifications/agentsite/values", "params": o{
					"_meta": o{"io.modelcontextprotocol/subscriptionId": m.ID}, "points": points, "emergency_stop": n%2 == 0,
					"readings": []o{{"i": 0, "value": venom, "age_seconds": -1e300, "why": venom, "quality": venom},
						{"i": 1, "value": true, "output": o{"held_by": venom, "seconds_left": 1e300, "needs": venom, "state": n}}, {"i": 99, "value": 1}},
					"approvals": []o{{"handle": venom, "caller": venom, "tool": venom, "arguments": venom, "seconds_left": 1e300}},
				}}
				text, _ := json.Marshal(note)
				if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
					return
				}
				http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		case m.Params.Name == "list_points":
			called(o{"points": points})
		case m.Params.Name == "site_status":
			called(o{"site": venom, "version": venom, "emergency_stop": venom, "devices": []o{{"device": venom, "model": venom, "faults": []string{venom}}}})
		case m.Method == "tools/call":
			called(o{"x": venom})
		default:
			answer(o{"x": venom, "requests": []o{{"handle": venom, "who": venom, "tool": venom, "arguments": o{venom: venom}, "seconds_left": 1}}})
		}
	}
}

// own serves a site that the person owns.
func own(t *testing.T, ann harness.Person, name string, key identity.Key, h http.HandlerFunc) {
	t.Helper()
	file := filepath.Join(ann.Folder, "agentsite", "owner", "sites.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []peer.Contact
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	at := []string{harness.ServeAs(t, key, h)}
	all = append(all, peer.Contact{Name: name, DID: key.ID().String(), Owner: true, Addresses: at})
	if text, err = json.Marshal(all); err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestHostileSites: hostile sites run nothing in the page, and keep no other site from being live and from
// being stopped.
func TestHostileSites(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	well := claimed(t, ann, harness.TempDir(t), "well", "127.0.0.1:0")
	for _, how := range []string{"lies", "flood", "silent", "endless"} {
		own(t, ann, how, identity.New(), hostile(how))
	}
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(o.Link)
	b.is(20*time.Second, `document.querySelector("[data-site=lies]")`)
	views := run[[]string](b, `[...document.querySelectorAll("nav [data-nav]")].map(a => a.dataset.nav)`)
	for _, site := range []string{"lies", "flood", "well"} {
		views = append(views, "site?s="+site, "point?s="+site+"&p=a/o")
	}
	shown := 0
	for _, view := range views {
		run[bool](b, "location.hash = "+quote("#"+view)+", true")
		something := `document.querySelector("main h2, main h3, main p, main li")`
		if strings.Contains(view, "flood") { // it may not have said what points it has
			something += ` || document.querySelector("main").textContent.includes("flood")`
		}
		b.is(20*time.Second, something)
		if text := run[string](b, `document.querySelector("[data-broken]")?.textContent ?? ""`); text != "" {
			t.Errorf("%s: %s", view, text)
		}
		if run[bool](b, `document.querySelector("main").textContent.includes("<img src=x")`) {
			shown++ // as text
		}
		if found := run[int](b, `document.querySelectorAll("main img, main script").length`); found > 0 {
			t.Errorf("%s has %d elements of a site", view, found)
		}
	}
	if shown == 0 {
		t.Error("no view shows a text of the hostile sites, so that nothing was tested")
	}
	run[bool](b, `location.hash = "#site?s=well", true`)
	b.is(20*time.Second, `document.querySelector("[data-net=live]") && document.querySelector('[data-output="box/relay"]')`)
	b.press("#stop")
	harness.WaitFor(t, 2*time.Second, "the site stops", func() bool { return stopped(t, well) })
	if run[bool](b, "window.pwned !== undefined") {
		t.Error("a site's text was run")
	}
}
