package supervisor

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"agentsite/agents/principal"
	"agentsite/device"
)

// URL is the address of the Supervisor for apps, and Listen the one at which it calls an app. Both are
// Home Assistant's own (docs/apps/presentation.md, section Ingress).
const (
	URL    = "http://172.30.32.2"
	Listen = ":8099"
)

// App is this program as the Supervisor runs it. Its methods are safe for concurrent use.
type App struct {
	Client *Client
	// Read and Write keep the name of the announcement over restarts; "" for none.
	Read  func() string
	Write func(uuid string) error

	from netip.Addr // the Supervisor's
	host string     // by which Home Assistant calls the app
	path string     // of MCP, which nobody guesses

	telling sync.Mutex // one at a time tells Home Assistant something

	mu  sync.Mutex
	who principal.Principal // the zero one while nobody is let in
	why string              // that is so
}

// NewApp returns the app at a host and port, by which Home Assistant calls it.
func NewApp(c *Client, host string) (*App, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	from, err := netip.ParseAddr(u.Hostname())
	if err != nil || u.Scheme != "http" {
		return nil, fmt.Errorf("%.80q is no URL of a Supervisor, such as %s: it is known by its IP address", c.URL, URL)
	}
	if c.Token == "" {
		return nil, fmt.Errorf("SUPERVISOR_TOKEN is not set: this is for Home Assistant's Supervisor, which starts its apps with it")
	}
	return &App{Client: c, from: from, host: host, path: "/mcp/" + rand.Text(), why: notRunning}, nil
}

const notRunning = "the agent " + KindName + " is paused, or its section is not in agentsite.yaml"

// Host returns the host by which Home Assistant calls the app.
func (a *App) Host() string { return a.host }

// open lets what Home Assistant passes on call as who.
func (a *App) open(who principal.Principal) {
	who.Account = who.ID
	a.mu.Lock()
	defer a.mu.Unlock()
	a.who, a.why = who, ""
}

// close lets nobody in, and says why.
func (a *App) close(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.who, a.why = principal.Principal{}, why
}

// Key implements web.Callers. A key proves nothing behind a proxy.
func (a *App) Key(string) (principal.Principal, error) { return a.Bearer("", false) }

// Bearer implements web.Callers. Whoever calls, and whatever else the call shows, has the permission of Home
// Assistant's users and no other.
func (a *App) Bearer(string, bool) (principal.Principal, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why != "" {
		return principal.Principal{}, device.Faultf(device.Denied, "%s", a.why)
	}
	return a.who, nil
}

// Handler serves the page to the Supervisor alone, and MCP to Home Assistant at the announced path. The latter is
// on the Supervisor's own network (172.30.32.0/24 of 172.30.32.0/23, in supervisor/const.py), where other apps are not.
func (a *App) Handler(page, mcp http.Handler) http.Handler {
	own := netip.PrefixFrom(a.from, 24).Masked()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, err := netip.ParseAddrPort(r.RemoteAddr)
		from := at.Addr().Unmap()
		is := subtle.ConstantTimeCompare([]byte(strings.TrimSuffix(r.URL.Path, "/")), []byte(a.path)) == 1
		switch {
		case err == nil && is && own.Contains(from):
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = "/mcp", ""
			mcp.ServeHTTP(w, r)
		case err == nil && from == a.from:
			if _, closed := a.Bearer("", false); closed != nil && r.URL.Path == "/" {
				http.Error(w, "agentsite: "+closed.Error(), http.StatusServiceUnavailable) // shown in the page's place
				return
			}
			page.ServeHTTP(w, r)
		default:
			http.Error(w, "this is for Home Assistant alone", http.StatusForbidden)
		}
	})
}
