//go:build e2e

package page

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// busy answers as a site with n points, all of which change at each interval.
func busy(n int, interval time.Duration) http.HandlerFunc {
	type o = map[string]any
	points := make([]o, n)
	for i := range points {
		points[i] = o{"point": fmt.Sprintf("d%03d/p%d", i/3, i%3), "kind": "measurement", "unit": "Cel"}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		if body, _ := io.ReadAll(r.Body); json.Unmarshal(body, &m) != nil {
			return
		}
		if m.Method != "subscriptions/listen" {
			w.Header().Set("Content-Type", "application/json")
			result := o{"resultType": "complete", "content": []o{}, "structuredContent": o{"points": points, "site": "busy"}}
			json.NewEncoder(w).Encode(o{"jsonrpc": "2.0", "id": m.ID, "result": result})
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		every := time.NewTicker(interval)
		defer every.Stop()
		for round := 0; ; round++ {
			readings := make([]o, n)
			for i := range readings {
				readings[i] = o{"i": i, "value": float64(round%100) + float64(i)/1000, "age_seconds": 0}
			}
			params := o{"_meta": o{"io.modelcontextprotocol/subscriptionId": m.ID}, "readings": readings}
			if round == 0 {
				params["points"] = points
			}
			text, _ := json.Marshal(o{"jsonrpc": "2.0", "method": "notifications/agentsite/values", "params": params})
			if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
				return
			}
			http.NewResponseController(w).Flush()
			select {
			case <-every.C:
			case <-r.Context().Done():
				return
			}
		}
	}
}

// heap returns what a tab's scripts keep after a collection, in bytes.
func (b *tab) heap() float64 {
	b.t.Helper()
	for range 2 { // what finalizers let go needs another
		if err := second(chromedp.Call(b.ctx, heapprofiler.CollectGarbage, cdp.Empty{})); err != nil {
			b.t.Fatal(err)
		}
	}
	use, err := chromedp.Call(b.ctx, runtime.GetHeapUsage, cdp.Empty{})
	if err != nil {
		b.t.Fatal(err)
	}
	return use.UsedSize
}

// TestGrowth: after as many updates of a thousand points as ten minutes bring at one a second, the page keeps no
// more memory than before, within 1 MB. They come in a minute; with SOAK, in ten minutes.
func TestGrowth(t *testing.T) {
	t.Parallel()
	interval := harness.Workload(100*time.Millisecond, time.Second) // what grows by an update shows by its number alone
	const warm, updates = 60, 600
	ann := harness.NewPerson(t)
	claimed(t, ann, harness.TempDir(t), "well", "127.0.0.1:0")
	own(t, ann, "busy", identity.New(), busy(1000, interval))
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	b.show("site?s=busy")
	b.is(30*time.Second, `document.querySelectorAll("[data-point]").length == 1000`)
	run[bool](b, `(() => {
		window.seen = 0;
		const value = document.querySelector("[data-point] .num");
		new MutationObserver(() => { window.seen++; }).observe(value, { subtree: true, characterData: true, childList: true });
		return true;
	})()`)
	shown := func(n int) {
		t.Helper()
		b.is(5*updates*interval+time.Minute, fmt.Sprintf("window.seen >= %d", n))
	}
	shown(warm)
	before := b.heap()
	shown(warm + updates)
	after := b.heap()
	t.Logf("%.2f MB, and after %d updates %.2f MB", before/1e6, updates, after/1e6)
	if after > before+1e6 {
		t.Errorf("the page keeps %.2f MB more", (after-before)/1e6)
	}
}
