package oauth

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/node/access"
)

// TestOtherBrowser: a page shows its code and sends back in the browser that began alone, so that nobody has an owner
// approve a sign-in by sending a link.
func TestOtherBrowser(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	began := r.do("GET", "/authorize?"+authorizing(id).Encode(), "", nil)
	cookies := began.Result().Cookies()
	if len(cookies) != 1 || !strings.HasPrefix(cookies[0].Name, "__Host-") || !cookies[0].Secure || !cookies[0].HttpOnly || cookies[0].Path != "/" ||
		cookies[0].Domain != "" || cookies[0].SameSite != http.SameSiteLaxMode || cookies[0].MaxAge <= 0 {
		t.Fatal(cookies)
	}
	other := *cookies[0]
	other.Value = strings.Repeat("A", len(other.Value))
	page := func(c *http.Cookie) *httptest.ResponseRecorder {
		return r.do("GET", began.Header().Get("Location"), "", func(q *http.Request) {
			q.Header.Set("Sec-Fetch-Site", "none")
			if c != nil {
				q.AddCookie(c)
			}
		})
	}
	handle := r.Waiting()[0].Handle
	for _, c := range []*http.Cookie{nil, &other} {
		if w := page(c); w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), handle) {
			t.Errorf("%v: %d %s", c, w.Code, w.Body)
		}
	}
	if w := page(cookies[0]); w.Code != 200 || !strings.Contains(w.Body.String(), handle) {
		t.Error(w.Code, w.Body)
	}
	r.allow(t, "claude", "read *")
	if w := page(nil); w.Code != http.StatusForbidden || w.Header().Get("Location") != "" {
		t.Error(w.Code, w.Header())
	}
	if w := page(cookies[0]); w.Code != http.StatusSeeOther {
		t.Error(w.Code, w.Body)
	}
}

// TestTakenBack: an owner takes a yes back until the program has its tokens, and ends it by its name afterwards.
func TestTakenBack(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	page := r.start(t, authorizing(id))
	handle := r.Waiting()[0].Handle
	r.allow(t, "claude", "read *")
	code := r.sentBack(t, page).Get("code")
	if err := r.Deny(handle); err != nil {
		t.Fatal(err)
	}
	if status, v := r.tokens(t, codeForm(id, code)); status != 400 || v["error"] != "invalid_grant" || r.writes != 0 {
		t.Error(status, v, r.writes)
	}
	if v := r.sentBack(t, page); v.Get("error") != "access_denied" || v.Get("code") != "" {
		t.Error(v)
	}
	if r.Deny(handle) == nil || r.Allow(handle, "claude", r.grant(t, "read *")) == nil {
		t.Error("it is answered again")
	}

	page = r.start(t, authorizing(id))
	handle = r.Waiting()[0].Handle
	r.allow(t, "claude", "read *")
	if status, v := r.tokens(t, codeForm(id, r.sentBack(t, page).Get("code"))); status != 200 {
		t.Fatal(status, v)
	}
	if r.Deny(handle) == nil {
		t.Error("it has its tokens, and is denied")
	}
}

// TestRevokedMeanwhile: a program that signs in again, and whose former sign-in an owner ends before it has its tokens,
// gets none.
func TestRevokedMeanwhile(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	r.signedIn(t, id, "claude", "read *")
	page := r.start(t, authorizing(id))
	r.allow(t, "claude", "read *")
	code := r.sentBack(t, page).Get("code")
	if err := r.Access.Revoke(access.Revocation{Token: "claude"}); err != nil {
		t.Fatal(err)
	}
	status, v := r.tokens(t, codeForm(id, code))
	if n := len(r.Access.Tokens()); status != 400 || v["error"] != "invalid_grant" || n > 0 {
		t.Error(status, v, n)
	}
}

// TestFlood: one network does not keep the lines about others out of the log.
func TestFlood(t *testing.T) {
	var lines strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&lines, nil)))
	defer slog.SetDefault(before)
	r := newRig(t)
	for range 200 {
		r.do("GET", "/authorize/x", "", nil)
	}
	r.from = "203.0.113.9:1"
	r.do("GET", "/authorize/x", "", nil)
	if n := strings.Count(lines.String(), "\n"); n > 30 || !strings.Contains(lines.String(), "203.0.113.9") {
		t.Errorf("%d lines\n%s", n, lines.String())
	}
}
