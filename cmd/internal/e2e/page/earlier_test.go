//go:build e2e

package page

import (
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestEarlier: the past of a point is that of a day before with a press, and the last day again with another.
func TestEarlier(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0")
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	run[bool](b, `(() => {
		const real = window.fetch;
		window.ends = [];
		window.fetch = (to, o) => {
			const asked = typeof o?.body === "string" ? JSON.parse(o.body).params : undefined;
			if (asked?.name === "read_history") window.ends.push([asked.arguments.hours, asked.arguments.to]);
			return real(to, o);
		};
		location.hash = "#point?s=shed&p=box/relay";
		return true;
	})()`)
	b.press(".range button:nth-child(2)")
	b.is(20*time.Second, `document.querySelector("[data-act=later]:disabled") && ends.some(e => e[0] === 24 && !e[1])`)
	now := run[string](b, `document.querySelector("[data-shown]").textContent`)
	b.press("[data-act=earlier]")
	b.is(20*time.Second, `ends.some(e => e[0] === 24 && Math.abs(Date.now() - 864e5 - Date.parse(e[1])) < 36e5)`)
	if then := run[string](b, `document.querySelector("[data-shown]").textContent`); then == now {
		t.Errorf("it says still %q", then)
	}
	b.is(20*time.Second, `document.querySelector("[data-chart]") && !document.querySelector("main .note.bad")`)
	b.press("[data-act=later]")
	b.is(20*time.Second, `document.querySelector("[data-act=later]:disabled")`)
}

// TestDates: a date is written as the browser's person does, where the page has that language, and midnight is 00.
func TestDates(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	for _, tt := range []struct{ languages, want string }{
		{`"en-GB"`, "4 Mar, 00:05"}, {`"en-US", "en-GB"`, "Mar 4, 00:05"}, {`"fr", "en-GB"`, "4 Mar, 00:05"}, {`"de-AT", "en"`, "4. März, 00:05"},
	} {
		says := run[string](b, `(() => {
			const all = [`+tt.languages+`];
			Object.defineProperty(navigator, "languages", { value: all, configurable: true });
			Object.defineProperty(navigator, "language", { value: all[0], configurable: true });
			`+source(t, "words.ts", "words")+`
			return words.dayTime(new Date(2026, 2, 4, 0, 5));
		})()`)
		if says != tt.want {
			t.Errorf("%s: %q, not %q", tt.languages, says, tt.want)
		}
	}
}
