package chat

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
)

const (
	maxRetries    = 2
	maxRetryAfter = 30 * time.Second
)

// Members of a request that some servers refuse.
const (
	streamOptions  = "stream_options" // Mistral
	maxTokensField = "max_tokens"     // OpenAI's newer models
	stream         = "stream"         // llama.cpp before 2025-05, with tools
	systemRole     = "system"         // the templates of Gemma and of older Mistral models
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
	whole := cmp.Or(e.Whole, cmp.Or(e.First, DefaultFirst)+15*time.Minute)
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
		if r.Again != nil && !a.Usage.Known {
			if err := r.Again(); err != nil {
				return Answer{}, err
			}
		}
	}
}

// ask sends a request once. Beside an error, the usage is known where nothing was sent, and again is
// how long after it the request may be sent again: 0 where the server refused what is left out from now
// on; less than 0 for never.
func (e *Endpoint) ask(ctx context.Context, r *Request, tries int, say func(string)) (a Answer, again time.Duration, err error) {
	e.mu.Lock()
	without := e.without
	e.mu.Unlock()
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
	first, between, began := cmp.Or(e.First, DefaultFirst), cmp.Or(e.Between, DefaultBetween), false
	if slices.Contains(without, stream) { // which begins when it is whole
		first += cmp.Or(e.Whole, 15*time.Minute)
	}
	watch := time.AfterFunc(first, func() { stalled(os.ErrDeadlineExceeded) })
	defer watch.Stop()
	again = -1
	e.once.Do(e.connect)
	res, err := e.client.Do(req)
	if err == nil {
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return e.refused(res, r, key, tries)
		}
		m := merger{body: res.Body, say: say, key: key, alive: func() { began = true; watch.Reset(between) }}
		if a, err = m.read(); err != nil && m.text.Len() == 0 && m.calls == nil && ctx.Err() == nil && e.learn(err.Error(), r) {
			again = 0
		}
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
		err = device.Faultf(device.Unavailable, "the model's server at %s did not begin to answer in %v; if it is loading the model or reads slowly, raise model.first_token", req.URL.Host, device.FormatDuration(first))
		if began {
			err = device.Faultf(device.Unavailable, "the model's server at %s stopped in the middle of its answer, for %v; if it writes slowly, raise model.between_tokens", req.URL.Host, device.FormatDuration(between))
		}
	}
	return a, -1, err
}

// learn notes what of a request a server refuses by its words, and reports whether that is new.
func (e *Endpoint) learn(says string, r *Request) (learned bool) {
	lower := strings.ToLower(says)
	refuses := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower, w) })
	}
	names := make(map[string]bool)
	if !refuses("missing", "must be passed", "required") { // then it wants more
		for i := range r.Messages {
			m := &r.Messages[i]
			for name := range m.Extra {
				names[name] = mentions(says, name)
			}
			for i := range m.Calls {
				for name := range m.Calls[i].Extra {
					names[name] = mentions(says, name)
				}
				for name := range m.Calls[i].FunctionExtra {
					names[name] = mentions(says, name)
				}
			}
		}
	}
	names[streamOptions] = mentions(says, streamOptions)
	names[maxTokensField] = r.MaxAnswer > 0 && mentions(says, maxTokensField)
	names[stream] = mentions(says, stream) && refuses("not", "n't", "unsupported")
	names[systemRole] = refuses("system") && refuses("role") || refuses("roles must alternate", "user and assistant roles")
	e.mu.Lock()
	defer e.mu.Unlock()
	without := slices.Clone(e.without)
	for name, is := range names {
		if is && !slices.Contains(without, name) && len(without) < maxExtraNames {
			without, learned = append(without, name), true
		}
	}
	e.without = without
	return learned
}

// refused returns why a server did not answer, as ask does.
func (e *Endpoint) refused(res *http.Response, r *Request, key string, tries int) (a Answer, again time.Duration, err error) {
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxError))
	kind, says := device.Unavailable, "answers"
	again = -1
	switch code := res.StatusCode; {
	case (code == http.StatusBadRequest || code == http.StatusUnprocessableEntity || code >= 500) && e.learn(string(text), r):
		return a, 0, device.Faultf(kind, "the model's server refuses a part of the request (%d): %s", code, errorText(text, key))
	case code == http.StatusBadRequest || code == http.StatusUnprocessableEntity:
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

// backOff returns the pause after a number of tries.
func backOff(tries int) time.Duration {
	return time.Duration(tries*tries)*time.Second/2 + rand.N(time.Second/2)
}
