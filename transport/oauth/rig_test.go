package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/agents/principal"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/transport/rpc"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

const (
	testHost = "garden.example.org"
	testBase = "https://" + testHost
)

// rig is a site at which clients sign in, and its owner.
type rig struct {
	*Server
	owner   identity.Key
	handler http.Handler
	store   []byte
	writes  int
	sure    bool          // the time is known
	ahead   time.Duration // of the system's clock
	docs    map[string]string
	from    string // the network of requests
	lacked  []string
	widened bool // after the permission was looked at
	full    bool // the disk
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{owner: identity.New(), sure: true, docs: make(map[string]string), from: "198.51.100.7:1234"}
	key := identity.New()
	r.open(t, key)
	if err := r.Access.Claim(access.Owner{ID: r.owner.ID()}); err != nil {
		t.Fatal(err)
	}
	r.writes = 0
	return r
}

// open starts the site, again with what it stored.
func (r *rig) open(t *testing.T, key identity.Key) {
	t.Helper()
	store, err := access.NewStore(access.Options{
		Site: key.ID(), URL: "https://lan/mcp", Access: r.store,
		SystemClock: func() (time.Time, bool) { return time.Now().Add(r.ahead), r.sure },
		SaveAccess:  r.save, SaveCounts: func([]byte) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	store.SetSignInURL(testBase + "/mcp")
	r.Server = New(Options{Key: key, Name: "garden", URL: testBase + "/mcp", Access: store, Fetch: r.fetch, Lacks: r.lacks})
	mcp := web.Route{Pattern: "/mcp", Admission: web.Strangers, Serve: func(w http.ResponseWriter, _ *http.Request, c web.Caller) {
		w.Write([]byte(c.Who.ID))
	}}
	other := web.Route{Pattern: "/api", Admission: web.Principals, Serve: mcp.Serve}
	r.handler = web.Handler(web.Options{
		Hosts: []string{testHost, "lan"}, Callers: callers{store}, SignIn: r.SignIn(),
		Routes: append(r.Routes(), append(web.PublicRoutes(), r.Bind(mcp), other)...),
	})
}

func (r *rig) save(b []byte) error {
	if r.full {
		return syscall.ENOSPC
	}
	r.store = b
	r.writes++
	return nil
}

func (r *rig) fetch(_ context.Context, url string) ([]byte, error) {
	if text, ok := r.docs[url]; ok {
		return []byte(text), nil
	}
	return nil, errors.New("404")
}

// lacks decides by the words of permissions, and notes the call.
func (r *rig) lacks(who principal.Principal, tool string, args rpc.Raw) error {
	var in struct {
		Output string `json:"output"`
	}
	if err := args.Decode(&in); err != nil {
		return err
	}
	r.lacked = append(r.lacked, tool+" "+in.Output)
	if r.widened || slices.Contains(r.Access.Scopes(who), access.ScopeOf(tool)) {
		return nil
	}
	return errors.New("an owner was asked")
}

// callers authenticates by the store.
type callers struct{ *access.Store }

func (c callers) Key(key string) (principal.Principal, error) { return c.Peer(key) }

func (c callers) Bearer(token string, here bool) (principal.Principal, error) {
	if here && token == "site's own" {
		return principal.Principal{Kind: principal.SiteToken, ID: principal.SiteTokenID, Account: "token"}, nil
	}
	return c.Store.Bearer(token)
}

// do sends a request to the site's public host; change may be nil.
func (r *rig) do(method, target, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, "https://"+testHost+target, strings.NewReader(body))
	q.RemoteAddr = r.from
	if method == http.MethodPost && body != "" {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(q)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	return w
}

// decode returns the members of an answer in JSON.
func decode(t *testing.T, w *httptest.ResponseRecorder) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return v
}

// register registers a client, and returns its identifier and secret.
func (r *rig) register(t *testing.T, metadata string) (id, secret string) {
	t.Helper()
	w := r.do("POST", "/register", metadata, func(q *http.Request) { q.Header.Set("Content-Type", "application/json") })
	if w.Code != http.StatusCreated {
		t.Fatalf("%d %s of %s", w.Code, w.Body, metadata)
	}
	v := decode(t, w)
	secret, _ = v["client_secret"].(string)
	return v["client_id"].(string), secret
}

const (
	callback = "https://claude.ai/api/mcp/auth_callback"
	verifier = "0123456789-0123456789-0123456789-0123456789"
)

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// authorizing returns a good authorization request, for a test to change.
func authorizing(id string) url.Values {
	return url.Values{
		"client_id": {id}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"a b"}, "scope": {"read set"},
		"code_challenge": {challenge()}, "code_challenge_method": {"S256"}, "resource": {testBase + "/mcp"}, "prompt": {"consent"},
	}
}

// start sends a request, and returns the path of the page that waits.
func (r *rig) start(t *testing.T, v url.Values) (page string) {
	t.Helper()
	w := r.do("GET", "/authorize?"+v.Encode(), "", nil)
	page = w.Header().Get("Location")
	if w.Code != http.StatusSeeOther || !strings.HasPrefix(page, "/authorize/") {
		t.Fatalf("%d %s %s", w.Code, page, w.Body)
	}
	return page
}

// grant signs a permission as the owner.
func (r *rig) grant(t *testing.T, words string) []byte {
	t.Helper()
	may, err := access.ParsePermissions(words)
	if err != nil {
		t.Fatal(err)
	}
	g, err := access.Issue(r.owner, access.Block{Audience: r.Key.ID(), Permissions: may, Until: time.Now().Add(30 * 24 * time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	return g.Bytes()
}

// allow answers the only request that waits.
func (r *rig) allow(t *testing.T, name, words string) {
	t.Helper()
	all := r.Waiting()
	if len(all) != 1 {
		t.Fatalf("%d wait", len(all))
	}
	if err := r.Allow(all[0].Handle, name, r.grant(t, words)); err != nil {
		t.Fatal(err)
	}
}

// sentBack loads a page that waits, and returns the query with which the browser is sent back.
func (r *rig) sentBack(t *testing.T, page string) url.Values {
	t.Helper()
	w := r.do("GET", page, "", nil)
	to, err := url.Parse(w.Header().Get("Location"))
	if err != nil || w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return to.Query()
}

// tokens posts a form to the token endpoint.
func (r *rig) tokens(t *testing.T, form url.Values) (status int, v map[string]any) {
	t.Helper()
	w := r.do("POST", "/token", form.Encode(), nil)
	return w.Code, decode(t, w)
}

func codeForm(id, code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {callback}, "resource": {testBase + "/mcp"}}
}

func refreshForm(id, token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {token}}
}

// signedIn signs a client in under a name.
func (r *rig) signedIn(t *testing.T, id, name, words string) (accessToken, refreshToken string) {
	t.Helper()
	page := r.start(t, authorizing(id))
	r.allow(t, name, words)
	status, v := r.tokens(t, codeForm(id, r.sentBack(t, page).Get("code")))
	if status != http.StatusOK {
		t.Fatal(status, v)
	}
	return v["access_token"].(string), v["refresh_token"].(string)
}

func bearer(token string) func(*http.Request) {
	return func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+token) }
}

const claude = `{"client_name":"Claude","redirect_uris":["` + callback + `"],"token_endpoint_auth_method":"none"}`
