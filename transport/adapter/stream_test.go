package adapter_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/transport/adapter"
	"agentsite/transport/adapter/adaptertest"
	"agentsite/transport/web"
)

// TestStream: an error before the first event is a problem, a later one is the last event, and a
// stream ends when its site begins to end.
func TestStream(t *testing.T) {
	s := adaptertest.New(t, nil)
	ending, end := context.WithCancel(s.Ending)
	defer end()
	s.Site.Ending = ending
	began := make(chan struct{}, 1)
	unsafe := device.Faultf(device.Unsafe, "not now")
	stream := func(path string, run func(context.Context, func(string, any) error) error) web.Route {
		return s.Route("GET "+path, web.Principals, func(ctx context.Context, c *adapter.Call) (any, error) { return s.Stream(ctx, c, run) })
	}
	s.Serve(t, []web.Route{
		stream("/refused", func(context.Context, func(string, any) error) error { return unsafe }),
		stream("/broken", func(_ context.Context, send func(string, any) error) error {
			return errors.Join(send("first", map[string]int{"n": 1}), unsafe)
		}),
		stream("/endless", func(ctx context.Context, send func(string, any) error) error {
			if err := send("", 1); err != nil {
				return err
			}
			began <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}),
	})
	if res, text := s.Ask(t, "GET", "/refused", adaptertest.SiteToken, ""); res.StatusCode != http.StatusConflict || !strings.Contains(text, `"fault":"unsafe"`) {
		t.Error(res.Status, text)
	}
	if res, text := s.Ask(t, "HEAD", "/endless", adaptertest.SiteToken, ""); res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || text != "" {
		t.Error(res.Status, res.Header, text)
	}
	const want = "event: first\ndata: {\"n\":1}\n\nevent: error\ndata: {\"title\":\"Conflict\",\"status\":409,\"detail\":\"not now\",\"fault\":\"unsafe\"}\n\n"
	if _, text := s.Ask(t, "GET", "/broken", adaptertest.SiteToken, ""); text != want {
		t.Errorf("%q", text)
	}
	time.AfterFunc(0, func() { <-began; end() })
	if _, text := s.Ask(t, "GET", "/endless", adaptertest.SiteToken, ""); text != "data: 1\n\n" {
		t.Errorf("%q", text)
	}
}

// TestStreamOfAbsentClient: a stream ends when its client leaves.
func TestStreamOfAbsentClient(t *testing.T) {
	s := adaptertest.New(t, nil)
	ended := make(chan error, 1)
	s.Serve(t, []web.Route{s.Route("GET /endless", web.Principals, func(ctx context.Context, c *adapter.Call) (any, error) {
		return s.Stream(ctx, c, func(ctx context.Context, send func(string, any) error) error {
			if err := send("", 1); err != nil {
				return err
			}
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		})
	})})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/endless", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+adaptertest.SiteToken)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); line != "data: 1\n" {
		t.Fatal(line, err)
	}
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestVia: a call through too many sites, or through names that do not fit, is refused or noted by the node.
func TestVia(t *testing.T) {
	s := adaptertest.New(t, nil)
	s.Serve(t, []web.Route{s.Route("GET /terms", web.Principals, func(_ context.Context, c *adapter.Call) (any, error) {
		terms, err := c.Terms()
		return terms.Via, err
	})})
	for via, want := range map[string]string{"": "[]", "a": `["a"]`, "a, b": `["a","b"]`, "a,b,c,d,e,f,g": `["a","b","c","d","e","f,g"]`} {
		if _, text := s.Ask(t, "GET", "/terms", adaptertest.SiteToken, "", "Agentsite-Via", via); text != want {
			t.Errorf("%q: %s", via, text)
		}
	}
}
