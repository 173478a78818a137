//go:build e2e

package public

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// homeAssistant does what the integration mcp of Home Assistant does at a URL (home-assistant/core,
// components/mcp: config_flow.py and registration.py of 00b00102, auth.py of 048ce0ea;
// helpers/config_entry_oauth2_flow.py).
type homeAssistant struct {
	*testing.T
	*place
	client, token, refresh string
	tokens                 string // the URL
}

// ask returns the answer to a request, and its JSON. A nil form is a GET.
func (h *homeAssistant) ask(at string, form url.Values) (res *http.Response, v map[string]any) {
	h.Helper()
	var err error
	if form == nil {
		res, err = h.http.Get(at)
	} else {
		res, err = h.http.PostForm(at, form)
	}
	return res, h.answer(res, err)
}

func (h *homeAssistant) answer(res *http.Response, err error) (v map[string]any) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 == 2 {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		h.Fatalf("%v: %s", err, text)
	}
	return v
}

func words(v any) (all []string) {
	list, _ := v.([]any)
	for _, w := range list {
		all = append(all, w.(string))
	}
	return all
}

// add adds the integration by the site's URL, and the owner allows it.
func (h *homeAssistant) add(may string) {
	h.Helper()
	const callback = "https://my.home-assistant.io/redirect/oauth"
	hello := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcp","version":"0.1.0"}}}`
	r, err := http.NewRequestWithContext(h.Context(), "POST", h.url, strings.NewReader(hello))
	if err != nil {
		h.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := h.http.Do(r)
	h.answer(res, err)
	header := res.Header.Get("WWW-Authenticate")
	at := regexp.MustCompile(`resource_metadata="([^"]+)"`).FindStringSubmatch(header)
	if res.StatusCode != 401 || at == nil {
		h.Fatalf("%d %q", res.StatusCode, header)
	}
	_, resource := h.ask(at[1], nil)
	servers := words(resource["authorization_servers"])
	if resource["resource"] != h.url || len(servers) == 0 { // compared as text
		h.Fatalf("%v", resource)
	}
	server, err := url.Parse(servers[0])
	if err != nil || server.Path != "" && server.Path != "/" {
		h.Fatal(servers, err)
	}
	_, meta := h.ask(server.JoinPath("/.well-known/oauth-authorization-server").String(), nil)
	scopes := words(resource["scopes_supported"])
	if m := regexp.MustCompile(`scope="([^"]+)"`).FindStringSubmatch(header); m != nil {
		scopes = strings.Split(m[1], " ")
	} else if scopes == nil {
		scopes = words(meta["scopes_supported"])
	}
	if !slices.Contains(words(meta["token_endpoint_auth_methods_supported"]), "none") {
		h.Fatalf("%v", meta)
	}
	asks := map[string]any{
		"redirect_uris": []string{callback}, "token_endpoint_auth_method": "none",
		"grant_types":    []string{"authorization_code", "refresh_token"},
		"response_types": []string{"code"}, "client_name": "Home Assistant", "application_type": "web",
	}
	if scopes != nil {
		asks["scope"] = strings.Join(scopes, " ")
	}
	body, err := json.Marshal(asks)
	if err != nil {
		h.Fatal(err)
	}
	res, err = h.http.Post(meta["registration_endpoint"].(string), "application/json", bytes.NewReader(body))
	registered := h.answer(res, err)
	h.client, _ = registered["client_id"].(string)
	granted, said := registered["scope"].(string)
	expires, _ := registered["client_secret_expires_at"].(float64)
	if h.client == "" || registered["redirect_uris"] != nil && !slices.Contains(words(registered["redirect_uris"]), callback) || expires != 0 ||
		registered["token_endpoint_auth_method"] != nil && registered["token_endpoint_auth_method"] != "none" {
		h.Fatalf("%d %v", res.StatusCode, registered)
	}
	for _, s := range scopes {
		if said && !slices.Contains(strings.Fields(granted), s) {
			h.Errorf("the scope %s is not granted: %v", s, registered)
		}
	}

	// The state of my.home-assistant.io is a JSON Web Token, of which the length counts here.
	verifier, state := strings.Repeat("v", 128), strings.Repeat("s", 400)
	sum := sha256.Sum256([]byte(verifier))
	to, err := url.Parse(meta["authorization_endpoint"].(string))
	if err != nil {
		h.Fatal(err)
	}
	q := url.Values{
		"response_type": {"code"}, "client_id": {h.client}, "redirect_uri": {callback}, "state": {state},
		"access_type": {"offline"}, "prompt": {"consent"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	if scopes != nil {
		q.Set("scope", strings.Join(scopes, " "))
	}
	to.RawQuery = q.Encode()
	back := h.consent(h.T, to.String(), may)
	if back.Query().Get("state") != state || !strings.HasPrefix(back.String(), callback+"?") {
		h.Fatal(back)
	}
	h.tokens = meta["token_endpoint"].(string)
	h.take(url.Values{"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "redirect_uri": {callback}, "code_verifier": {verifier}})
}

// take asks for tokens. expires_in has to be there, and the refresh token.
func (h *homeAssistant) take(form url.Values) {
	h.Helper()
	form.Set("client_id", h.client)
	res, v := h.ask(h.tokens, form)
	token, _ := v["access_token"].(string)
	life, _ := v["expires_in"].(float64)
	if token == "" || life <= 0 {
		h.Fatalf("%d %v\n%s", res.StatusCode, v, h.Site.Log)
	}
	h.token = token
	if refresh, ok := v["refresh_token"].(string); ok { // otherwise it keeps the former one
		h.refresh = refresh
	}
}

// RoundTrip adds the token, as to each request of a session.
func (h *homeAssistant) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+h.token)
	return h.http.Transport.RoundTrip(r)
}

// session does something in a session of its own, as each call there does.
func (h *homeAssistant) session(do func(*mcp.ClientSession) (*mcp.CallToolResult, error)) (*mcp.CallToolResult, error) {
	h.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "mcp", Version: "0.1.0"}, nil).Connect(h.Context(),
		&mcp.StreamableClientTransport{Endpoint: h.url, HTTPClient: &http.Client{Transport: h}}, nil)
	if err != nil {
		h.Fatalf("%v\n%s", err, h.Site.Log)
	}
	defer s.Close()
	if s.InitializeResult().Capabilities.Tools == nil {
		h.Error("no tools") // it would refuse the site
	}
	return do(s)
}

// TestHomeAssistant: the steps of Home Assistant's MCP client at the site's domain: it finds the way to sign in,
// registers, is allowed, lists tools and calls them in a session each, refreshes, and is told when its permission ends.
func TestHomeAssistant(t *testing.T) {
	h := &homeAssistant{T: t, place: newDomain(t)}
	h.add("read *, set box max 10s")
	call := func(tool string, args map[string]any) func(*mcp.ClientSession) (*mcp.CallToolResult, error) {
		return func(s *mcp.ClientSession) (*mcp.CallToolResult, error) {
			return s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		}
	}
	for range 2 {
		h.session(func(s *mcp.ClientSession) (*mcp.CallToolResult, error) {
			listed, err := s.ListTools(t.Context(), nil)
			if err != nil || !hasTool(listed, "read_points") || !hasTool(listed, "switch_output") {
				t.Errorf("%v %+v", err, listed)
			}
			return nil, nil
		})
		if res, err := h.session(call("read_points", map[string]any{"points": []string{"box/relay"}})); err != nil || res.IsError {
			t.Errorf("%v %+v", err, res)
		}
		if res, err := h.session(call("switch_output", map[string]any{"output": "box/relay", "on": true, "for_seconds": 1})); err != nil || res.IsError {
			t.Errorf("%v %+v", err, res)
		}
		h.take(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {h.refresh}})
	}
	h.owner(t, "revoke", "home-assistant")
	r, err := http.NewRequestWithContext(t.Context(), "POST", h.url, strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"tools/list"}`))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := h.RoundTrip(r); err != nil || res.StatusCode != 401 { // which asks its owner to sign in again
		t.Errorf("%v %v", res, err)
	} else {
		res.Body.Close()
	}
}
