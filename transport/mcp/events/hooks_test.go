package events

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/event/eventtest"
	"agentsite/device"
	"agentsite/node"
	"agentsite/transport/rpc"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// secretOf returns a secret of 24 times a letter.
func secretOf(letter string) string {
	return secretPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 24)))
}

const hookURL = "https://hooks.example.com/mcp"

// message is one that a receiver got.
type message struct {
	url    string
	header http.Header
	body   string
}

// is reports whether a message is of an event or of a type of control.
func (m message) is(what string) bool {
	return strings.Contains(m.body, `"eventId":"`+what+`"`) || strings.Contains(m.body, `"type":"`+what+`"`)
}

// signedBy reports whether one of the signatures is by a secret (Standard Webhooks).
func (m message) signedBy(secret string) bool {
	k, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	mac := hmac.New(sha256.New, k)
	fmt.Fprintf(mac, "%s.%s.%s", m.header.Get("Webhook-Id"), m.header.Get("Webhook-Timestamp"), m.body)
	return strings.Contains(m.header.Get("Webhook-Signature"), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// rig is a site with webhooks, and its receivers: they answer challenges, and status says what else they answer.
type rig struct {
	source *eventtest.Source
	hooks  *Webhooks
	end    func() // of the site, and waits for it
	got    chan message

	mu     sync.Mutex
	file   []byte
	writes int
	broken error                                  // of writes of the file
	status func(r *http.Request, body string) int // 0 for no answer until the request ends
}

func newRig(t *testing.T, source *eventtest.Source, file []byte) *rig {
	r := &rig{source: source, got: make(chan message, 256), file: file}
	ending, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	n := node.New(node.Parts{Hub: node.NewHub(nil, forgetful{}, func(a string) string { return a }), Token: "secret"})
	options := HookOptions{
		Source: source, Node: n, Hosts: []string{"hooks.example.com", "other.example.com:8443"},
		Read: func() ([]byte, error) { return r.file, nil },
		Write: func(b []byte) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.broken != nil {
				return r.broken
			}
			r.file, r.writes = b, r.writes+1
			return nil
		},
		Now: func() (time.Time, bool) { return time.Now(), true }, Ending: ending, Go: running.Go,
	}
	r.hooks = newWebhooks(options, &http.Client{Timeout: sendTimeout, Transport: r})
	r.end = func() { end(); running.Wait() }
	t.Cleanup(r.end)
	return r
}

type forgetful struct{}

func (forgetful) Record(device.Reading) {}

func (r *rig) stored() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.file)
}

// full has the file be written no more, or again.
func (r *rig) full(is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken = nil; is {
		r.broken = syscall.ENOSPC
	}
}

func (r *rig) answer(status func(r *http.Request, body string) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *rig) RoundTrip(q *http.Request) (*http.Response, error) {
	b, _ := io.ReadAll(q.Body)
	body := string(b)
	r.mu.Lock()
	code := http.StatusNoContent
	if r.status != nil {
		code = r.status(q, body)
	}
	r.mu.Unlock()
	r.got <- message{q.URL.String(), q.Header, body}
	if code == 0 {
		<-q.Context().Done()
		return nil, q.Context().Err()
	}
	answer := ""
	if strings.Contains(body, `"type":"verification"`) && code/100 == 2 {
		code, answer = http.StatusOK, strings.Replace(body, `"type":"verification"`, `"ok":true`, 1)
	}
	return &http.Response{StatusCode: code, Header: make(http.Header), Body: io.NopCloser(strings.NewReader(answer))}, nil
}

// next returns the next message, which is of an event or of a type of control.
func (r *rig) next(t *testing.T, what string) message {
	t.Helper()
	m := <-r.got
	if !m.is(what) {
		t.Errorf("%s, want %s", m.body, what)
	}
	return m
}

