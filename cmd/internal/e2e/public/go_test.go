//go:build e2e

package public

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// TestGo: at the site's domain, a client by the Go SDK signs in, lists and calls, refreshes, asks for more when it
// needs more, and signs in again after its end.
func TestGo(t *testing.T) { newDomain(t).byGo(t, "box") }

// endsTokens has a client believe that the access tokens which it gets end soon, and counts how often it refreshes
// them.
type endsTokens struct {
	http.RoundTripper
	refreshed int
}

var lifeInAnswer = regexp.MustCompile(`"expires_in":\d+`)

func (e *endsTokens) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/token" {
		return e.RoundTripper.RoundTrip(r)
	}
	asks, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(asks, []byte("grant_type=refresh_token")) {
		e.refreshed++
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(asks))
	res, err := e.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	text = lifeInAnswer.ReplaceAll(text, []byte(`"expires_in":1`))
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return res, err
}

// goSignIn returns a sign-in of clients by the Go SDK, which trades tokens through a client. may is called at each one,
// and returns what the owner allows.
func (p *place) goSignIn(t testing.TB, through *http.Client, may func() string) *auth.AuthorizationCodeHandler {
	t.Helper()
	const callback = "http://127.0.0.1:1/callback"
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{callback}, ClientName: "Go SDK", GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			v := p.consent(t, args.URL, may()).Query()
			if v.Get("error") != "" {
				return nil, errors.New(v.Get("error"))
			}
			return &auth.AuthorizationResult{Code: v.Get("code"), State: v.Get("state"), Iss: v.Get("iss")}, nil
		},
		RequestRefreshToken: true, Client: through,
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// byGo is TestGo at a site with a relay, the device. It returns the client's access token.
func (p *place) byGo(t testing.TB, device string) (token string) {
	t.Helper()
	may, consents := "read *", 0
	by := &endsTokens{RoundTripper: p.http.Transport}
	through := &http.Client{Transport: by, Timeout: p.http.Timeout}
	handler := p.goSignIn(t, through, func() string { consents++; return may })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	connect := func() *mcp.ClientSession {
		t.Helper()
		c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
		s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: p.url, OAuthHandler: handler, HTTPClient: p.http}, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, p.Log)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := connect()
	call := func(tool string, args map[string]any) {
		t.Helper()
		res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil || res.IsError {
			t.Fatalf("%s: %v %+v\n%s", tool, err, res, p.Log)
		}
	}
	listed, err := s.ListTools(ctx, nil)
	if err != nil || !hasTool(listed, "read_points") || !hasTool(listed, "switch_output") {
		t.Errorf("%v %+v", err, listed)
	}
	read := map[string]any{"points": []string{device + "/relay"}}
	call("read_points", read)
	if consents != 1 || by.refreshed == 0 {
		t.Errorf("%d consents, %d refreshes", consents, by.refreshed)
	}
	may = "read *, set " + device + " max 10s"
	call("switch_output", map[string]any{"output": device + "/relay", "on": true, "for_seconds": 1})
	if consents != 2 {
		t.Errorf("%d consents after a call that needed more", consents)
	}
	p.owner(t, "revoke", "go-sdk")
	s = connect()
	call("read_points", read)
	if consents != 3 {
		t.Errorf("%d consents after the end", consents)
	}
	source, err := handler.TokenSource(ctx)
	if err != nil {
		t.Fatal(err)
	}
	has, err := source.Token()
	if err != nil {
		t.Fatal(err)
	}
	return has.AccessToken
}

func hasTool(listed *mcp.ListToolsResult, name string) bool {
	return listed != nil && slices.ContainsFunc(listed.Tools, func(t *mcp.Tool) bool { return t.Name == name })
}
