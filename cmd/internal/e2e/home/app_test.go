//go:build e2e

package home

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/transport/supervisor/supervisortest"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// homeApp is a site as the app of a Home Assistant that is the test's. The Supervisor has the address 127.0.0.1, other
// apps are at 127.0.1.0/24, and the broker is a real one.
type homeApp struct {
	*testing.T
	supervisor *supervisortest.Supervisor
	api        string // the URL of the Supervisor
	port       string // of the app's ingress
	options    string
	folder     string
	site       *harness.Site
}

func newHomeApp(t *testing.T, owner string) *homeApp {
	h := &homeApp{T: t, supervisor: &supervisortest.Supervisor{Token: "0f6b1c2d", Discovery: []string{"mcp"}}, folder: harness.TempDir(t)}
	api := httptest.NewServer(h.supervisor)
	t.Cleanup(api.Close)
	h.api = api.URL
	h.port = harness.FreePort(t)
	h.options = filepath.Join(harness.TempDir(t), "options.json")
	if err := os.WriteFile(h.options, fmt.Appendf(nil, `{"owner":%q,"log_level":"info"}`, owner), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SUPERVISOR_TOKEN", "0f6b1c2d")
	return h
}

// start starts the app with a configuration; "" has it make its first.
func (h *homeApp) start(config string) {
	h.Helper()
	args := []string{
		harness.Need(h, "the program", harness.Program), "run", "--home-assistant", "--supervisor", h.api,
		"--listen-ingress", ":" + h.port, "--app-options", h.options,
	}
	if config == "" {
		args = append(args, "--config", filepath.Join(h.folder, "agentsite.yaml"))
	}
	h.site = harness.StartIn(h, h.folder, config, nil, args...)
}

// broker starts mosquitto, where only the user of the service mqtt may connect, and returns its port.
func (h *homeApp) broker() string {
	h.Helper()
	program := mosquitto(h)
	dir, port := harness.TempDir(h), harness.FreePort(h)
	passwords := filepath.Join(dir, "passwords")
	if err := os.WriteFile(passwords, nil, 0o600); err != nil {
		h.Fatal(err)
	}
	harness.MustRun(h.T, "mosquitto_passwd", "-b", passwords, "addons", "secret")
	conf := filepath.Join(dir, "conf")
	text := fmt.Sprintf("listener %s 127.0.0.1\nallow_anonymous false\npassword_file %s\n", port, passwords)
	if os.Getuid() == 0 {
		text += "user root\n"
	}
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
	cmd := exec.Command(program, "-c", conf)
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return port
}

// described waits for what Home Assistant is told of the site by the broker, which keeps it.
func (h *homeApp) described(port, with string) {
	h.Helper()
	harness.WaitFor(h, time.Minute, "the site's description with "+with, func() bool {
		ctx, cancel := context.WithTimeout(h.Context(), 10*time.Second)
		defer cancel()
		out, _ := exec.CommandContext(ctx, "mosquitto_sub", "-h", "127.0.0.1", "-p", port, "-u", "addons", "-P", "secret", "-C", "1", "-W", "2",
			"-t", "homeassistant/device/+/config").Output()
		return bytes.Contains(out, []byte(with))
	})
}

// from returns a client that calls from an address of this machine, whatever host it names.
func (h *homeApp) from(address string) *http.Client {
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", "127.0.0.1:"+h.port)
	}}}
}

// ask makes a request, and returns its status and body.
func (h *homeApp) ask(c *http.Client, verb, url, body string, headers ...string) (int, string) {
	h.Helper()
	res, err := c.Do(harness.NewRequest(h, verb, url, body, headers...))
	if err != nil {
		h.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// announced waits until Home Assistant was told something for the n-th time, and returns that.
func (h *homeApp) announced(n int, verb string) supervisortest.Pushed {
	h.Helper()
	harness.WaitFor(h, time.Minute, fmt.Sprintf("announcement %d, %s", n, verb),
		func() bool { return len(h.supervisor.Pushed()) >= n })
	all := h.supervisor.Pushed()
	if len(all) != n || all[n-1].Verb != verb || all[n-1].Service != "mcp" {
		h.Fatalf("%+v", all)
	}
	return all[n-1]
}

// connect opens a session at an announced URL as Home Assistant does.
func (h *homeApp) connect(url any) (*mcp.ClientSession, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "homeassistant", Version: "2026.10"}, nil)
	return c.Connect(h.Context(),
		&mcp.StreamableClientTransport{Endpoint: url.(string), HTTPClient: h.from("127.0.0.1"), MaxRetries: -1}, nil)
}