func ask(url, secret, more string) *Subscribed {
	text := fmt.Sprintf(`{"name":"point.changed","arguments":{"every":1,"point":"room/lamp"},"delivery":{"mode":"webhook","url":%q,"secret":%q}%s}`, url, secret, more)
	var a Subscribed
	if err := rpc.RawJSON([]byte(text)).Decode(&a); err != nil {
		panic(err)
	}
	return &a
}

func (r *rig) subscribe(t *testing.T, who agents.Principal, a *Subscribed) SubscribeResult {
	t.Helper()
	out, err := r.hooks.Subscribe(t.Context(), who, a, true)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var caller = node.LocalAgent

// TestHook: a receiver proves itself, gets signed events, and nothing after the subscription was ended.
func TestHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, eventtest.New(), nil)
		r.source.Add("room/lamp") // before: null never replays
		out := r.subscribe(t, caller, ask(hookURL, secretOf("a"), ""))
		if m := r.next(t, "verification"); !m.signedBy(secretOf("a")) || m.header.Get("X-Mcp-Subscription-Id") != out.ID {
			t.Errorf("%+v", m)
		}
		if !strings.HasPrefix(
			out.ID, "sub_",
		) || *out.Refresh != stamp(time.Now().Add(time.Hour)) || *out.Cursor != "1" || out.Truncated || out.Status != nil {
			t.Errorf("%+v", out)
		}
		r.source.Add("room/lamp")
		m := r.next(t, "e2")
		const body = `{"eventId":"e2","name":"point.changed","timestamp":"2026-11-28T00:00:02.000Z","data":{"point":"room/lamp","value":2},"cursor":"2"}`
		if m.body != body || m.url != hookURL || m.header.Get(
			"Webhook-Id",
		) != "e2" || m.header.Get("Content-Type") != "application/json" ||
			m.header.Get("Webhook-Timestamp") != fmt.Sprint(time.Now().Unix()) || !m.signedBy(secretOf("a")) {
			t.Errorf("%+v", m)
		}
		ended := ask(hookURL, "", "")
		if err := r.hooks.Unsubscribe(t.Context(), caller, ended, true); err != nil {
			t.Error(err)
		}
		r.source.Add("room/lamp")
		synctest.Wait()
		if len(r.got) > 0 || strings.Contains(r.stored(), "hooks.example.com") {
			t.Errorf("%v %s", len(r.got), r.stored())
		}
		if err := r.hooks.Unsubscribe(t.Context(), caller, ended, true); Refuse(err, true).Code != -32023 {
			t.Error(err)
		}
		if err := r.hooks.Unsubscribe(t.Context(), caller, ended, false); err != nil {
			t.Error(err)
		}
	})
}

// TestHookRefresh: the same key is the same subscription, in whatever order its arguments are. Both secrets sign for a
// while.
func TestHookRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, eventtest.New(), nil)
		first := r.subscribe(t, caller, ask(hookURL, secretOf("a"), ""))
		r.next(t, "verification")
		again := ask(hookURL, secretOf("b"), `,"cursor":"0","ttlMs":7200000`)
		again.Arguments = rpc.RawJSON([]byte(`{ "point": "room/lamp", "every": 1 }`))
		second := r.subscribe(t, caller, again)
		if second.ID != first.ID || *second.Refresh != stamp(
			time.Now().Add(2*time.Hour),
		) || second.Status == nil || !second.Status.Active {
			t.Errorf("%+v %+v", first, second)
		}
		r.source.Add("room/lamp")
		if m := r.next(t, "e1"); !m.signedBy(secretOf("a")) || !m.signedBy(secretOf("b")) {
			t.Errorf("%+v", m)
		}
		time.Sleep(rotation)
		r.source.Add("room/lamp")
		if m := r.next(t, "e2"); m.signedBy(secretOf("a")) || !m.signedBy(secretOf("b")) {
			t.Errorf("%+v", m)
		}
		other := r.subscribe(t, node.LocalOwner, ask(hookURL, secretOf("a"), ""))
		r.next(t, "verification")
		if other.ID == first.ID {
			t.Error("another principal has the same subscription")
		}
	})
}

