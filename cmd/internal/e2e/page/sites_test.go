//go:build e2e

package page

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// slack extends the limits on a busy machine.
const slack = 3 * time.Second

// claimed starts a site at an address for HTTPS and makes a person its owner.
func claimed(t *testing.T, p harness.Person, data, name, https string, more ...string) *harness.Site {
	t.Helper()
	r := harness.StartHTTPSAt(t, data, https, more...)
	p.MustCLI(t, "claim", r.Invitation(t).String(), "--name", name)
	return r
}

// stopped reports whether a site's emergency stop is latched.
func stopped(t *testing.T, r *harness.Site) bool {
	t.Helper()
	_, says := r.Post(t, harness.ToolCall("site_status", "{}"), "Mcp-Name", "site_status")
	return strings.Contains(says, `"emergency_stop":true`)
}

// TestSiteGone: a site that is killed is grey within 12 s, and right 3 s after it is back. The same is so of
// one that is frozen. It takes as long as these limits.
func TestSiteGone(t *testing.T) {
	t.Parallel()
	ann, data, at := harness.NewPerson(t), harness.TempDir(t), net.JoinHostPort("127.0.0.1", harness.FreePort(t))
	site := claimed(t, ann, data, "shed", at)
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	const grey = `document.querySelector("[data-net=off]")`
	site.Kill(t)
	b.is(12*time.Second+slack, grey)
	site = harness.StartHTTPSAt(t, data, at)
	b.is(3*time.Second+slack, `document.querySelector("[data-net=live]")`)
	site.Cmd.Process.Signal(syscall.SIGSTOP)
	b.is(12*time.Second+slack, grey)
	site.Cmd.Process.Signal(syscall.SIGCONT)
	b.is(3*time.Second+slack, `document.querySelector("[data-net=live]")`)
}

// TestWoken: on a machine that slept, the values of before are grey at once where the site does not answer.
func TestWoken(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	site := claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0")
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	site.Cmd.Process.Signal(syscall.SIGSTOP)
	t.Cleanup(func() { site.Cmd.Process.Signal(syscall.SIGCONT) })
	run[bool](b, `(real => { Date.now = () => real() + 3600e3; return true; })(Date.now)`)
	b.is(3*time.Second+slack, `!document.querySelector("[data-net=live]")`)
	site.Cmd.Process.Signal(syscall.SIGCONT)
	b.is(3*time.Second+slack, `document.querySelector("[data-net=live]")`)
}

// TestSecondWindow: a window that is opened later, and hears of a site from the first, shows each value at its point,
// also where the configuration has changed.
func TestSecondWindow(t *testing.T) {
	t.Parallel()
	site, _, o, first := openShed(t, "  pit: { driver: sim, model: relay, min_off: 0 }")
	file := filepath.Join(site.Folder, "agentsite.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const devices = "devices:\n"
	more := strings.Replace(string(text), devices, devices+"  attic: { driver: sim, model: relay, min_off: 0 }\n", 1)
	if err := os.WriteFile(file, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	if says, err := site.CLI(t, "reload"); err != nil {
		t.Fatal(says, err)
	}
	first.press("[data-site]")
	first.is(20*time.Second, `document.querySelector("[data-output='attic/relay']")`)
	second := first.another()
	second.open(o.another())
	second.live()
	second.press("[data-site]")
	second.is(20*time.Second, `document.querySelector("[data-output='attic/relay']")`)
	for _, output := range []string{"box/relay", "pit/relay", "attic/relay"} {
		if says, err := site.CLI(t, "set", output, "on", "--for", "60s"); err != nil {
			t.Fatal(says, err)
		}
		const held = `[...document.querySelectorAll("[data-output][data-kind=held]")].map(x => x.dataset.output).join()`
		second.is(10*time.Second, fmt.Sprintf("%s === %q", held, output))
		if says, err := site.CLI(t, "set", output, "off"); err != nil {
			t.Fatal(says, err)
		}
		second.is(10*time.Second, held+` === ""`)
	}
}

// TestHungSite: of two sites one hangs. The other is live, and the stop reaches it at once; that of the
// first is sent until it answers.
func TestHungSite(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	hung, well := claimed(t, ann, harness.TempDir(t), "hung", "127.0.0.1:0"), claimed(t, ann, harness.TempDir(t), "well", "127.0.0.1:0")
	o := openPage(t, ann, "")
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	hung.Cmd.Process.Signal(syscall.SIGSTOP)
	t.Cleanup(func() { hung.Cmd.Process.Signal(syscall.SIGCONT) }) // or it would not end
	b.is(20*time.Second, `[...document.querySelectorAll("nav a")].some(a => a.textContent.includes("hung"))`)
	b.press("#stop")
	began := time.Now()
	harness.WaitFor(t, 2*time.Second, "the other site stops", func() bool { return stopped(t, well) })
	t.Logf("after %v", time.Since(began))
	b.is(5*time.Second, `document.querySelector("[data-stopped=well]").textContent.includes("safe")`)
	hung.Cmd.Process.Signal(syscall.SIGCONT)
	harness.WaitFor(t, 5*time.Second, "the site stops once it can", func() bool { return stopped(t, hung) })
	b.is(10*time.Second, `document.querySelector("[data-stopped=hung]").textContent.includes("safe")`)
}

// TestEightTabs: a browser has six connections to a program. The stop works from each of eight tabs.
func TestEightTabs(t *testing.T) {
	t.Parallel()
	ann := harness.NewPerson(t)
	site := claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0")
	o := openPage(t, ann, "")
	first := newBrowser(t)
	first.open(o.Link)
	tabs := []*tab{first}
	for range 7 {
		b := first.another()
		b.open(o.another())
		tabs = append(tabs, b)
	}
	for i, b := range tabs {
		b.live()
		b.press("#stop")
		began := time.Now()
		harness.WaitFor(t, 5*time.Second, "the site stops", func() bool { return stopped(t, site) })
		t.Logf("tab %d: after %v", i, time.Since(began))
		if _, err := site.CLI(t, "reset"); err != nil {
			t.Fatal(err)
		}
		b.is(10*time.Second, `!document.querySelector("#stop.held")`)
	}
}
