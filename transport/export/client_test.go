package export

import (
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/transport/web/outbound"
)

// TestClient: a store is known by the authority in ca_file, and signed in at. A redirect is not followed, and a name
// that leads to this network is not dialled.
func TestClient(t *testing.T) {
	elsewhere := new(atomic.Int32)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		user, password, _ := q.BasicAuth()
		if user != "ann" || password != "secret" || q.Header.Get("X-Scope-OrgID") != "garden" || q.Header.Get("Content-Encoding") != "snappy" ||
			q.Header.Get("Content-Type") != "application/x-protobuf" || q.Header.Get("X-Prometheus-Remote-Write-Version") != "0.1.0" || q.UserAgent() == "" {
			t.Errorf("%v", q.Header)
		}
		if q.URL.Path == "/to" {
			http.Redirect(w, q, other.URL, http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	try := func(url, ca string) error {
		a := Kind(World{
			Version: "9.9", Load: func() ([]byte, error) { return nil, nil },
			Secret: func(string) (string, error) { return "secret", nil },
			File: func(string) ([]byte, error) {
				return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), nil
			},
		}).New().(*Agent)
		a.RemoteWrite = RemoteWrite{URL: url, User: "ann", PasswordFile: "p", CAFile: ca, Tenant: "garden", Every: a.RemoteWrite.Every}
		if _, err := a.Define(); err != nil {
			t.Fatal(err)
		}
		s, err := newSender(a, self, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.client.CloseIdleConnections()
		return s.post(t.Context(), encode([]sample{{labelsOf(map[string]string{"__name__": metric}), 1, 2}}))
	}
	if err := try(server.URL+"/api/v1/write", "ca.pem"); err != nil {
		t.Error(err)
	}
	if err := try(server.URL+"/api/v1/write", ""); err == nil {
		t.Error("any authority will do")
	}
	answer, ok := errors.AsType[*answerError](try(server.URL+"/to", "ca.pem"))
	if !ok || answer.Code != http.StatusTemporaryRedirect || answer.refused() || elsewhere.Load() != 0 {
		t.Errorf("%v, %d requests elsewhere", answer, elsewhere.Load())
	}
	words, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer words.Close()
	go func() {
		if c, err := words.Accept(); err == nil {
			c.Read(make([]byte, 1<<10))
			io.WriteString(c, "HTTP/1.1 evil\r\n\r\n")
			c.Close()
		}
	}()
	if err := try("http://"+words.Addr().String()+"/", ""); err == nil || strings.Contains(err.Error(), "evil") {
		t.Errorf("a store that speaks something else: %v", err)
	}
	c, err := (&Agent{RemoteWrite: RemoteWrite{URL: "https://metrics.example.org/"}}).newClient()
	if err != nil {
		t.Fatal(err)
	}
	if res, err := c.Get(other.URL); !errors.Is(err, outbound.ErrPrivate) {
		t.Errorf("%v, %v: this address was not written", res, err)
	}
}

// TestAfter: a receiver is asked again when it says, within an hour, and after a minute where an owner has to mend
// something.
func TestAfter(t *testing.T) {
	for _, tt := range []struct {
		code       int
		asks, want time.Duration
	}{
		{http.StatusUnauthorized, 0, mended}, {http.StatusNotFound, time.Second, mended},
		{http.StatusServiceUnavailable, 0, 0},
		{http.StatusTooManyRequests, 7 * time.Second, 7 * time.Second},
		{http.StatusServiceUnavailable, 24 * time.Hour, laterMax},
	} {
		err := &answerError{StatusError: outbound.StatusError{Code: tt.code}, after: tt.asks}
		if got := after(err); got != tt.want {
			t.Errorf("%d that asks for %v: %v", tt.code, tt.asks, got)
		}
	}
	if got := after(errors.New("no route")); got != 0 {
		t.Error(got)
	}
}

// TestForget: a point that is gone is forgotten once the history has its changes no more.
func TestForget(t *testing.T) {
	now := time.Now()
	s := &sender{Agent: new(Agent), all: []*series{{key: "old", at: now.Add(-forget)}, {key: "new", at: now.Add(time.Hour - forget)}}}
	s.adopt([]agents.Point{{Point: "bed/temperature"}}, now, now)
	var keys []string
	for _, x := range s.all {
		keys = append(keys, x.key)
	}
	if !slices.Equal(keys, []string{"bed/temperature", "new"}) {
		t.Errorf("%q", keys)
	}
}
