//go:build e2e

package public

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// TestGo: at the site's domain, a client by the Go SDK signs in, asks for more when it needs more, and signs in again after its end.
func TestGo(t *testing.T) { newDomain(t).byGo(t, "box") }

// byGo is TestGo at a site with a relay, the device. It returns the client's access token.
func (p *place) byGo(t testing.TB, device string) (token string) {
	t.Helper()
	const callback = "http://127.0.0.1:1/callback"
	may, consents := "read *", 0
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{callback}, ClientName: "Go SDK", GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			consents++
			v := p.consentTo(t, args.URL, may, callback)
			if v.Get("error") != "" {
				return nil, errors.New(v.Get("error"))
			}
			return &auth.AuthorizationResult{Code: v.Get("code"), State: v.Get("state"), Iss: v.Get("iss")}, nil
		},
		RequestRefreshToken: true, Client: p.http,
	})
	if err != nil {
		t.Fatal(err)
	}
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
	read := map[string]any{"points": []string{device + "/relay"}}
	call("read_points", read)
	if consents != 1 {
		t.Errorf("%d consents", consents)
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

// consentTo is consent for a client whose own address nobody listens at: it returns the query with which the browser
// would be sent there.
func (p *place) consentTo(t testing.TB, at, may, callback string) url.Values {
	t.Helper()
	sent := ""
	follow := *p.http
	follow.CheckRedirect = stopAt(callback, &sent)
	p.follow(t, &follow, at, may, func() bool { return sent != "" })
	u, err := url.Parse(sent)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}
