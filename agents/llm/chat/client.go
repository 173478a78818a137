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
	"os"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
)

const (
	maxRetries    = 2
	maxRetryAfter = 30 * time.Second
	maxError      = 16 << 10 // of the text of an error
)

// optional are the fields that a server may refuse, in the order of their bits.
var optional = [...]string{"stream_options", "max_tokens"}

const (
	withoutStreamOptions = 1 << iota
	withoutMaxTokens
)

func (e *Endpoint) connect() {
	e.client.Transport = &http.Transport{ // without a proxy, which the environment would name
		DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 15 * time.Second,
		IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 1, MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
	}
	e.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
}

// CloseIdle closes the connections that nothing uses.
func (e *Endpoint) CloseIdle() {
	e.once.Do(e.connect)
	e.client.CloseIdleConnections()
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
	for tries := 1; ; {
		a, again, err := e.ask(ctx, &r, tries, say)
		if err == nil {
			return a, nil
		}
		sent = sent || !a.Usage.Known
		if again > 0 {
			tries++
		}
		if again < 0 || tries > maxRetries+1 || device.Sleep(ctx, again) != nil {
			return Answer{Usage: Usage{Known: !sent}}, err
		}
	}
}

// ask sends a request once. Beside an error, the usage is known where nothing was sent, and again is
// how long after it the request may be sent again: 0 where the server did not know a field, which is
// left out from now on; less than 0 for never.
func (e *Endpoint) ask(ctx context.Context, r *Request, tries int, say func(string)) (a Answer, again time.Duration, err error) {
	without := e.without.Load()
	ctx, stalled := context.WithCancelCause(ctx)
	defer stalled(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL+"/chat/completions", strings.NewReader(e.wire(r, without)))
	if err != nil {
		return a, -1, device.Faultf(device.Invalid, "the model's address: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	req.Header.Set("User-Agent", "agentsite")
	key := ""
	if e.Key != nil {
		if key, err = e.Key(); err != nil {
			a.Usage.Known = true
			return a, -1, device.Faultf(device.Denied, "the key of the model's server: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
	}
	first, between, began := cmp.Or(e.First, time.Minute), cmp.Or(e.Between, 30*time.Second), false
	watch := time.AfterFunc(first, func() { stalled(os.ErrDeadlineExceeded) })
	defer watch.Stop()
	again = -1
	e.once.Do(e.connect)
	res, err := e.client.Do(req)
	if err == nil {
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return e.refused(res, without, key, tries)
		}
		m := merger{body: res.Body, say: say, key: key, alive: func() { began = true; watch.Reset(between) }}
		a, err = m.read(strings.HasPrefix(res.Header.Get("Content-Type"), "application/json"))
	} else {
		again = backOff(tries)
		if at, ok := err.(*url.Error); ok { // which repeats the address
			err = at.Err
		}
		var op *net.OpError
		if errors.As(err, &op) {
			a.Usage.Known = op.Op == "dial"
			err = op
		} else { // a head that is no HTTP is in it
			err = errors.New(quote(err.Error(), key))
		}
		err = device.Faultf(device.Offline, "the model's server at %s is not reached: %w", req.URL.Host, err)
	}
	if err == nil || ctx.Err() == nil {
		return a, again, err
	}
	if err = context.Cause(ctx); errors.Is(err, os.ErrDeadlineExceeded) {
		err = device.Faultf(device.Unavailable, "the model's server at %s did not begin to answer in %v; it may be loading the model", req.URL.Host, first)
		if began {
			err = device.Faultf(device.Unavailable, "the model's server at %s stopped in the middle of its answer, for %v", req.URL.Host, between)
		}
	}
	return a, -1, err
}

// refused returns why a server did not answer, as ask does.
func (e *Endpoint) refused(res *http.Response, without uint32, key string, tries int) (a Answer, again time.Duration, err error) {
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxError))
	kind, says := device.Unavailable, "answers"
	again = -1
	switch code := res.StatusCode; {
	case code == http.StatusBadRequest || code == http.StatusUnprocessableEntity:
		for i, field := range optional {
			if bit := uint32(1) << i; without&bit == 0 && bytes.Contains(text, []byte(field)) {
				without |= bit
				e.without.Store(without)
				again = 0
			}
		}
		kind, says = device.Invalid, "refuses the request"
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		kind, says = device.Denied, "refuses the key"
	case code == http.StatusNotFound:
		kind, says = device.Invalid, "has another address, or knows no model "+strconv.Quote(e.Model)
	case code == http.StatusTooManyRequests || code >= 500:
		says = "has no answer now"
		again = backOff(tries)
		if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
			again = min(time.Duration(n)*time.Second, maxRetryAfter)
		}
	case code >= 300 && code < 400:
		kind, says = device.Invalid, "sends elsewhere, which is not followed; write the address where it is"
	}
	return a, again, device.Faultf(kind, "the model's server %s (%d): %s", says, res.StatusCode, errorText(text, key))
}

// backOff is how long to wait after so many tries.
func backOff(tries int) time.Duration {
	return time.Duration(tries*tries)*time.Second/2 + rand.N(time.Second/2)
}

// errorText returns what a server says about an error, quoted and short.
func errorText(body []byte, key string) string {
	e := Fields(body)["error"]
	return quote(cmp.Or(Text(Fields(e)["message"]), Text(e), string(body)), key)
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
