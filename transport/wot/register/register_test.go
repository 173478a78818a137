package register

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// far is a directory elsewhere: each request is noted, and answered with the next status.
type far struct {
	start    time.Time
	asked    []string
	statuses []int
}

func (f *far) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	what := strings.Join([]string{time.Since(f.start).String(), r.Method, r.URL.EscapedPath(), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), string(body)}, " ")
	f.asked = append(f.asked, what)
	status := f.statuses[0]
	if len(f.statuses) > 1 {
		f.statuses = f.statuses[1:]
	}
	if status == 0 {
		return nil, errors.New("no route to host")
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Header: make(http.Header)}, nil
}

const (
	path  = "/tdd/things/did:key:me%2Fthings%2Fsite:x "
	whole = path + `application/td+json Bearer secret {"id":"did:key:me/things/site:x","registration":{"ttl":3600}}`
	empty = path + "application/merge-patch+json Bearer secret {}"
)

// TestRun: a registration is renewed before it ends, and made anew where the directory lost it.
func TestRun(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	synctest.Test(t, func(t *testing.T) {
		f := &far{start: time.Now(), statuses: []int{0, 503, 201, 204, 404, 201, 204}}
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			Run(ctx, Options{URL: "https://directory.example/tdd/", ID: "did:key:me/things/site:x", TD: append(make([]byte, 0, 128), `{"id":"did:key:me/things/site:x"}`...),
				Token: func() (string, error) { return "secret", nil }, HTTP: &http.Client{Transport: f}})
			close(done)
		}()
		time.Sleep(95 * time.Minute)
		end()
		<-done
		want := []string{
			"0s PUT " + whole, "10s PUT " + whole, "30s PUT " + whole, // with longer pauses between
			"30m30s PATCH " + empty, "1h0m30s PATCH " + empty, "1h0m30s PUT " + whole, "1h30m30s PATCH " + empty,
		}
		if !slices.Equal(f.asked, want) {
			t.Errorf("asked\n%s\nwant\n%s", strings.Join(f.asked, "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestHosts: nothing is sent to an address of a private network behind a name, nor without its token.
func TestHosts(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	synctest.Test(t, func(t *testing.T) {
		f := &far{start: time.Now(), statuses: []int{201}}
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		Run(ctx, Options{URL: "https://directory.example", ID: "urn:x", TD: []byte("{}"), HTTP: &http.Client{Transport: f}, Token: func() (string, error) { return "", errors.New("no such file") }})
		if f.asked != nil {
			t.Errorf("%q", f.asked)
		}
	})
}
