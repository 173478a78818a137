package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"agentsite/agents/principal"
)

// nobody knows no caller, as the public name does.
type nobody struct{}

var errNobody = errors.New("nobody is known here")

func (nobody) Key(string) (p principal.Principal, err error)          { return p, errNobody }
func (nobody) Bearer(string, bool) (p principal.Principal, err error) { return p, errNobody }

// TestUnderPublicName: a route answers under the public name only if its row says so, whatever it admits; and what
// does is of MCP and its description.
func TestUnderPublicName(t *testing.T) {
	var all []Route
	for i, admission := range []Admission{Public, Readers, Strangers, Principals, Owners} {
		for _, path := range []string{"/closed", "/open"} {
			all = append(all, Route{
				Pattern: path + string(rune('0'+i)), Admission: admission, PublicName: path == "/open", Signed: new(signatures),
				Serve: func(w http.ResponseWriter, _ *http.Request, _ Caller) { w.WriteHeader(http.StatusAccepted) },
			})
		}
	}
	const name = "board.example.org"
	h := Handler(Options{Hosts: []string{name}, Callers: nobody{}, Routes: UnderPublicName(all)})
	ask := func(path string, headers ...string) int {
		r := httptest.NewRequest("GET", "https://"+name+path, nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for i, want := range []int{202, 202, 401, 401, 401} { // Readers tells nobody more than strangers may see
		n := string(rune('0' + i))
		if got := ask("/open" + n); got != want {
			t.Errorf("a route of admission %d: %d, not %d", i, got, want)
		}
		if got := ask("/closed" + n); got != 404 {
			t.Errorf("a route that is closed: %d", got)
		}
		if i > 0 {
			if got := ask("/open"+n, "Authorization", "Bearer "+testToken); got != 401 {
				t.Errorf("with a token: %d", got)
			}
		}
	}
	var open []string
	for _, r := range UnderPublicName(append(PublicRoutes(), MCP(nil, nil))) {
		open = append(open, r.Pattern)
	}
	if len(open) != 2 {
		t.Errorf("%q answer under the public name", open)
	}
}

// signatures takes any signature for one of a key.
type signatures struct{}

func (*signatures) Read(*http.Request) (*Signed, error) { return &Signed{Peer: "12D3", Use: nil}, nil }
func (*signatures) Challenge(http.Header, error)        {}