// TestHookTTL: a wish is bounded, and a subscription that is not refreshed ends.
func TestHookTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, eventtest.New(), nil)
		for wish, want := range map[string]time.Duration{
			"": time.Hour, `,"ttlMs":1000`: minTTL, `,"ttlMs":1e15`: maxTTL, `,"ttlMs":null`: maxTTL, `,"ttlMs":600000`: 10 * time.Minute,
		} {
			if out := r.subscribe(t, caller, ask(hookURL, secretOf("a"), wish)); *out.Refresh != stamp(time.Now().Add(want)) {
				t.Errorf("%s: %s", wish, *out.Refresh)
			}
		}
		r.subscribe(t, caller, ask(hookURL, secretOf("a"), `,"ttlMs":600000`))
		r.next(t, "verification")
		time.Sleep(11 * time.Minute)
		r.source.Add("room/lamp")
		synctest.Wait()
		if len(r.got) > 0 || strings.Contains(r.stored(), "hooks.example.com") {
			t.Error(r.stored())
		}
		// It has lapsed, and goes on at the cursor.
		r.subscribe(t, caller, ask(hookURL, secretOf("a"), `,"cursor":"0"`))
		r.next(t, "verification")
		r.next(t, "e1")
	})
}

// TestHookRefused: what cannot be subscribed to is refused, and nobody is asked.
func TestHookRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, eventtest.New(), nil)
		good := secretOf("a")
		of := func(length int) string {
			return secretPrefix + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), length))
		}
		for name, c := range map[string]struct {
			a    *Subscribed
			code int
		}{
			"plain HTTP":      {ask("http://hooks.example.com/x", good, ""), -32602},
			"another host":    {ask("https://example.com/x", good, ""), -32602},
			"another port":    {ask("https://hooks.example.com:8443/x", good, ""), -32602},
			"this machine":    {ask("https://127.0.0.1/x", good, ""), -32602},
			"this network":    {ask("https://10.1.2.3/x", good, ""), -32602},
			"a user":          {ask("https://ann@hooks.example.com/x", good, ""), -32602},
			"no prefix":       {ask(hookURL, strings.TrimPrefix(good, secretPrefix), ""), -32602},
			"no base64":       {ask(hookURL, secretPrefix+"!", ""), -32602},
			"a short secret":  {ask(hookURL, of(23), ""), -32602},
			"a long secret":   {ask(hookURL, of(65), ""), -32602},
			"a TTL of a text": {ask(hookURL, good, `,"ttlMs":"1"`), -32602},
			"no TTL":          {ask(hookURL, good, `,"ttlMs":0`), -32602},
			"another event":   {nil, 0},
		} {
			if name == "another event" {
				c.a, c.code = ask(hookURL, good, ""), -32023
				c.a.Name = "no.such"
			}
			_, err := r.hooks.Subscribe(t.Context(), caller, c.a, true)
			if e := Refuse(
				err, true,
			); e == nil || e.Code != c.code || strings.Contains(e.Message, strings.TrimPrefix(good, secretPrefix)) {
				t.Errorf("%s: %v", name, err)
			}
		}
		mode := ask(hookURL, good, "")
		mode.Delivery.Mode = "pigeon"
		if _, err := r.hooks.Subscribe(t.Context(), caller, mode, false); Refuse(err, false).Code != -32014 {
			t.Error(err)
		}
		if _, err := r.hooks.Subscribe(t.Context(), agents.Principal{}, ask(hookURL, good, ""), true); err == nil {
			t.Error("nobody has a subscription")
		}
		if len(r.got) > 0 {
			t.Errorf("%+v", <-r.got)
		}
	})
}

