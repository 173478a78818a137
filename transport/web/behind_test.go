package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"agentsite/agents/principal"
)

// everybody is a carrier whose callers are all one.
type everybody struct{}

func (everybody) Key(string) (principal.Principal, error) { return everybody{}.Bearer("", false) }
func (everybody) Bearer(string, bool) (principal.Principal, error) {
	return principal.Principal{Kind: principal.Hosted, ID: "a:b", Account: "a:b"}, nil
}

// TestBehind: behind a proxy any host is served, and the pages of that host may call, or of the one by which the
// proxy's own proxy is known. Other pages may not, and without Behind nothing of that counts.
func TestBehind(t *testing.T) {
	route := Route{Pattern: "POST /x", Admission: Principals, Serve: func(w http.ResponseWriter, _ *http.Request, c Caller) { w.Write([]byte(c.Who.ID)) }}
	behind := Handler(Options{Behind: true, Callers: everybody{}, Routes: []Route{route}})
	alone := Handler(Options{Callers: everybody{}, Routes: []Route{route}})
	for _, tt := range []struct {
		headers []string
		want    int
	}{
		{nil, 200},
		{[]string{"Origin", "http://home.local:8123", "Sec-Fetch-Site", "same-origin"}, 200},
		{[]string{"Origin", "https://home.local:8123"}, 200},
		{[]string{"Origin", "https://abc.example", "X-Forwarded-Host", "abc.example"}, 200},
		{[]string{"Origin", "https://abc.example"}, 403},
		{[]string{"Origin", "https://evil.example", "X-Forwarded-Host", "abc.example"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Origin", "http://home.local"}, 403},
		{[]string{"Origin", ""}, 403},
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
	} {
		for i, h := range []http.Handler{behind, alone} {
			want := []int{tt.want, 403}[i]
			r := httptest.NewRequest("POST", "http://home.local:8123/x", nil)
			for k := 0; k < len(tt.headers); k += 2 {
				r.Header.Set(tt.headers[k], tt.headers[k+1])
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%q, behind %t: %d, want %d", tt.headers, i == 0, w.Code, want)
			}
		}
	}
}
