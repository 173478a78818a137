package oauth

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/transport/rpc"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSignIn: a client registers, an owner allows it, and it calls; nothing is stored before, and what it may do
// ends at once.
func TestSignIn(t *testing.T) {
	r := newRig(t)
	id, secret := r.register(t, claude)
	if secret != "" {
		t.Error("a public client has a secret")
	}
	page := r.start(t, authorizing(id))
	for range 3 {
		if w := r.do("GET", page, "", nil); w.Code != 200 || !strings.Contains(w.Body.String(), "http-equiv=refresh") {
			t.Fatal(w.Code, w.Body)
		}
	}
	all := r.Waiting()
	if len(all) != 1 || all[0].Client != "Claude" || all[0].Host != "claude.ai" || all[0].From != "198.51.100.7" || strings.Join(all[0].Asks, " ") != "read set" {
		t.Fatalf("%+v", all)
	}
	if w := r.do("GET", page, "", nil); !strings.Contains(w.Body.String(), all[0].Handle) {
		t.Error("the browser does not show the code of the terminal")
	}
	if r.writes != 0 {
		t.Error("something was stored before an owner allowed it")
	}
	r.allow(t, "claude", "read *")
	v := r.sentBack(t, page)
	code := v.Get("code")
	if again := r.sentBack(t, page).Get("code"); again != code || code == "" {
		t.Error("a second load brings another code")
	}
	if v.Get("iss") != testBase || v.Get("state") != "a b" {
		t.Error(v)
	}
	status, tokens := r.tokens(t, codeForm(id, code))
	if status != 200 || tokens["scope"] != "read" || tokens["token_type"] != "Bearer" || tokens["expires_in"].(float64) < 86000 {
		t.Fatal(status, tokens)
	}
	if w := r.do("GET", page, "", nil); w.Code != 200 || w.Header().Get("Location") != "" {
		t.Error("a page goes back after the code was used")
	}
	token := tokens["access_token"].(string)
	for _, secret := range []string{token, tokens["refresh_token"].(string), code} {
		if strings.Contains(string(r.store), secret) {
			t.Error("a secret is stored")
		}
	}
	w := r.do("POST", "/mcp", "{}", bearer(token))
	if w.Code != 200 || !strings.HasPrefix(w.Body.String(), "token:claude.") {
		t.Fatal(w.Code, w.Body)
	}
	if err := r.Access.Revoke(access.Revocation{Token: "claude"}); err != nil {
		t.Fatal(err)
	}
	if w := r.do("POST", "/mcp", "{}", bearer(token)); w.Code != 401 || !strings.Contains(w.Header().Get("WWW-Authenticate"), `error="invalid_token"`) {
		t.Error(w.Code, w.Header())
	}
	if status, v := r.tokens(t, refreshForm(id, tokens["refresh_token"].(string))); status != 400 || v["error"] != "invalid_grant" {
		t.Error(status, v)
	}
}

