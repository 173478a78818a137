package chat

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"agentsite/device"

	"github.com/go-json-experiment/json"
)

const (
	maxRetries    = 2
	maxRetryAfter = 30 * time.Second
	maxError      = 16 << 10 // of the text of an error
)

// The optional fields of a request.
const (
	withoutStreamOptions = 1 << iota
	withoutMaxTokens     // max_completion_tokens is its newer name
	withoutToolChoice
	withoutTemperature
)

var optional = []struct {
	field string
	bit   uint32
}{{"stream_options", withoutStreamOptions}, {"max_tokens", withoutMaxTokens}, {"tool_choice", withoutToolChoice}, {"temperature", withoutTemperature}}

type client struct{ http.Client }

// connection returns the client, made at the first request: an endpoint that nobody asks has none.
func (e *Endpoint) connection() *client {
	if c := e.client.Load(); c != nil {
		return c
	}
	c := &client{http.Client{
		Transport: &http.Transport{ // without a proxy, which the environment would name
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 15 * time.Second,
			IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 1, MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if !e.client.CompareAndSwap(nil, c) {
		return e.client.Load()
	}
	return c
}

// CloseIdle closes the connections that nothing uses.
func (e *Endpoint) CloseIdle() {
	if c := e.client.Load(); c != nil {
		c.CloseIdleConnections()
	}
}

// Complete asks the model, and blocks until it has answered. say gets the text so far, from the same
// goroutine, some times a second; nil for none. A request is sent again only where nothing of an
// answer came. Errors are faults; texts of the server in them are quoted and short. Beside an error,
// the answer's usage is known where nothing was sent: none.
func (e *Endpoint) Complete(ctx context.Context, r Request, say func(sofar string)) (Answer, error) {
	whole := cmp.Or(e.Whole, 5*time.Minute)
	ctx, cancel := context.WithTimeoutCause(ctx, whole, device.Faultf(device.Unavailable, "the model's server did not end its answer in %v", whole))
	defer cancel()
	sent := false
	failed := func(err error) (Answer, error) { return Answer{Usage: Usage{Known: !sent}}, err }
	for tries := 0; ; {
		a, again, err := e.once(ctx, &r, say)
		sent = sent || !a.Usage.Known || err == nil
		var wait *retry
		switch {
		case again:
			continue
		case err == nil:
			return a, nil
		case !errors.As(err, &wait) || tries == maxRetries:
			if ctx.Err() != nil && !errors.As(err, new(*device.Fault)) {
				err = context.Cause(ctx)
			}
			if wait != nil {
				err = wait.error
			}
			return failed(err)
		}
		tries++
		if err := device.Sleep(ctx, wait.after(tries)); err != nil {
			return failed(wait.error)
		}
	}
}

// retry is an error after which the request may be sent again.
type retry struct {
	error
	told time.Duration // by the server; 0 for nothing
}

func (r *retry) Unwrap() error { return r.error }

func (r *retry) after(tries int) time.Duration {
	if r.told > 0 {
		return r.told
	}
	return time.Duration(tries*tries)*time.Second/2 + rand.N(time.Second/2)
}

// once sends a request once. again is true where the server did not know a field, which is left out
// from now on. Beside an error, the usage is known where nothing was sent.
func (e *Endpoint) once(ctx context.Context, r *Request, say func(string)) (a Answer, again bool, err error) {
	without := e.without.Load()
	body, err := json.Marshal(e.wire(r, without))
	if err != nil {
		return a, false, device.Faultf(device.Internal, "the request to the model: %w", err)
	}
	root, err := url.Parse(e.URL)
	if err != nil {
		return a, false, device.Faultf(device.Invalid, "the model's address: %w", err)
	}
	// The watch ends a server that stands still.
	ctx, stalled := context.WithCancelCause(ctx)
	defer stalled(nil)
	first, between := cmp.Or(e.First, time.Minute), cmp.Or(e.Between, 30*time.Second)
	var began atomic.Bool
	watch := time.AfterFunc(first, func() {
		if began.Load() {
			stalled(device.Faultf(device.Unavailable, "the model's server at %s stopped in the middle of its answer, for %v", root.Host, between))
			return
		}
		stalled(device.Faultf(device.Unavailable, "the model's server at %s did not begin to answer in %v; it may be loading the model", root.Host, first))
	})
	defer watch.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, root.JoinPath("chat/completions").String(), bytes.NewReader(body))
	if err != nil {
		return a, false, device.Faultf(device.Invalid, "the model's address: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	req.Header.Set("User-Agent", "agentsite")
	key := ""
	if e.Key != nil {
		if key, err = e.Key(); err != nil {
			a.Usage.Known = true
			return a, false, device.Faultf(device.Denied, "the key of the model's server: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := e.connection().Do(req)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) { // which repeats the address
			err = at.Err
		}
		var op *net.OpError
		if !errors.As(err, &op) { // a head that is no HTTP is in it
			err = errors.New(quote(err.Error(), key))
		}
		a.Usage.Known = op != nil && op.Op == "dial"
		if ctx.Err() != nil {
			return a, false, context.Cause(ctx)
		}
		return a, false, &retry{error: device.Faultf(device.Offline, "the model's server at %s is not reached: %w", root.Host, err)}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		again, err := e.refused(res, without, key)
		return a, again, err
	}
	a, err = read(res, key, func() { began.Store(true); watch.Reset(between) }, say)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return a, false, err
}

// wire returns a request as it is sent, without what the server does not know.
func (e *Endpoint) wire(r *Request, without uint32) wireRequest {
	w := wireRequest{Model: e.Model, Messages: wireMessages(r.Messages), Tools: wireTools(r.Tools), Stream: true, MaxTokens: r.MaxAnswer, Temperature: r.Temperature}
	if without&withoutStreamOptions == 0 {
		w.StreamOptions = &wireStream{true}
	}
	if without&withoutMaxTokens != 0 {
		w.MaxTokens, w.MaxCompletion = 0, r.MaxAnswer
	}
	if r.MustCall && len(r.Tools) > 0 && without&withoutToolChoice == 0 {
		w.ToolChoice = "required"
	}
	if without&withoutTemperature != 0 {
		w.Temperature = nil
	}
	return w
}

// refused returns why a server did not answer.
func (e *Endpoint) refused(res *http.Response, without uint32, key string) (again bool, err error) {
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxError))
	says := errorText(text, key)
	switch code := res.StatusCode; {
	case code == http.StatusBadRequest || code == http.StatusUnprocessableEntity:
		for _, o := range optional {
			if without&o.bit == 0 && bytes.Contains(text, []byte(o.field)) {
				e.without.Store(without | o.bit)
				return true, nil
			}
		}
		return false, device.Faultf(device.Invalid, "the model's server refuses the request: %s", says)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return false, device.Faultf(device.Denied, "the model's server refuses the key: %s", says)
	case code == http.StatusNotFound:
		return false, device.Faultf(device.Invalid, "the model's server knows no model %.60q, or has another address: %s", e.Model, says)
	case code == http.StatusTooManyRequests || code >= 500:
		told := time.Duration(0)
		if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
			told = min(time.Duration(n)*time.Second, maxRetryAfter)
		}
		return false, &retry{device.Faultf(device.Unavailable, "the model's server has no answer now (%d): %s", code, says), told}
	case code >= 300 && code < 400:
		return false, device.Faultf(device.Invalid, "the model's server sends elsewhere (%d), which is not followed: write the address where it is", code)
	default:
		return false, device.Faultf(device.Unavailable, "the model's server answers %d: %s", code, says)
	}
}

// errorText returns what a server says about an error, quoted and short.
func errorText(body []byte, key string) string {
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	var plain struct {
		Error string `json:"error"`
	}
	text := string(body)
	if json.Unmarshal(body, &e, lenient) == nil && e.Error.Message != "" {
		text = e.Error.Message
	} else if json.Unmarshal(body, &plain, lenient) == nil && plain.Error != "" {
		text = plain.Error
	}
	return quote(text, key)
}

// quote returns a server's text quoted and short, also where its letters have long escapes, and
// without the key, which some servers repeat.
func quote(text, key string) string {
	const most = 200
	if key != "" {
		text = strings.ReplaceAll(text, key, "(the key)")
	}
	text = strings.TrimSpace(text)
	for n := most; ; n /= 2 {
		if q := fmt.Sprintf("%.*q", n, text); len(q) <= 4*most+2 {
			return q
		}
	}
}
