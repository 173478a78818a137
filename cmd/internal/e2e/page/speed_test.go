//go:build e2e

package page

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// longestTask returns the longest task of the tab's main thread during a length of time, in time that the thread
// was given a processor: what else runs on the machine does not count. It fails without updates of the page.
func (b *tab) longestTask(length time.Duration) (longest time.Duration) {
	b.t.Helper()
	const changes = `(async ms => {
		let changes = 0;
		const o = new MutationObserver(() => { changes++; });
		o.observe(document.querySelector("main"), { subtree: true, characterData: true, childList: true });
		await new Promise(done => setTimeout(done, ms));
		o.disconnect();
		return changes;
	})(%d)`
	heard, cancel := context.WithCancel(b.ctx)
	defer cancel()
	ended := make(chan struct{})
	var mu sync.Mutex // of longest
	if err := chromedp.Listen(heard, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *tracing.EventDataCollected:
			for _, v := range e.Value {
				var task struct {
					Name string  `json:"name"`
					Took float64 `json:"tdur"` // in µs of the thread
				}
				if json.Unmarshal([]byte(v), &task) == nil && task.Name == "RunTask" {
					longest = max(longest, time.Duration(task.Took*float64(time.Microsecond)))
				}
			}
		case *tracing.EventTracingComplete:
			close(ended)
		}
	}); err != nil {
		b.t.Fatal(err)
	}
	config := tracing.TraceConfig{IncludedCategories: []string{"disabled-by-default-devtools.timeline"}}
	if err := second(chromedp.Call(b.ctx, tracing.Start, tracing.StartParams{TraceConfig: &config})); err != nil {
		b.t.Fatal(err)
	}
	n := run[int](b, fmt.Sprintf(changes, length.Milliseconds()))
	if err := second(chromedp.Call(b.ctx, tracing.End, cdp.Empty{})); err != nil {
		b.t.Fatal(err)
	}
	<-ended
	if n < 5 || longest == 0 {
		b.t.Errorf("%d changes in %v; the longest task takes %v", n, length, longest)
	}
	return longest
}

// TestThousandPoints: a processor that is six times slower than this one shows a thousand points that change each
// second, and no task of a frame takes 200 ms.
func TestThousandPoints(t *testing.T) {
	t.Parallel()
	var devices strings.Builder
	for i := range 334 { // of three points each
		fmt.Fprintf(&devices, "  climate-%03d: { driver: sim, model: climate, seed: %d, every: 1s }\n", i, i)
	}
	_, _, _, b := openShed(t, devices.String())
	b.show("site?s=shed")
	b.is(30*time.Second, `document.querySelectorAll("[data-point]").length >= 1000`)
	slower := emulation.SetCPUThrottlingRateParams{Rate: 6}
	if err := second(chromedp.Call(b.ctx, emulation.SetCPUThrottlingRate, slower)); err != nil {
		t.Fatal(err)
	}
	for _, view := range []string{"site?s=shed", "house"} {
		b.show(view)
		took := b.longestTask(10 * time.Second)
		t.Logf("%s: the longest task takes %v", view, took)
		if took > 200*time.Millisecond {
			t.Errorf("%s: a task takes %v", view, took)
		}
	}
}

// TestDayChart: the chart of a day, with its band, is there 300 ms after it is asked for.
func TestDayChart(t *testing.T) {
	site, _, o, b := openShed(t, "  den: { driver: sim, model: climate }")
	var past strings.Builder
	past.WriteString("time,point,value\n")
	for i, end := 0, time.Now().Truncate(time.Hour); i < 25*360; i++ {
		at := end.Add(time.Duration(i-25*360) * 10 * time.Second)
		fmt.Fprintf(&past, "%s,den/temperature,%.1f\n", at.UTC().Format(time.RFC3339), 20+float64(i%77)/10)
	}
	file := filepath.Join(site.Folder, "past.csv")
	if err := os.WriteFile(file, []byte(past.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"clock", "--set"}, {"history", "import", file}} {
		if _, err := site.CLI(t, args...); err != nil {
			t.Fatal(err)
		}
	}
	took := harness.CheckOrdinaryDeadline(t, 300*time.Millisecond, func() time.Duration {
		least := time.Hour
		for range 3 { // what else the machine does only adds
			anew := fmt.Sprintf("/?%d#", time.Now().UnixNano()) // a page that has kept nothing
			b.open(strings.Replace(o.another(), "/#", anew, 1))
			b.live()
			b.show("site?s=shed")
			least = min(least, time.Duration(run[float64](b, `(async () => {
				const begun = performance.now();
				location.hash = "#point?s=shed&p=den/temperature";
				for (let at = begun; at < begun + 20_000;) {
					at = await new Promise(requestAnimationFrame);
					const band = document.querySelector("[data-chart] path.band")?.getAttribute("d") ?? "";
					if (band.split("L").length > 180) break; // of 96 steps
				}
				return await new Promise(requestAnimationFrame) - begun; // it is drawn
			})()`)*float64(time.Millisecond)))
		}
		return least
	})
	t.Logf("after %v", took)
}
