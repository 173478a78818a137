package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"agentsite/node/quota"
	"agentsite/transport/web/outbound"
)

// Fetch fetches the document of a client from its URL.
type Fetch func(ctx context.Context, url string) ([]byte, error)

const (
	fetchTime     = 5 * time.Second
	maxFetches    = 8 // at a time
	maxOfNetwork  = 2 // of these, for one network
	documentAge   = time.Hour
	maxRemembered = 64
)

// documents are the clients whose identifier is the URL of their metadata (Client ID Metadata Documents).
type documents struct {
	fetch Fetch
	slots *quota.Quota
	rate  *quota.RateLimiter // of fetches, by network

	mu  *sync.Mutex
	all map[string]fetched
}

type fetched struct {
	client client
	at     time.Time
}

func newDocuments(fetch Fetch) documents {
	if fetch == nil {
		c := outbound.Client(fetchTime)
		fetch = func(ctx context.Context, url string) ([]byte, error) { return outbound.Get(ctx, c, url, maxDocument) }
	}
	return documents{
		fetch: fetch, slots: new(quota.Quota), rate: &quota.RateLimiter{Rate: quota.Rate{PerSecond: 0.1, Burst: 10}},
		mu: new(sync.Mutex), all: make(map[string]fetched),
	}
}

// known are the documents of clients whose own servers do not always answer, as of November 2026.
var known = map[string]client{
	"https://claude.ai/oauth/mcp-oauth-client-metadata": {
		Name: "Claude", Redirects: []string{"https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"},
	},
	"https://claude.ai/oauth/claude-code-client-metadata": {
		Name: "Claude Code", Redirects: []string{"http://localhost/callback", "http://127.0.0.1/callback"},
	},
	"https://chatgpt.com/oauth/client.json": {
		Name: "ChatGPT", Redirects: []string{"https://chatgpt.com/connector_platform_oauth_redirect"},
	},
	"https://vscode.dev/oauth/client-metadata.json": {
		Name:      "Visual Studio Code",
		Redirects: []string{"http://127.0.0.1:33418/", "http://127.0.0.1/", "https://vscode.dev/redirect"},
	},
}

// checkDocumentURL accepts the URL of a client's document. It has one form, so that no two look alike.
func checkDocumentURL(text string) error {
	u, err := url.Parse(text)
	if err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.Port() == "" && !strings.Contains(u.Host, ":") &&
		!strings.ContainsAny(text, "#?\\") && len(text) <= maxRedirect && isPlainHost(u.Host) &&
		len(u.Path) > 1 && u.Path == pathOf(text, u) && u.String() == text && strings.Contains(u.Host, ".") {
		if _, err := netip.ParseAddr(u.Host); err != nil {
			return nil
		}
	}
	return errors.New("client_id is neither one that registered here nor the https URL of a client's metadata")
}

// pathOf returns the path as it is written, "" if it has a segment that names another folder.
func pathOf(text string, u *url.URL) string {
	for part := range strings.SplitSeq(u.Path, "/") {
		if part == "." || part == ".." {
			return ""
		}
	}
	return strings.TrimPrefix(text, "https://"+u.Host)
}

// errBusy is returned where a document cannot be fetched now.
var errBusy = errors.New("too many clients are looked up at a time: try again in some seconds")

// client returns the client with a URL as its identifier, for a network that asks.
func (d *documents) client(ctx context.Context, id string, from netip.Prefix) (c client, err error) {
	if err := checkDocumentURL(id); err != nil {
		return c, err
	}
	d.mu.Lock()
	have, ok := d.all[id]
	d.mu.Unlock()
	if ok && time.Since(have.at) < documentAge {
		return have.client, nil
	}
	if c, err = d.ask(ctx, id, from); err != nil {
		pinned, isPinned := known[id]
		switch {
		case ok:
			return have.client, nil // older, but its own
		case isPinned:
			pinned.id = id
			return pinned, nil
		}
		return c, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) >= maxRemembered {
		clear(d.all)
	}
	d.all[id] = fetched{c, time.Now()}
	return c, nil
}

// ask fetches a document.
func (d *documents) ask(ctx context.Context, id string, from netip.Prefix) (c client, err error) {
	limits := []quota.Limit{{Group: "all", Most: maxFetches}, {Group: from, Most: maxOfNetwork}}
	if !d.rate.Allow(from) || !d.slots.Take(limits...) {
		return c, errBusy
	}
	defer d.slots.Release(limits...)
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	text, err := d.fetch(ctx, id)
	if err != nil { // the browser is told no cause: it would tell strangers about this network
		slog.Warn("metadata of a client cannot be fetched", "client", id, "from", from, "err", err)
		return c, fmt.Errorf("the program's description at %s cannot be fetched; the site's log says why", id)
	}
	if len(text) > maxDocument {
		return c, errors.New("the client's metadata is too long")
	}
	c, said, err := parseMetadata(text)
	switch {
	case err != nil:
		return c, err
	case said != id:
		return c, fmt.Errorf("the metadata at %s is of another client", id)
	}
	// It has no secret with this site. What it sends beside its identifier is passed over.
	c.Auth, c.id = "", id
	return c, nil
}