// TestCodes: a code is for its client, its URI and its verifier, and lasts a minute; one that comes again after its
// tokens were used ends them.
func TestCodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id, _ := r.register(t, claude)
		other, _ := r.register(t, strings.Replace(claude, "Claude", "Eve", 1))
		page := r.start(t, authorizing(id))
		r.allow(t, "claude", "read *")
		code := r.sentBack(t, page).Get("code")
		for name, change := range map[string]func(url.Values){
			"another client":   func(v url.Values) { v.Set("client_id", other) },
			"another verifier": func(v url.Values) { v.Set("code_verifier", strings.Repeat("x", 43)) },
			"no verifier":      func(v url.Values) { v.Del("code_verifier") },
			"another URI":      func(v url.Values) { v.Set("redirect_uri", callback+"2") },
			"another code":     func(v url.Values) { v.Set("code", strings.Repeat("x", len(code))) },
			"no code":          func(v url.Values) { v.Del("code") },
		} {
			form := codeForm(id, code)
			change(form)
			if status, v := r.tokens(t, form); status != 400 || v["error"] != "invalid_grant" {
				t.Errorf("%s: %d %v", name, status, v)
			}
		}
		if r.writes != 0 {
			t.Error("a wrong code was stored")
		}
		_, first := r.tokens(t, codeForm(id, code))
		_, second := r.tokens(t, codeForm(id, code)) // its answer was lost
		if first["access_token"] != second["access_token"] || first["refresh_token"] != second["refresh_token"] || r.writes != 1 {
			t.Errorf("%v\n%v\n%d writes", first, second, r.writes)
		}
		token := first["access_token"].(string)
		if w := r.do("POST", "/mcp", "{}", bearer(token)); w.Code != 200 {
			t.Error(w.Code)
		}
		if status, v := r.tokens(t, codeForm(id, code)); status != 400 || v["error"] != "invalid_grant" {
			t.Error(status, v)
		}
		if w := r.do("POST", "/mcp", "{}", bearer(token)); w.Code != 401 {
			t.Error("a code that came again did not end the sign-in")
		}

		page = r.start(t, authorizing(id))
		r.allow(t, "claude", "read *")
		code = r.sentBack(t, page).Get("code")
		time.Sleep(codeTime)
		if status, v := r.tokens(t, codeForm(id, code)); status != 400 || v["error"] != "invalid_grant" {
			t.Error(status, v)
		}
		if w := r.do("GET", page, "", nil); w.Code != http.StatusGone {
			t.Error(w.Code)
		}
	})
}

// TestRefreshed: a refresh survives a restart and a lost answer, two at once get the same, though one of them has used it
// by then, and a replay ends all.
func TestRefreshed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id, _ := r.register(t, claude)
		access1, refresh1 := r.signedIn(t, id, "claude", "read *")
		_, a := r.tokens(t, refreshForm(id, refresh1))
		r.open(t, r.Key)
		_, b := r.tokens(t, refreshForm(id, refresh1))
		if a["access_token"] != b["access_token"] || a["refresh_token"] != b["refresh_token"] || a["access_token"] == access1 {
			t.Fatal(a, b)
		}
		other, _ := r.register(t, strings.Replace(claude, "Claude", "Eve", 1))
		if status, v := r.tokens(t, refreshForm(other, a["refresh_token"].(string))); status != 400 || v["error"] != "invalid_grant" {
			t.Error(status, v)
		}
		if w := r.do("POST", "/mcp", "{}", bearer(a["access_token"].(string))); w.Code != 200 {
			t.Error(w.Code)
		}
		if _, c := r.tokens(t, refreshForm(id, refresh1)); c["access_token"] != a["access_token"] {
			t.Error("another process of the client, a moment later:", c)
		}
		time.Sleep(10 * time.Second)
		if status, v := r.tokens(t, refreshForm(id, refresh1)); status != 400 || v["error"] != "invalid_grant" {
			t.Error(status, v)
		}
		if w := r.do("POST", "/mcp", "{}", bearer(a["access_token"].(string))); w.Code != 401 {
			t.Error("a replay did not end the sign-in")
		}
	})
}

// TestThief: a stolen refresh token does not work beside its owner's. The thief or the owner is refused,
// whoever asks first, and however quiet they are.
func TestThief(t *testing.T) {
	for name, quiet := range map[string]bool{"uses the token": false, "waits until the client asked": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				id, _ := r.register(t, claude)
				_, stolen := r.signedIn(t, id, "claude", "read *")
				call := func(v map[string]any) int { return r.do("POST", "/mcp", "{}", bearer(v["access_token"].(string))).Code }
				_, thief := r.tokens(t, refreshForm(id, stolen))
				if !quiet && call(thief) != 200 {
					t.Fatal("it does not count")
				}
				time.Sleep(time.Minute)
				status, client := r.tokens(t, refreshForm(id, stolen))
				switch {
				case !quiet:
					if status != 400 || call(thief) != 401 {
						t.Error("both go on", status)
					}
				case status != 200 || call(client) != 200 || call(thief) != 401:
					t.Error("both go on", status)
				}
				if status, _ := r.tokens(t, refreshForm(id, thief["refresh_token"].(string))); status != 400 {
					t.Error("the thief goes on")
				}
			})
		})
	}
}

