package openapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/transport/adapter/adaptertest"
)

// FuzzPlainRequest: whatever a path, a query, a header and a body are, the answer is no failure of the site's.
func FuzzPlainRequest(f *testing.F) {
	s := adaptertest.New(f, nil)
	handler := s.Handler("site.test", Routes(&s.Site))
	for _, seed := range [][4]string{
		{"GET", "/api/points", "", ""}, {"POST", vent, `{"value":30,"for":0.01}`, "k"}, {"DELETE", vent, "", ""},
		{"GET", "/api/history?point=greenhouse/vent&hours=1&steps=2", "", ""}, {"GET", "/api/readings?point=a&point=b", "", ""},
		{"POST", "/api/agents/helper/tasks", `{"skill":"echo","arguments":{"n":1}}`, "j"}, {"GET", "/api/tasks/x?wait_seconds=0", "", ""},
		{"POST", "/api/displays/greenhouse/message", `{"text":"\u0000"}`, ""}, {"POST", vent, `{"value":1e999}`, "\""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, verb, target, body, header string) {
		if !strings.HasPrefix(target, "/api/") || strings.HasPrefix(target, "/api/events") || strings.ContainsAny(target, " \t\r\n\x00") || verb == "" || strings.Trim(verb, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			return
		}
		r := request(verb, target, body)
		if r == nil {
			return
		}
		r.Host = "site.test"
		r.Header.Set("Authorization", "Bearer "+adaptertest.SiteToken)
		r.Header.Set("Idempotency-Key", header)
		r.Header.Set("Agentsite-Expires-In", header)
		r.Header.Set("Agentsite-Via", header)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s %s %q is answered with %d: %s", verb, target, body, w.Code, w.Body)
		}
	})
}

// request returns a request; nil for one that net/http's server would refuse before any route.
func request(verb, target, body string) *http.Request {
	r, err := http.NewRequest(verb, "http://site.test"+target, strings.NewReader(body))
	if err != nil {
		return nil
	}
	r.RequestURI = target
	return r
}
