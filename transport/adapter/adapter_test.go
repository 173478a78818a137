package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node"
	"agentsite/transport/adapter"
	"agentsite/transport/web"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

const token = "the-token-of-the-tests"

// handler serves routes of a site that knows one token.
func handler(routes func(*adapter.Site) []web.Route) http.Handler {
	n := node.New(node.Parts{Hub: node.NewHub(nil, nil, nil), Token: token})
	s := &adapter.Site{Node: n, Name: "shed"}
	return web.Handler(web.Options{
		Hosts: []string{"site.test"}, Routes: routes(s),
		Callers: n,
	})
}

// ask sends a request with headers, pairs of names and values.
func ask(h http.Handler, verb, path, body string, headers ...string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(verb, "http://site.test"+path, strings.NewReader(body)), httptest.NewRecorder()
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	h.ServeHTTP(w, r)
	return w
}

var known = []string{"Authorization", "Bearer " + token}

// TestFaults: each kind of fault has its status, and a Problem says what the fault does. Of a
// defect nobody is told the cause.
func TestFaults(t *testing.T) {
	var err error
	h := handler(func(s *adapter.Site) []web.Route {
		return []web.Route{s.Route("GET /x", web.Principals, func(context.Context, *adapter.Call) (any, error) { return nil, err })}
	})
	for _, c := range []struct {
		err    error
		status int
		says   []string
	}{
		{device.Faultf(device.Invalid, "wrong"), 400, []string{`"detail":"wrong"`, `"fault":"invalid"`, `"status":400`}},
		{adapter.ErrNotFound("no such thing"), 404, []string{`"detail":"no such thing"`}},
		{device.Faultf(device.Denied, "no"), 403, []string{`"fault":"denied"`}},
		{device.Faultf(device.Unsafe, "no"), 409, nil},
		{device.Faultf(device.Busy, "later"), 429, nil},
		{device.Faultf(device.Offline, "gone"), 502, nil},
		{device.Faultf(device.Expired, "late"), 410, nil},
		{device.Faultf(device.UnknownOutcome, "perhaps"), 504, nil},
		{device.Faultf(device.Unavailable, "not now"), 503, nil},
		{&agents.ApprovalNeeded{Says: "an owner has to approve", State: "s7"}, 403, []string{`"approval":"s7"`, "an owner has to approve"}},
		{errors.New("a cause that is nobody's business"), 500, []string{`"fault":"internal"`}},
	} {
		err = c.err
		w := ask(h, "GET", "/x", "", known...)
		if w.Code != c.status || w.Header().Get("Content-Type") != "application/problem+json" || strings.Contains(w.Body.String(), "nobody's business") {
			t.Errorf("%v: %d %s %s", c.err, w.Code, w.Header(), w.Body)
		}
		for _, says := range c.says {
			if !strings.Contains(w.Body.String(), says) {
				t.Errorf("%v: %s, want %s", c.err, w.Body, says)
			}
		}
	}
}

// TestDecode: a body is decoded strictly and within bounds, and headers are terms.
func TestDecode(t *testing.T) {
	h := handler(func(s *adapter.Site) []web.Route {
		return []web.Route{s.Route("POST /x", web.Principals, func(_ context.Context, c *adapter.Call) (any, error) {
			in := struct {
				A float64 `json:"a"`
			}{A: 7}
			if err := c.Decode(&in); err != nil {
				return nil, err
			}
			terms, err := c.Terms()
			return map[string]any{"a": in.A, "key": terms.Key, "within": terms.Within, "approval": terms.Approval, "base": c.Base()}, err
		})}
	})
	for body, want := range map[string]string{
		``:              `200 {"a":7,`,
		`{"a":1}`:       `200 {"a":1,`,
		`{"b":1}`:       `400 {"title":"Bad Request","status":400,"detail":"the body: b: `,
		`{"a":1,"a":2}`: `twice`,
		`{"a":"1"}`:     `a: must be`,
		`{"a":1`:        `not valid JSON`,
		`[1]`:           `400`,
		`{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`: `nest`,
	} {
		w := ask(h, "POST", "/x", body, known...)
		if !strings.Contains(status(w), want) {
			t.Errorf("%s: %s, want %s", body, status(w), want)
		}
	}
	w := ask(h, "POST", "/x", "", append(known, "Idempotency-Key", `"k1"`, "Agentsite-Expires-In", "5", "Agentsite-Approval", "s7")...)
	if want := `"approval":"s7","base":"http://site.test","key":"k1","within":5`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("%s, want %s", w.Body, want)
	}
	for _, name := range []string{"Idempotency-Key", "Agentsite-Expires-In", "Agentsite-Via", "Agentsite-Approval"} {
		r, w := httptest.NewRequest("POST", "http://site.test/x", nil), httptest.NewRecorder()
		r.Header = http.Header{"Authorization": {known[1]}, name: {"1", "1"}}
		if h.ServeHTTP(w, r); w.Code != 400 || !strings.Contains(w.Body.String(), name) {
			t.Errorf("%s twice: %s", name, status(w))
		}
	}
	if w := ask(h, "POST", "/x", "", append(known, "Agentsite-Expires-In", "soon")...); w.Code != 400 || !strings.Contains(w.Body.String(), "takes seconds") {
		t.Error(status(w))
	}
}

func status(w *httptest.ResponseRecorder) string { return fmt.Sprint(w.Code, " ", w.Body) }

// TestDocument: a stranger and a known reader get documents of their own, which are not sent
// again while they are the same. A token that does not count is refused.
func TestDocument(t *testing.T) {
	h := handler(func(s *adapter.Site) []web.Route {
		return []web.Route{s.Document("/d", "application/td+json", func(_ context.Context, c *adapter.Call) (any, error) {
			return map[string]string{"reader": c.Who.ID}, nil
		})}
	})
	stranger, reader := ask(h, "GET", "/d", ""), ask(h, "GET", "/d", "", known...)
	if stranger.Body.String() != `{"reader":""}` || reader.Body.String() != `{"reader":"token"}` {
		t.Errorf("%s %s", stranger.Body, reader.Body)
	}
	if h := reader.Header(); h.Get("Content-Type") != "application/td+json" || h.Get("Vary") != "Authorization, Signature-Input" || !strings.Contains(h.Get("Cache-Control"), "private") {
		t.Error(h)
	}
	tag := reader.Header().Get("ETag")
	if tag == "" || tag == stranger.Header().Get("ETag") {
		t.Errorf("the tags are %q and %q", tag, stranger.Header().Get("ETag"))
	}
	for have, want := range map[string]int{tag: 304, "W/" + tag: 304, `"other", ` + tag: 304, `"other"`: 200, "*": 304} {
		w := ask(h, "GET", "/d", "", append(known, "If-None-Match", have)...)
		if w.Code != want || want == 304 && w.Body.Len() > 0 {
			t.Errorf("%s: %s", have, status(w))
		}
	}
	if w := ask(h, "GET", "/d", "", "Authorization", "Bearer guess"); w.Code != 401 || strings.Contains(w.Body.String(), "reader") {
		t.Error(status(w))
	}
	if w := ask(h, "GET", "/d", "", "Authorization", "Basic YTpi"); w.Body.String() != `{"reader":""}` {
		t.Error(status(w))
	}
}
