package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/device/driver"
)

// TestOnlyTheServer: no request, and so no credentials, goes anywhere but to the configured server.
func TestOnlyTheServer(t *testing.T) {
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer other.Close()
	f := newFake(t)
	e := endpoint{URL: f.URL + "/x", KeyFile: file(t, "s3cret")}
	c, err := e.open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	host := strings.TrimPrefix(f.URL, "http://")
	_, port, _ := strings.Cut(host, ":")
	for _, to := range []string{other.URL, "https://" + host, "http://me:it@" + host, "http://127.0.0.1",
		"http://localhost:" + port} {
		r := httptest.NewRequest(http.MethodGet, to, nil)
		if _, err := c.RoundTrip(r); !errors.Is(err, errElsewhere) || r.Header.Get("Authorization") != "" {
			t.Errorf("%s: %v", to, err)
		}
	}
	if asked+f.count() != 0 {
		t.Error("a server was asked")
	}
	for _, reference := range []string{"//me@/x", "http:/x", "//127.0.0.1/", "x#y", "mailto:x"} {
		if to, err := e.to(reference); err == nil {
			t.Errorf("%s is %v", reference, to)
		}
	}
	if to, err := e.to("/status?a=b"); err != nil || to.String() != f.URL+"/status?a=b" {
		t.Error(to, err)
	}
}

// TestStatus: an answer with another status than a success is a fault.
func TestStatus(t *testing.T) {
	f := newFake(t)
	e := endpoint{URL: f.URL}
	c, err := e.open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for status, want := range map[int]bool{200: true, 201: true, 204: true, 301: false, 302: false, 304: false,
		307: false, 400: false, 401: false, 404: false, 429: false, 500: false} {
		f.set(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/status")
			w.WriteHeader(status)
		})
		before := f.count()
		_, err := c.do(t.Context(), request{method: http.MethodGet, to: c.base})
		if (err == nil) != want || f.count() != before+1 {
			t.Errorf("%d: %v, and it is asked %d times", status, err, f.count()-before)
		}
	}
}

// TestSteps: a number at the end of the range is sent as a step within it.
func TestSteps(t *testing.T) {
	p := point{Point: device.Point{Kind: device.KindLevel, Range: device.Range{Min: -1, Max: 1}}, step: 0.4}
	for v, want := range map[float64]float64{1: 0.8, -1: -0.8, 0.3: 0.4, 0: 0} {
		if got := p.sent(device.Number(v)); got != device.Number(want) {
			t.Errorf("%v is sent as %v", v, got)
		}
	}
}

// TestSentTo: the owner is told who gets a password as it is: a server without TLS that is not this machine.
func TestSentTo(t *testing.T) {
	for url, want := range map[string]string{"http://10.0.0.1/x": "10.0.0.1", "https://10.0.0.1": "",
		"http://127.0.0.1": ""} {
		e := endpoint{URL: url, KeyFile: driver.File("x")}
		if got := e.SentTo(); got != want {
			t.Errorf("%s: %q", url, got)
		}
	}
	if e := (endpoint{URL: "http://10.0.0.1"}); e.SentTo() != "" {
		t.Error("there is no password")
	}
}

// TestSent: the outcome of a request that the server may have got is not known; one that did not leave has failed.
func TestSent(t *testing.T) {
	f := newFake(t)
	e := endpoint{URL: f.URL}
	c, err := e.open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, want := range []device.FaultKind{device.UnknownOutcome, device.Offline} {
		f.set(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		_, err := c.do(t.Context(), request{method: http.MethodPost, to: c.base, body: "1"})
		if err == nil || device.AsFault(err).Kind != want {
			t.Errorf("%v, want %s", err, want)
		}
		f.Server.Close()
	}
}