// TestHookProof: who does not answer with the challenge gets no subscription, and the caller is told only a reason.
func TestHookProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, eventtest.New(), nil)
		for code, reason := range map[int]string{404: "http_4xx", 307: "http_4xx", 503: "http_5xx", 0: "timeout"} {
			r.answer(func(*http.Request, string) int { return code })
			_, err := r.hooks.Subscribe(t.Context(), caller, ask(hookURL, secretOf("a"), ""), true)
			if e := Refuse(err, true); e == nil || e.Code != -32027 || e.Data != (reasonData{reason}) {
				t.Errorf("%d: %v", code, e)
			}
		}
		r.hooks.to.Client.Transport = transport(func(q *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"challenge":"another"}`))}, nil
		})
		_, err := r.hooks.Subscribe(t.Context(), caller, ask(hookURL, secretOf("a"), ""), true)
		if e := Refuse(err, true); e == nil || e.Data != (reasonData{"challenge_failed"}) {
			t.Error(err)
		}
		if strings.Contains(r.stored(), "sub_") {
			t.Error(r.stored())
		}
	})
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestHookDamage: a file that cannot be read stays as it is, and nothing is stored.
func TestHookDamage(t *testing.T) {
	for _, text := range []string{`{`, `{"version":2}`, `{"version":1,"pushes":[null]}`} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, eventtest.New(), []byte(text))
			_, err := r.hooks.Subscribe(t.Context(), caller, ask(hookURL, secretOf("a"), ""), true)
			if device.AsFault(
				err,
			).Kind != device.Unavailable || !strings.Contains(err.Error(), "webhooks.json") || r.stored() != text {
				t.Errorf("%v, %s", err, r.stored())
			}
		})
	}
}

// TestHookDial: a name that leads to this machine is not asked, and a redirect is not followed.
func TestHookDial(t *testing.T) {
	var asked atomic.Int32
	inner := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inner.Close()
	redirect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inner.URL, http.StatusTemporaryRedirect)
	}))
	defer redirect.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(inner.URL, "https://"), ":")
	r := newRig(t, eventtest.New(), nil)
	for url, reason := range map[string]string{
		"https://localhost:" + port: "connection_refused", redirect.URL: "http_4xx",
	} {
		o := r.hooks.HookOptions
		_, host, _ := strings.Cut(url, "://")
		o.Hosts, o.Read = []string{host}, nil
		_, err := NewWebhooks(o).Subscribe(t.Context(), caller, ask(url, secretOf("a"), ""), true)
		if e := Refuse(err, true); e == nil || e.Data != (reasonData{reason}) {
			t.Errorf("%s: %v", url, err)
		}
	}
	if asked.Load() > 0 {
		t.Error("it was asked")
	}
}

// FuzzSubscribe: whatever is asked is an error or a request that holds what the source and the sender need.
func FuzzSubscribe(f *testing.F) {
	f.Add([]byte(`{"name":"a","arguments":{"b":1},"delivery":{"mode":"webhook","url":"https://hooks.example.com","secret":"whsec_"},"ttlMs":null,"cursor":null}`))
	f.Add([]byte(`{"name":"a","arguments":[],"cursor":7,"ttlMs":-1,"maxAgeMs":-1}`))
	w := newWebhooks(HookOptions{Hosts: []string{"hooks.example.com"}, Ending: context.Background(), Go: func(func()) {},
		Now: func() (time.Time, bool) { return time.Time{}, false }}, nil)
	f.Fuzz(func(t *testing.T, text []byte) {
		raw, err := rpc.ParseJSON(text)
		if err != nil {
			return
		}
		var a Subscribed
		if raw.Decode(&a) != nil {
			return
		}
		if ttl, err := a.ttl(); err == nil && (ttl < minTTL || ttl > maxTTL) {
			t.Errorf("%s: %v", text, ttl)
		}
		if want, err := w.wanted(&a); err == nil {
			var args map[string]any
			if want.Name == "" || want.MaxAge < 0 || json.Unmarshal(want.Args, &args) != nil || !want.asked.IsValid() {
				t.Errorf("%s: %+v", text, want)
			}
		}
	})
}
