//go:build e2e

package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"
	"agentsite/node/journal"
)

// noted writes a journal of n events, which tell of what.
func noted(t *testing.T, what string, n int) (folder string) {
	t.Helper()
	folder = harness.TempDir(t)
	j, err := journal.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := j.Note(fmt.Sprintf("%s %d", what, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestJournalHashed: the page hashes a journal itself and shows what it hashed. It finds an entry that the site
// altered, removed or moved, an end that was cut off, and a journal that was made anew.
func TestJournalHashed(t *testing.T) {
	t.Parallel()
	ann, key := harness.NewPerson(t), identity.New()
	claimed(t, ann, harness.TempDir(t), "well", "127.0.0.1:0")
	folders := map[string]string{"cut": noted(t, "event", 240), "noted": noted(t, "other", 250)}
	folders["another key"], folders["long"] = folders["noted"], noted(t, "event", 1100)
	whole := noted(t, "event", 250)
	var how atomic.Value // what the site does
	how.Store("")
	tamper := map[string]func(*journal.Chain){
		"altered":   func(c *journal.Chain) { c.Entries[50][len(c.Entries[50])-1] ^= 1 },
		"removed":   func(c *journal.Chain) { c.Entries = slices.Delete(c.Entries, 50, 51) },
		"moved":     func(c *journal.Chain) { c.Entries[50], c.Entries[51] = c.Entries[51], c.Entries[50] },
		"unchained": func(c *journal.Chain) { c.After[0] ^= 1 },
		"unread":    func(c *journal.Chain) { c.Entries[50] = []byte{0xff} },
		"none":      func(c *journal.Chain) { c.Entries = nil },
	}
	lies := hostile("lies")
	own(t, ann, "liar", key, func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params journal.Filter
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		json.Unmarshal(body, &m)
		answer := func(result any) {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		}
		switch does := how.Load().(string); m.Method {
		case "owner/access":
			says := key
			if does == "another key" {
				says = identity.New()
			}
			answer(map[string]any{"site": says.ID().String()})
		case "owner/journal":
			folder := folders[does]
			if folder == "" {
				folder = whole
			}
			if does == "long" {
				m.Params.Limit = journal.MaxChain
			}
			p, _, err := journal.Calls(folder, m.Params, time.Now())
			if err != nil || p.Chain == nil {
				lies(w, r)
				return
			}
			p.Items = []journal.Item{{Seq: 1, Outcome: "event", Says: "what the site says beside"}}
			if tamper[does] != nil {
				tamper[does](p.Chain)
			}
			answer(p)
		default:
			lies(w, r)
		}
	})
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(o.Link)
	b.is(20*time.Second, `document.querySelector("[data-site=liar]")`)
	look := func(does string) {
		t.Helper()
		how.Store(does)
		run[bool](b, `location.hash = "#house", true`)
		b.is(10*time.Second, `document.querySelector("[data-view=house]")`)
		run[bool](b, `location.hash = "#journal?s=liar", true`)
	}
	look("")
	b.is(20*time.Second, `document.querySelector('[data-chain=whole][data-n="100"]')
		&& document.querySelector("main").textContent.includes("event 250")`)
	if run[bool](b, `document.querySelector("main").textContent.includes("what the site says beside")`) {
		t.Error("the page shows what it has not hashed")
	}
	b.press("[data-act=older]")
	b.is(20*time.Second, `document.querySelector('[data-chain=whole][data-n="250"]')`)
	b.is(20*time.Second, `document.querySelectorAll("main li.top").length == 200`)
	for does, finds := range map[string]string{
		"altered": "changed", "removed": "place", "moved": "place", "unchained": "changed", "unread": "unread",
		"none": "none", "cut": "cut", "noted": "noted", "another key": "noted", "long": "none",
	} {
		look(does)
		b.is(20*time.Second, `document.querySelector("[data-chain=broken]")`)
		if found := run[string](b, `document.querySelector("[data-chain]").dataset.how`); found != finds {
			t.Errorf("%s: it finds %q", does, found)
		}
	}
	look("")
	b.is(20*time.Second, `document.querySelector("[data-chain=whole][data-same=true]")`)
}