// TestOwnerGone: what an owner allowed ends with their ownership, before a program has its tokens and after that.
func TestOwnerGone(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	token, refresh := r.signedIn(t, id, "claude", "read *")
	v := authorizing(id)
	v.Set("redirect_uri", callback)
	page := r.start(t, v)
	r.allow(t, "again", "read *")
	code := r.sentBack(t, page).Get("code")
	if err := r.Access.AddOwner(access.Owner{ID: identity.New().ID()}); err != nil {
		t.Fatal(err)
	}
	if err := r.Access.RemoveOwner(r.owner.ID()); err != nil {
		t.Fatal(err)
	}
	if w := r.do("POST", "/mcp", "{}", bearer(token)); w.Code != 401 {
		t.Error(w.Code)
	}
	for _, form := range []url.Values{codeForm(id, code), refreshForm(id, refresh)} {
		if status, v := r.tokens(t, form); status != 400 || v["error"] != "invalid_grant" {
			t.Error(status, v)
		}
	}
}

// TestClockSteps: a clock that steps too far ahead has nobody sign in again, and loses nobody.
func TestClockSteps(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	token, refresh := r.signedIn(t, id, "claude", "read *")
	for _, ahead := range []time.Duration{30 * 24 * time.Hour, 0, -48 * time.Hour, 0} {
		r.ahead = ahead
		want := http.StatusOK
		if ahead != 0 {
			want = http.StatusServiceUnavailable
		}
		if w := r.do("POST", "/mcp", "{}", bearer(token)); w.Code != want {
			t.Errorf("%v ahead: %d", ahead, w.Code)
		}
		if status, v := r.tokens(t, refreshForm(id, refresh)); status != want {
			t.Errorf("%v ahead: %d %v", ahead, status, v)
		} else if status == http.StatusOK {
			token, refresh = v["access_token"].(string), v["refresh_token"].(string)
		}
	}
}

// TestAtOnce: who asks many times at once with one code, or one refresh token, gets the same tokens each time, and they
// are stored once.
func TestAtOnce(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	page := r.start(t, authorizing(id))
	r.allow(t, "claude", "read *")
	form := codeForm(id, r.sentBack(t, page).Get("code"))
	for step := range 2 {
		before := r.writes
		var all [8]map[string]any
		var asking sync.WaitGroup
		for i := range all {
			asking.Go(func() { _, all[i] = r.tokens(t, form) })
		}
		asking.Wait()
		for _, v := range all {
			if v["error"] != nil || v["access_token"] != all[0]["access_token"] || v["refresh_token"] != all[0]["refresh_token"] {
				t.Errorf("step %d: %v", step, v)
			}
		}
		if n := r.writes - before; n != 1 {
			t.Errorf("step %d: %d writes", step, n)
		}
		form = refreshForm(id, all[0]["refresh_token"].(string))
	}
}

// TestRefreshRate: no client has the card written as often as it likes.
func TestRefreshRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id, _ := r.register(t, claude)
		_, refresh := r.signedIn(t, id, "claude", "read *")
		before := r.writes
		for range 100 {
			status, v := r.tokens(t, refreshForm(id, refresh))
			if status == 429 {
				if v["error"] != "temporarily_unavailable" {
					t.Error(v)
				}
				break
			}
			refresh = v["refresh_token"].(string)
			time.Sleep(time.Second)
		}
		if n := r.writes - before; n > 25 {
			t.Errorf("%d writes", n)
		}
	})
}