// move moves the relay by MCP, and returns the error; "" for success.
func (h *homeApp) move(s *mcp.ClientSession) string {
	h.Helper()
	res, err := s.CallTool(h.Context(), &mcp.CallToolParams{Name: "switch_output", Arguments: map[string]any{"output": "box/relay", "on": true, "for_seconds": 5}})
	if err != nil {
		return err.Error()
	}
	if res.IsError {
		return res.Content[0].(*mcp.TextContent).Text
	}
	return ""
}

const appConfig = `site: { name: shed }
devices: { box: { driver: sim, model: relay, min_off: 0 } }
homeassistant: { may: '%s', mcp: %s }
mqtt: { broker: homeassistant, may: 'read *' }
`

// reload changes the configuration of the running app.
func (h *homeApp) reload(may, mcp string) {
	h.Helper()
	if err := os.WriteFile(filepath.Join(h.folder, "agentsite.yaml"), fmt.Appendf(nil, appConfig, may, mcp), 0o600); err != nil {
		h.Fatal(err)
	}
	if out, err := h.site.CLI(h, "reload"); err != nil {
		h.Fatal(out, err)
	}
}

// TestHomeAssistantApp: a site that Home Assistant's Supervisor runs. It works before the Supervisor answers, shows
// itself by the broker that the Supervisor names, and announces its MCP server, again after a restart, and until that
// is switched off. What Home Assistant may is in one permission.
func TestHomeAssistantApp(t *testing.T) {
	h := newHomeApp(t, harness.NewPerson(t).Key(t).ID().String())
	port := h.broker()
	h.supervisor.SetFailing(http.StatusBadGateway)
	h.start(fmt.Sprintf(appConfig, "read *", "on"))
	if out, err := h.site.CLI(t, "set", "box/relay", "on", "--for", "2s"); err != nil {
		t.Fatal("the site does not work without the Supervisor:", out, err)
	}
	if code, text := h.ask(h.from("127.0.0.1"), "GET", "http://x/healthz", ""); code != 200 || text != "ok\n" {
		t.Errorf("the watchdog: %d %s", code, text)
	}
	h.supervisor.SetFailing(0)
	first := h.announced(1, "post")
	h.supervisor.SetBroker(map[string]any{
		"addon": "core_mosquitto", "host": "127.0.0.1", "port": port, "ssl": false, "username": "addons",
		"password": "secret", "protocol": "3.1.1",
	})
	h.described(port, `"shed"`)

	// Home Assistant reads, and moves what its permission says.
	s, err := h.connect(first.Config["url"])
	if err != nil {
		t.Fatal(err)
	}
	if res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_points", Arguments: map[string]any{}}); err != nil || res.IsError {
		t.Error(res, err)
	}
	if says := h.move(s); says == "" || strings.Contains(says, "invalid") {
		t.Error("Home Assistant moved what it may only read:", says)
	}
	s.Close()
	h.reload("read *, set box/relay max 1m", "on")
	if s, err = h.connect(first.Config["url"]); err != nil {
		t.Fatal(err)
	}
	if says := h.move(s); says != "" {
		t.Error("Home Assistant may not move what its permission says:", says)
	}
	s.Close()
	if out, err := h.site.CLI(t, "journal"); err != nil || !strings.Contains(out, "homeassistant:homeassistant") {
		t.Error("the journal does not say who moved it:", out, err)
	}

	// After a restart there is another URL, of the same announcement.
	h.site.Stop(t)
	h.start(fmt.Sprintf(appConfig, "read *", "on"))
	again := h.announced(2, "post")
	if again.UUID != first.UUID || again.Config["url"] == first.Config["url"] {
		t.Errorf("%+v after %+v", again, first)
	}
	if _, err := h.connect(first.Config["url"]); err == nil {
		t.Error("the URL of before the restart counts")
	}
	if s, err := h.connect(again.Config["url"]); err != nil {
		t.Error(err)
	} else {
		s.Close()
	}
	h.described(port, `"shed"`)
	h.reload("read *", "off")
	if last := h.announced(3, "delete"); last.UUID != first.UUID {
		t.Errorf("%+v", last)
	}

	// A section that goes while the app is off is one that is switched off.
	h.reload("read *", "on")
	h.announced(4, "post")
	h.site.Stop(t)
	h.start("site: { name: shed }\n")
	h.announced(5, "delete")
}

