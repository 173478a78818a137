//go:build e2e

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"
)

var pictures = flag.String("pictures", "", "how the files begin to which TestApps writes pictures of the view; none "+
	"when left out")

// policy holds the sources that a host of MCP Apps lets a page load from that declares nothing, by the specification of 2026-01-26.
const policy = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; media-src 'self' data:; connect-src 'none'"

// apps is Chromium with a host of MCP Apps: AppBridge, whose view runs in a frame without an origin of its own, within
// a frame of a second one.
type apps struct {
	t       *testing.T
	ctx     context.Context
	site    *harness.Site
	sandbox string
	html    string // the view, as the site gives it

	mu       sync.Mutex
	frame    runtime.ExecutionContextID // of the view
	expected string                     // errors with this text are right; "" for none
}

func startApps(t *testing.T) *apps {
	t.Helper()
	chromium, _ := exec.LookPath("chromium")
	harness.Need(t, "chromium", chromium)
	a := &apps{t: t, site: harness.Start(t, "", harness.Need(t, "the program", harness.Program))}
	sandbox := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		http.ServeFile(w, r, "testdata/apps/sandbox.html")
	}))
	t.Cleanup(sandbox.Close)
	a.sandbox = sandbox.URL
	script := bundleHost(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `<!doctype html><link rel="icon" href="data:,"><body><script src="host.js"></script></body>`)
	})
	mux.HandleFunc("GET /host.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		w.Write(script)
	})
	mux.HandleFunc("POST /call", func(w http.ResponseWriter, r *http.Request) {
		var p struct {
			Name      string         `json:"name"`
			Arguments map[string]any `json:"arguments"`
		}
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			t.Error(err)
		}
		json.NewEncoder(w).Encode(a.call(p.Name, p.Arguments))
	})
	host := httptest.NewServer(mux)
	t.Cleanup(host.Close)

	tools := a.ask("tools/list", "", map[string]any{})
	var uri string
	for _, tool := range tools["tools"].([]any) {
		if meta, ok := tool.(map[string]any)["_meta"].(map[string]any); ok {
			uri = meta["ui"].(map[string]any)["resourceUri"].(string)
		}
	}
	read := a.ask("resources/read", uri, map[string]any{"uri": uri})
	a.html = read["contents"].([]any)[0].(map[string]any)["text"].(string)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	// The frames are of one process, so that the view's is seen like every other.
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(
		chromium,
	), chromedp.NoSandbox,
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-component-update", true), chromedp.WindowSize(720, 900),
		chromedp.Flag(
			"disable-features", "IsolateSandboxedIframes,IsolateOrigins,site-per-process",
		), chromedp.Flag("disable-site-isolation-trials", true))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	a.ctx = ctx
	if err := chromedp.Listen(ctx, a.see); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(host.URL)); err != nil {
		t.Fatal(err)
	}
	return a
}

// bundleHost makes the host's script, with the parts of npm.
func bundleHost(t *testing.T) []byte {
	modules := harness.Need(t, "npm packages", os.Getenv("NPM_MODULES"))
	entry, err := filepath.Abs("testdata/apps/host.js")
	if err != nil {
		t.Fatal(err)
	}
	r := api.Build(api.BuildOptions{EntryPoints: []string{
		entry,
	}, Bundle: true, NodePaths: []string{modules}, Format: api.FormatIIFE,
		Platform: api.PlatformBrowser, Charset: api.CharsetUTF8, LogLevel: api.LogLevelSilent})
	if len(r.Errors) > 0 {
		t.Fatalf("%+v", r.Errors)
	}
	return r.OutputFiles[0].Contents
}

// see notes the frame of the view, and fails the test for errors.
func (a *apps) see(event any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	says := ""
	switch e := event.(type) {
	case *runtime.EventExecutionContextCreated:
		if !strings.HasPrefix(e.Context.Origin, "http") && strings.Contains(string(e.Context.AuxData), `"isDefault":true`) {
			a.frame = e.Context.ID
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" {
			says = e.Entry.Text
		}
	case *runtime.EventExceptionThrown:
		says = fmt.Sprintf("an exception: %+v", e.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" {
			says = fmt.Sprintf("the console: %+v", e.Args)
		}
	}
	if says != "" && (a.expected == "" || !strings.Contains(says, a.expected)) {
		a.t.Error(says)
	}
}

// ask asks the site by the newest revision, as a client that has the view, and returns the result.
func (a *apps) ask(method, name string, params map[string]any) map[string]any {
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": map[string]any{
			"io.modelcontextprotocol/ui": map[string]any{"mimeTypes": []string{"text/html;profile=mcp-app"}},
		}},
	}
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	r, err := http.NewRequest(http.MethodPost, a.site.URL+"/mcp", bytes.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	for name, v := range map[string]string{
		"Authorization": "Bearer " + a.site.Token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		r.Header.Set(name, v)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Error(err)
		return nil
	}
	defer res.Body.Close()
	var answer struct {
		Result map[string]any `json:"result"`
		Error  map[string]any `json:"error"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || answer.Error != nil {
		a.t.Error(method, name, answer.Error, err)
	}
	return answer.Result
}

// call calls a tool and returns its result, as a host passes it on.
func (a *apps) call(tool string, args map[string]any) map[string]any {
	r := a.ask("tools/call", tool, map[string]any{"name": tool, "arguments": args})
	if r["content"] == nil {
		r["content"] = []any{}
	}
	return r
}

// value returns a point's value at the site.
func (a *apps) value(point string) any {
	r := a.call("read_points", map[string]any{"points": []string{point}})
	return r["structuredContent"].(map[string]any)["readings"].([]any)[0].(map[string]any)["value"]
}

// show shows a result in the view. more are options of the host's show.
func (a *apps) show(args, result, more map[string]any) {
	a.t.Helper()
	o := map[string]any{"html": a.html, "sandbox": a.sandbox, "args": args, "result": result}
	for name, v := range more {
		o[name] = v
	}
	text, _ := json.Marshal(o)
	a.inHost("show(" + string(text) + ")")
}

// structured is a result of a tool.
func structured(v any) map[string]any {
	return map[string]any{"content": []any{}, "structuredContent": v}
}

// inHost evaluates an expression in the host's page.
func (a *apps) inHost(expression string) any {
	a.t.Helper()
	v, err := chromedp.Run(a.ctx, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		a.t.Fatal(expression[:min(len(expression), 200)], err)
	}
	return v
}

// try evaluates an expression in the view.
func (a *apps) try(expression string) (any, error) {
	a.mu.Lock()
	frame := a.frame
	a.mu.Unlock()
	return chromedp.Run(a.ctx, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise,
		func(p *runtime.EvaluateParams) { p.ContextID = frame }))
}

func (a *apps) inView(expression string) any {
	a.t.Helper()
	v, err := a.try(expression)
	if err != nil {
		a.t.Fatal(expression[:min(len(expression), 200)], err)
	}
	return v
}

// is waits until an expression is true in the view.
func (a *apps) is(most time.Duration, expression string) {
	a.t.Helper()
	harness.WaitFor(a.t, most, expression, func() bool {
		ok, err := a.try("!!(" + expression + ")")
		return err == nil && ok == true
	})
}

// picture writes a picture, where that is asked for.
func (a *apps) picture(name string) {
	a.t.Helper()
	if *pictures == "" {
		return
	}
	picture, err := chromedp.Run(a.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(*pictures+name+".png", picture, 0o666)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

func quote(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