// TestRevoke: a client ends its own sign-in with either token; other texts end nothing.
func TestRevoke(t *testing.T) {
	for _, with := range []string{"access", "refresh"} {
		r := newRig(t)
		id, _ := r.register(t, claude)
		token, refresh := r.signedIn(t, id, "claude", "read *")
		for _, wrong := range []string{"", "x", access.SignInPrefix + strings.Repeat("0", 64), refreshPrefix + strings.Repeat("0", 96)} {
			if w := r.do("POST", "/revoke", url.Values{"token": {wrong}, "client_id": {id}}.Encode(), nil); w.Code != 200 {
				t.Error(w.Code)
			}
		}
		if w := r.do("POST", "/mcp", "{}", bearer(token)); w.Code != 200 {
			t.Error(w.Code)
		}
		text := token
		if with == "refresh" {
			text = refresh
		}
		if w := r.do("POST", "/revoke", url.Values{"token": {text}}.Encode(), nil); w.Code != 200 {
			t.Error(w.Code)
		}
		if w := r.do("POST", "/mcp", "{}", bearer(token)); w.Code != 401 {
			t.Errorf("%s: %d", with, w.Code)
		}
	}
}

// TestFullDisk: while the disk takes nothing, each step of a client is put off, and the same one goes on afterwards.
// What a client ends has ended, and it is told that this is not stored yet.
func TestFullDisk(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	step := func(name, path string, form url.Values) (v map[string]any) {
		t.Helper()
		r.full = true
		w := r.do("POST", path, form.Encode(), nil)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		r.full = false
		w = r.do("POST", path, form.Encode(), nil)
		if w.Code != http.StatusOK {
			t.Fatalf("%s afterwards: %d %s", name, w.Code, w.Body)
		}
		return decode(t, w)
	}
	page := r.start(t, authorizing(id))
	r.allow(t, "claude", "read *")
	v := step("code", "/token", codeForm(id, r.sentBack(t, page).Get("code")))
	v = step("refresh", "/token", refreshForm(id, v["refresh_token"].(string)))
	token := v["access_token"].(string)
	r.full = true
	if w := r.do("POST", "/mcp", "{}", bearer(token)); w.Code != 200 {
		t.Error(w.Code)
	}
	step("revoke", "/revoke", url.Values{"token": {token}})
	r.open(t, r.Key)
	if w := r.do("POST", "/mcp", "{}", bearer(token)); w.Code != 401 {
		t.Errorf("after a restart: %d", w.Code)
	}
}

// TestClock: while the time is not known, a client is put off and loses nothing.
func TestClock(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	token, refresh := r.signedIn(t, id, "claude", "read *")
	r.sure = false
	r.open(t, r.Key)
	for name, w := range map[string]int{
		"call":      r.do("POST", "/mcp", "{}", bearer(token)).Code,
		"refresh":   r.do("POST", "/token", refreshForm(id, refresh).Encode(), nil).Code,
		"authorize": r.do("GET", "/authorize?"+authorizing(id).Encode(), "", nil).Code,
	} {
		if w != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", name, w)
		}
	}
	if w := r.do("POST", "/mcp", "{}", bearer(token)); w.Header().Get("Retry-After") == "" || w.Header().Get("WWW-Authenticate") != "" {
		t.Error(w.Header())
	}
	if w := r.do("POST", "/mcp", "{}", bearer(access.SignInPrefix+strings.Repeat("0", 64))); w.Code != 401 {
		t.Error("an unknown token is put off")
	}
	r.sure = true
	if w := r.do("POST", "/mcp", "{}", bearer(token)); w.Code != 200 {
		t.Error(w.Code)
	}
}