// TestHomeAssistantFirstStart: without a configuration the app makes one, by which Home Assistant sees the site and
// moves nothing.
func TestHomeAssistantFirstStart(t *testing.T) {
	h := newHomeApp(t, harness.NewPerson(t).Key(t).ID().String())
	port := h.broker()
	h.supervisor.SetBroker(map[string]any{"host": "127.0.0.1", "port": port, "username": "addons", "password": "secret"})
	h.start("")
	text, err := os.ReadFile(filepath.Join(h.folder, "agentsite.yaml"))
	if err != nil || !bytes.Contains(text, []byte("homeassistant.local")) || bytes.Contains(text, []byte("secret")) {
		t.Errorf("%v\n%s", err, text)
	}
	if out, err := h.site.CLI(t, "check", filepath.Join(h.folder, "agentsite.yaml")); err != nil {
		t.Error(out, err)
	}
	h.announced(1, "post")
	h.described(port, `"homeassistant"`)
}

// TestHomeAssistantIngress: users of Home Assistant have the site's page there, in Chromium, with the permission of
// Home Assistant and nothing of an owner's. The page keeps nothing in reach of Home Assistant's own pages, and nobody
// but the Supervisor reaches it, whatever a request says.
func TestHomeAssistantIngress(t *testing.T) {
	h := newHomeApp(t, "")
	h.start(fmt.Sprintf(appConfig, "read *", "on"))
	in := &supervisortest.Ingress{App: "127.0.0.1:" + h.port, Token: "vt0aXk", Session: "of ann", User: "ann", From: net.ParseIP("127.0.0.1")}
	core := httptest.NewServer(in)
	t.Cleanup(core.Close)
	at := core.URL + in.Prefix()
	session := []string{"Cookie", "ingress_session=of ann"}
	direct := h.from("127.0.0.1")

	// Before the site has an owner nobody is let in.
	for _, path := range []string{"page/session", "mcp"} {
		if code, text := h.ask(http.DefaultClient, map[string]string{"page/session": "GET", "mcp": "POST"}[path], at+path, "", session...); code != 401 {
			t.Errorf("%s of a site without an owner: %d %s", path, code, text)
		}
	}
	if code, text := h.ask(http.DefaultClient, "GET", at, "", session...); code != 503 {
		t.Errorf("the page of a site without an owner: %d %s", code, text)
	}
	if len(h.supervisor.Pushed()) != 0 {
		t.Error("a site without an owner is announced")
	}
	if err := os.WriteFile(h.options, fmt.Appendf(nil, `{"owner":%q}`, harness.NewPerson(t).Key(t).ID().String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h.site.Stop(t)
	h.start(fmt.Sprintf(appConfig, "read *, set box/relay max 1m", "on"))
	announced := h.announced(1, "post").Config["url"].(string)
	harness.WaitFor(t, 20*time.Second, "a user of Home Assistant", func() bool {
		code, text := h.ask(http.DefaultClient, "GET", at+"page/session", "", session...)
		return code == 200 && strings.Contains(text, `"homeassistant:homeassistant"`)
	})

	// Requests that are refused: the page only answers the Supervisor's address, and the announced URL Home Assistant's
	// network.
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	message := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}
	forged := append([]string{"X-Forwarded-For", "127.0.0.1", "X-Remote-User-Id", "0a1b2c3d", "X-Ingress-Path", "/api/hassio_ingress/vt0aXk", "X-Hass-Source", "core.ingress"}, message...)
	secret := urlPath(t, announced)
	for _, tt := range []struct {
		what string
		with *http.Client
		path string
		want int
	}{
		{"the Supervisor", direct, "/mcp", 200},
		{"a program beside it", h.from("127.0.0.9"), "/mcp", 403},
		{"another app", h.from("127.0.1.7"), "/mcp", 403},
		{"another app, the page", h.from("127.0.1.7"), "/page/session", 403},
		{"another app, the watchdog", h.from("127.0.1.7"), "/healthz", 403},
		{"another app with the announced path", h.from("127.0.1.7"), secret, 403},
		{"Home Assistant with a guessed path", h.from("127.0.0.9"), secret[:len(secret)-1] + "0", 403},
	} {
		verb := "POST"
		if !strings.Contains(tt.path, "mcp") {
			verb = "GET"
		}
		if code, text := h.ask(tt.with, verb, "http://app"+tt.path, call, forged...); code != tt.want {
			t.Errorf("%s: %d %s", tt.what, code, text)
		}
	}
	if code, _ := h.ask(h.from("127.0.0.9"), "POST", announced, call, message...); code != 200 {
		t.Errorf("Home Assistant by the announced URL: %d", code)
	}
	if code, _ := h.ask(h.from("127.0.0.9"), "POST", "http://rebound.example"+secret, call, message...); code != 403 {
		t.Errorf("by a name that is not announced: %d", code)
	}
	if code, _ := h.ask(http.DefaultClient, "POST", at+"mcp", call, append(message, "Cookie", "ingress_session=forged")...); code != 401 {
		t.Errorf("without a session of Home Assistant: %d", code)
	}
	for _, headers := range [][]string{{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		if code, _ := h.ask(http.DefaultClient, "POST", at+"mcp", call, append(append(message, session...), headers...)...); code != 403 {
			t.Errorf("a page with %q: %d", headers, code)
		}
	}
	// An owner's token is worth no more there, and what an owner does is not there.
	owners := strings.Replace(call, "tools/list", "owner/access", 1)
	for _, token := range []string{"", h.site.Token} {
		code, text := h.ask(http.DefaultClient, "POST", at+"mcp", owners, append([]string{"Content-Type", "application/json", "Accept", "application/json",
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "owner/access", "Authorization", "Bearer " + token}, session...)...)
		if !strings.Contains(text, `"error"`) || strings.Contains(text, `"result"`) {
			t.Errorf("an owner's method: %d %s", code, text)
		}
	}
	for _, path := range []string{"page/challenge", "page/key", "metrics", "owner", "a2a", ".well-known/agent-card.json"} {
		if code, text := h.ask(http.DefaultClient, "GET", at+path, "", session...); code != 404 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}

	t.Run("Chromium", func(t *testing.T) {
		chromium, _ := exec.LookPath("chromium")
		harness.Need(t, "chromium", chromium)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox,
			chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1200, 900))...)
		defer cancel()
		ctx, cancel = chromedp.NewContext(ctx)
		defer cancel()
		if err := chromedp.Do(ctx, chromedp.Navigate(core.URL+"/lovelace")); err != nil {
			t.Fatal(err)
		}
		is := func(what, expression string) {
			t.Helper()
			harness.WaitFor(t, 20*time.Second, what, func() bool {
				ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
				return err == nil && ok
			})
		}
		defer func() {
			if t.Failed() {
				t.Log(chromedp.Run(ctx, chromedp.Evaluate[string](`frames[0].document.body.innerText`)))
			}
		}()
		is("the page in Home Assistant", `frames[0].document.querySelector("[data-net=live]") && frames[0].document.querySelector("[data-site=shed]")`)
		is("the points", `(frames[0].location.hash = "site?s=shed") && frames[0].document.querySelector("main").innerText.toLowerCase().includes("box")`)
		moved, err := chromedp.Run(ctx, chromedp.Evaluate[string](`frames[0].fetch("mcp", { method: "POST", credentials: "same-origin",
			headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28",
				"Mcp-Method": "tools/call", "Mcp-Name": "switch_output" },
			body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "switch_output",
				arguments: { output: "box/relay", on: true, for_seconds: 30 }, _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28",
					"io.modelcontextprotocol/clientCapabilities": {} } } }) }).then(r => r.text())`, chromedp.EvalAwaitPromise))
		if err != nil || !strings.Contains(moved, `"value":true`) {
			t.Errorf("a move from the page: %s, %v", moved, err)
		}
		is("the page shows that its user moved it", `frames[0].document.querySelector("main").innerText.includes("You ")`)
		is("nothing is kept", `sessionStorage.length === 0 && !Object.keys(localStorage).some(k => /token|key|site/.test(k))`)
		stored, err := chromedp.Run(ctx,
			chromedp.Evaluate[int]("indexedDB.databases().then(all => all.length)", chromedp.EvalAwaitPromise))
		if err != nil || stored != 0 {
			t.Errorf("%d databases, %v", stored, err)
		}
	})
}

func urlPath(t *testing.T, text string) string {
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u.Path
}