// TestPlaces: tokens are for the place that they were given for, and routes of the server for its host.
func TestPlaces(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	token, _ := r.signedIn(t, id, "claude", "read *")
	lan := func(change func(*http.Request)) func(*http.Request) {
		return func(q *http.Request) { q.Host = "lan"; change(q) }
	}
	if w := r.do("POST", "/mcp", "{}", lan(bearer(token))); w.Code != 401 {
		t.Error("the token counts on the LAN", w.Code)
	}
	if w := r.do("POST", "/api", "{}", bearer(token)); w.Code != 401 {
		t.Error("the token counts for another protocol", w.Code)
	}
	other := newRig(t)
	if w := other.do("POST", "/mcp", "{}", bearer(token)); w.Code != 401 {
		t.Error("the token of another site counts", w.Code)
	}
	for _, path := range []string{"/authorize", "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource"} {
		if w := r.do("GET", path, "", lan(func(*http.Request) {})); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	w := r.do("GET", "/.well-known/oauth-protected-resource/mcp", "", lan(func(*http.Request) {}))
	if v := decode(t, w); v["resource"] != "https://lan/mcp" || v["authorization_servers"] != nil {
		t.Error(v)
	}
	if w := r.do("POST", "/mcp", "{}", lan(func(*http.Request) {})); strings.Contains(w.Header().Get("WWW-Authenticate"), "scope") {
		t.Error(w.Header())
	}
}

// TestStepUp: a client of the newest revision is told which permission it lacks, an older one gets the node's
// answer, and an owner widens what is signed in.
func TestStepUp(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	token, _ := r.signedIn(t, id, "claude", "read *")
	calls := func(tool, revision string) func(*http.Request) {
		return func(q *http.Request) {
			bearer(token)(q)
			q.Header.Set("Mcp-Method", "tools/call")
			q.Header.Set("Mcp-Name", tool)
			q.Header.Set("Mcp-Protocol-Version", revision)
		}
	}
	const call = `{"method":"tools/call","params":{"name":"switch_output","arguments":{"output":"pump"}}}`
	w := r.do("POST", "/mcp", call, calls("switch_output", rpc.Revision))
	if got := w.Header().Get("WWW-Authenticate"); w.Code != 403 || !strings.Contains(got, `error="insufficient_scope"`) ||
		!strings.Contains(got, `scope="read set"`) || !strings.Contains(got, `resource_metadata="`+testBase+resourcePath+`/mcp"`) {
		t.Error(w.Code, got)
	}
	if !slices.Equal(r.lacked, []string{"switch_output pump"}) || !strings.Contains(w.Body.String(), "owner was asked") {
		t.Errorf("%q %s", r.lacked, w.Body)
	}
	r.widened = true
	if w := r.do("POST", "/mcp", call, calls("switch_output", rpc.Revision)); w.Code != 200 {
		t.Error("an owner allowed it meanwhile:", w.Code)
	}
	r.widened = false
	for _, body := range []string{"", "[", "{}", `{"params":{"arguments":7}}`} { // an owner is asked for less
		if w := r.do("POST", "/mcp", body, calls("switch_output", rpc.Revision)); w.Code != 403 {
			t.Errorf("%s: %d", body, w.Code)
		}
	}
	for _, tool := range []string{"read_points", "emergency_stop", "release_output", "heartbeat"} {
		if w := r.do("POST", "/mcp", "{}", calls(tool, rpc.Revision)); w.Code != 200 {
			t.Errorf("%s: %d", tool, w.Code)
		}
	}
	if w := r.do("POST", "/mcp", "{}", calls("switch_output", "2025-11-25")); w.Code != 200 {
		t.Error(w.Code)
	}
	if err := r.Access.ReplaceTokenGrant("claude", r.grant(t, "read *, set pump max 2m")); err != nil {
		t.Fatal(err)
	}
	if w := r.do("POST", "/mcp", "{}", calls("switch_output", rpc.Revision)); w.Code != 200 {
		t.Error(w.Code)
	}
}

// TestCallers: where only programs that signed in count, no key and no other token does.
func TestCallers(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	token, _ := r.signedIn(t, id, "claude", "read *")
	own, err := r.Access.AddToken("kitchen", r.grant(t, "read *"), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	all := callers{r.Access}
	only := Callers{all}
	if _, err := only.Key(r.owner.ID().String()); err == nil {
		t.Error("an owner's key counts")
	}
	for text, counts := range map[string]bool{token: true, own: false, "site's own": false, "": false} {
		if _, err := only.Bearer(text, true); (err == nil) != counts {
			t.Errorf("%q: %v", text, err)
		}
	}
}
