package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"agentsite/agents"
	"agentsite/node/occurrence"
	"agentsite/node/outbox"
	"agentsite/transport/web/outbound"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// got is a request that a receiver got.
type got struct {
	path   string
	header http.Header
	body   string
}

// receive starts a receiver, which answers as answer says.
func receive(t *testing.T, answer http.HandlerFunc) (*httptest.Server, func() []got) {
	var mu sync.Mutex
	var all []got
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		all = append(all, got{r.URL.Path, r.Header, string(body)})
		mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server, func() []got { mu.Lock(); defer mu.Unlock(); return all }
}

// newAgent returns an agent of a site.
func newAgent(to map[string]Receiver) *Agent {
	return &Agent{To: to, Page: "https://greenhouse.local:8474/", world: World{
		Site: "greenhouse", Now: func() (time.Time, bool) { return time.Unix(1_790_000_000, 0), true },
		Secret: func(name string) (string, error) { return "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0", nil },
	}}
}

// messageOf returns a message of some occurrences.
func (a *Agent) messageOf(all ...occurrence.Occurrence) outbox.Message {
	m := outbox.Message{ID: "m1"}
	for _, o := range all {
		i := a.item(o)
		i.Count = 1
		m.Items = append(m.Items, i)
	}
	return m
}

func (a *Agent) send(t *testing.T, name string, o ...occurrence.Occurrence) error {
	return a.sender(a.To[name]).Send(t.Context(), a.messageOf(o...))
}

var approval = occurrence.Occurrence{
	ID: "1", Kind: occurrence.Approval, Of: "HANDLE", State: occurrence.Once, Who: "llm:gardener", Tool: "switch_output",
	Args: []byte(`{"output":"valve/open","on":true,"for_seconds":120}`), Left: time.Minute, At: time.Unix(1_790_000_000, 0), Sure: true,
}

// TestNtfy: a message is published as the server takes it, with the link in it and the token in a header.
func TestNtfy(t *testing.T) {
	server, all := receive(t, nil)
	a := newAgent(map[string]Receiver{"phone": {Ntfy: server.URL + "/sub/garden-7f3k", KeyFile: "ntfy.token"}})
	if _, err := a.Define(); err != nil {
		t.Fatal(err)
	}
	if err := a.send(t, "phone", approval); err != nil {
		t.Fatal(err)
	}
	var p published
	one := all()[0]
	if err := json.Unmarshal([]byte(one.body), &p); err != nil {
		t.Fatal(err)
	}
	if one.path != "/sub/" || p.Topic != "garden-7f3k" || p.Priority != 5 || p.Click != "https://greenhouse.local:8474/#waiting?s=greenhouse&call=HANDLE" ||
		p.Actions[0].URL != p.Click || !strings.Contains(p.Message, "set valve/open to on for 2m") || !strings.Contains(p.Title, "greenhouse: llm:gardener") ||
		one.header.Get("Authorization") != "Bearer whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0" {
		t.Errorf("%+v", one)
	}
	if err := a.send(t, "phone", approval, occurrence.Occurrence{Kind: occurrence.Device, Of: "tank", State: occurrence.Begins}); err != nil {
		t.Fatal(err)
	}
	if body := all()[1].body; !strings.Contains(body, "tank is lost") || !strings.Contains(body, "2 messages") {
		t.Error(body)
	}
}

// TestToldAtStart: what happened before the agent began is told, also where nothing waited at the last end.
func TestToldAtStart(t *testing.T) {
	server, all := receive(t, nil)
	a := newAgent(map[string]Receiver{"hook": {Webhook: server.URL}})
	now, _ := a.world.Now()
	a.world.Source = occurrence.New(occurrence.Options{Now: a.world.Now})
	a.world.Source.Ending("token:phone", "grant", now.Add(time.Hour))
	var err error
	if a.world.Outbox, err = outbox.Open(outbox.Options{Now: a.world.Now, Write: func([]byte) error { return nil }}); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx, agents.Principal{}, nil) }()
	for began := time.Now(); len(all()) == 0 && time.Since(began) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
	}
	end()
	if err := <-ended; err != nil || len(all()) != 1 || !strings.Contains(all()[0].body, "token:phone") {
		t.Errorf("%v %+v", err, all())
	}
}

// TestLong: a message of many long items has a length that each receiver takes.
func TestLong(t *testing.T) {
	server, all := receive(t, nil)
	a := newAgent(map[string]Receiver{"phone": {Ntfy: server.URL + "/x"}, "chat": {Telegram: "1", KeyFile: "bot.token"}})
	a.world.telegram = server.URL
	for _, letter := range []string{"ü", `"`, "\U0001f331"} {
		m := outbox.Message{ID: "m1"}
		for range 32 {
			m.Items = append(m.Items, outbox.Item{Title: "greenhouse: a message of ann", Text: strings.Repeat(letter, maxText), Count: 1, Link: "https://" + strings.Repeat("a", 300)})
		}
		for name := range a.To {
			if err := a.sender(a.To[name]).Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, one := range all() {
		var of struct{ Message, Text string }
		err := json.Unmarshal([]byte(one.body), &of, json.MatchCaseInsensitiveNames(true))
		units := len(utf16.Encode([]rune(of.Text))) // as Telegram counts
		if err != nil || len(of.Message) > maxNtfy || units > 4096 || of.Text == "" && len(one.body) > 2*4096 {
			t.Errorf("%v: %d bytes, %d units, %d bytes of JSON", err, len(of.Message), units, len(one.body))
		}
		if of.Text != "" && !strings.HasSuffix(of.Text, "\nhttps://"+strings.Repeat("a", 300)) {
			t.Error("a text without its link")
		}
	}
}

// TestWebhook: a message is signed, and what others wrote stays within the texts of a body.
func TestWebhook(t *testing.T) {
	server, all := receive(t, nil)
	a := newAgent(map[string]Receiver{
		"hook": {Webhook: server.URL + "/x?y=z", KeyFile: "hook.secret"},
		"own":  {Webhook: server.URL, Body: `{"text":"{title} | {text} {link} {kind} {id} {site} {time}","n":[1,{"{title}":null}]}`},
	})
	if _, err := a.Define(); err != nil {
		t.Fatal(err)
	}
	o := occurrence.Occurrence{ID: "7", Kind: occurrence.Lease, Of: "valve/open", State: occurrence.Once, Who: "ann", Because: "\",\"x\":1}\n\u202e{secret}{title}", At: time.Unix(1_700_000_000, 0), Sure: true}
	if err := errors.Join(a.send(t, "hook", o), a.send(t, "own", o)); err != nil {
		t.Fatal(err)
	}
	one := all()[0]
	want := "v1," + sign("whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0", "m1", "1790000000", []byte(one.body))
	if one.header.Get("webhook-signature") != want || one.header.Get("webhook-timestamp") != "1790000000" || one.header.Get("webhook-id") != "m1" {
		t.Errorf("%+v", one.header)
	}
	var of hooked
	if err := json.Unmarshal([]byte(one.body), &of); err != nil || len(of.Items) != 1 || of.Items[0].About != "valve/open" || of.Items[0].Kind != "lease" ||
		!strings.Contains(of.Text, "2023-11-14") || strings.ContainsAny(of.Text, "\n\u202e") {
		t.Errorf("%v %+v", err, of)
	}
	var own struct {
		Text string `json:"text"`
		N    []any  `json:"n"`
	}
	if err := json.Unmarshal([]byte(all()[1].body), &own, json.RejectUnknownMembers(true)); err != nil ||
		!strings.Contains(own.Text, "{secret}{title}") || !strings.Contains(own.Text, " lease m1 greenhouse 2023-11-14T22:13:20Z") {
		t.Errorf("%v %s", err, all()[1].body)
	}
}

// TestCallInWords: what a call would do is said by its names and values, and by no text of its caller.
func TestCallInWords(t *testing.T) {
	for _, tt := range [][3]string{
		{"switch_output", `{"output":"valve/open","on":true,"for_seconds":120}`, "set valve/open to on for 2m"},
		{"set_level", `{"output":"fan/speed","value":40}`, "set fan/speed to 40"},
		{"ask_agent", `{"agent":"beds","text":"say that all is well"}`, "ask beds"},
		{"show_text", `{"display":"panel/text","text":"all is well"}`, "call show_text"},
		{"set_level", `{"output":["x"]}`, "call set_level"}, {"pay", ``, "call pay"},
	} {
		if got := wish(tt[0], []byte(tt[1])); got != tt[2] {
			t.Errorf("%s %s: %s", tt[0], tt[1], got)
		}
	}
	if got := plain("a\nb\u202e” • “c\x1b[31m", 100); got != `a b " - "c [31m` {
		t.Errorf("%q", got)
	}
	if got := []rune(plain(strings.Repeat("ü", 600), maxText)); len(got) != maxText {
		t.Error(len(got))
	}
}

// TestKinds: each kind of occurrence has words of its own, and an end other ones than a beginning.
func TestKinds(t *testing.T) {
	a := newAgent(nil)
	said := map[string]bool{}
	for _, kind := range occurrence.Kinds {
		states := []occurrence.State{occurrence.Once}
		if kind == occurrence.Stop || kind == occurrence.Device || kind == occurrence.Supply || kind == occurrence.PowerOff {
			states = []occurrence.State{occurrence.Begins, occurrence.Ends}
		}
		for _, state := range states {
			i := a.item(occurrence.Occurrence{Kind: kind, State: state, Of: "tank", Left: time.Minute})
			if i.Text == "" || said[i.Text] || said[i.Title] {
				t.Errorf("%s %s: %+v", kind, state, i)
			}
			said[i.Text], said[i.Title] = true, true
		}
	}
}

// TestTime: a message that comes late says when it was, if that is known.
func TestTime(t *testing.T) {
	a := newAgent(nil)
	now, _ := a.world.Now()
	for _, sure := range []bool{true, false} {
		m := a.messageOf(occurrence.Occurrence{Kind: occurrence.Device, Of: "tank", At: now.Add(-time.Hour), Sure: sure})
		if got := body(m, now); strings.Contains(got, "UTC") != sure {
			t.Errorf("%t: %s", sure, got)
		}
	}
}

// TestSignature is the example of Standard Webhooks 1.0.
func TestSignature(t *testing.T) {
	got := sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if got != "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
}

// TestHostileReceiver: a receiver that redirects, is in a private network, answers without an end or refuses; none
// learns or sends more than a status, and no error has a URL, which may be a secret.
func TestHostileReceiver(t *testing.T) {
	elsewhere, reached := receive(t, nil)
	hang := make(chan struct{})
	for name, of := range map[string]struct {
		answer http.HandlerFunc
		later  bool
		says   string
		never  bool // it is not tried again
	}{
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, false, "307", false},
		"refuses": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "the owner's secret words", http.StatusForbidden)
		}, true, "403", false},
		"has no time": {func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Retry-After", "7"); w.WriteHeader(429) }, true, "429", false},
		"fails":       {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) }, false, "503", false},
		"hangs":       {func(w http.ResponseWriter, r *http.Request) { <-hang }, false, "deadline", false},
		"wants less":  {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(413) }, false, "413", true},
		"wants other": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(400) }, false, "400", true},
	} {
		server, _ := receive(t, of.answer)
		a := newAgent(map[string]Receiver{"hook": {Webhook: server.URL + "/hidden"}})
		s := a.sender(a.To["hook"]).(*sender)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if name == "hangs" {
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		}
		err := s.Send(ctx, outbox.Message{ID: "1"})
		cancel()
		var later *outbox.Later
		var refused *outbox.Refused
		if err == nil || errors.As(err, &refused) != of.never || errors.As(err, &later) != of.later || !strings.Contains(err.Error(), of.says) ||
			strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "secret") {
			t.Errorf("one that %s: %v", name, err)
		}
	}
	close(hang)
	if len(reached()) > 0 {
		t.Error("a redirect is followed")
	}
	u, _ := url.Parse(elsewhere.URL)
	a := newAgent(map[string]Receiver{"hook": {Webhook: "https://localhost:" + u.Port()}})
	if err := a.sender(a.To["hook"]).Send(t.Context(), outbox.Message{ID: "1"}); !errors.Is(err, outbound.ErrPrivate) {
		t.Error(err)
	}
}

// TestWordsOfServers: no error has words of a server that does not speak its protocol, or of its certificate.
func TestWordsOfServers(t *testing.T) {
	for _, says := range []string{"evil words\r\n", "HTTP/1.1 evil words\r\n\r\n", "HTTP/1.1 200 OK\r\nevil words\r\n\r\n", "HTTP/evil 200\r\n"} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				io.WriteString(c, says)
				c.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, c)
				c.Close()
			}
		}()
		at := ln.Addr().String()
		a := newAgent(map[string]Receiver{"hook": {Webhook: "http://" + at}, "mail": {Mail: "ann@x", Server: at}})
		for name := range a.To {
			if err := a.send(t, name, approval); err == nil || strings.Contains(err.Error(), "evil") {
				t.Errorf("%q, %s: %v", says, name, err)
			}
		}
		ln.Close()
		<-ended
	}
	err := x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"evil words"}}, Host: "hooks.example.com"}
	if got := outbound.Quiet(&url.Error{Err: &tls.CertificateVerificationError{Err: err}}, "hooks.example.com"); strings.Contains(got.Error(), "evil") {
		t.Error(got)
	}
}

// TestMistakes: each mistake is at its key.
func TestMistakes(t *testing.T) {
	many := make(map[string]Receiver)
	for _, n := range "abcdefghi" {
		many[string(n)] = Receiver{Ntfy: "https://ntfy.sh/x"}
	}
	of := func(r Receiver) Agent { return Agent{To: map[string]Receiver{"phone": r}} }
	for _, tt := range []struct {
		key string
		of  Agent
	}{
		{"to:", Agent{}}, {"to:", Agent{To: many}},
		{"page:", Agent{To: map[string]Receiver{"phone": {Ntfy: "https://ntfy.sh/x"}}, Page: "http://greenhouse.local"}},
		{"to.Phone!:", Agent{To: map[string]Receiver{"Phone!": {Ntfy: "https://ntfy.sh/x"}}}},
		{"to.phone", of(Receiver{})}, {"to.phone", of(Receiver{Ntfy: "https://ntfy.sh/x", Webhook: "https://a.example/"})},
		{"to.phone.ntfy:", of(Receiver{Ntfy: "http://ntfy.sh/x"})}, {"to.phone.ntfy:", of(Receiver{Ntfy: "https://ntfy.sh"})},
		{"to.phone.ntfy:", of(Receiver{Ntfy: "https://ntfy.sh/a b"})},
		{"to.phone.ntfy:", of(Receiver{Ntfy: "https://ntfy.sh/x?auth=y"})},
		{"to.phone.webhook:", of(Receiver{Webhook: "https://ann:x@a.example/"})},
		{"to.phone.body:", of(Receiver{Ntfy: "https://ntfy.sh/x", Body: "{}"})},
		{"to.phone.body:", of(Receiver{Webhook: "https://a.example/", Body: "text"})},
		{"to.phone.body:", of(Receiver{Webhook: "https://a.example/", Body: `{"a":"{topic}"}`})},
		{"to.phone.key_file:", of(Receiver{Webhook: "https://a.example/", KeyFile: "../x"})},
		{"to.phone.key_file:", of(Receiver{Webhook: "https://a.example/", KeyFile: "tk_1 2"})},
		{"to.phone.telegram:", of(Receiver{Telegram: "1"})},
		{"to.phone.telegram:", of(Receiver{Telegram: "ann", KeyFile: "x"})},
		{"to.phone.mail:", of(Receiver{Mail: "ann", Server: "m.example:465"})},
		{"to.phone.server:", of(Receiver{Mail: "ann@a.example", Server: "m.example"})},
		{"to.phone.from:", of(Receiver{Mail: "ann@a.example", Server: "m.example:465", From: "x <y@z>"})},
		{"to.phone.user:", of(Receiver{Mail: "ann@a.example", Server: "m.example:465", User: "ann"})},
		{"to.phone.user:", of(Receiver{Telegram: "1", KeyFile: "x", User: "ann"})},
		{"to.phone.home_assistant:", of(Receiver{Assistant: "http://192.168.1.20:8123", Service: "notify.x", KeyFile: "x"})},
		{"to.phone.home_assistant:", of(Receiver{Assistant: "http://homeassistant.local:8123", Service: "notify.x", KeyFile: "x", Plain: true})},
		{"to.phone.home_assistant:", of(Receiver{Assistant: "http://93.184.216.34:8123", Service: "notify.x", KeyFile: "x", Plain: true})},
		{"to.phone.home_assistant:", of(Receiver{Assistant: "https://h.example/x", Service: "notify.x", KeyFile: "x"})},
		{"to.phone.home_assistant:", of(Receiver{Assistant: "https://h.example", Service: "notify.x"})},
		{"to.phone.service:", of(Receiver{Assistant: "https://h.example", Service: "homeassistant.restart", KeyFile: "x"})},
		{"to.phone.service:", of(Receiver{Assistant: "https://h.example", Service: "notify.../x", KeyFile: "x"})},
		{"to.phone.service:", of(Receiver{Webhook: "https://a.example/", Service: "notify.x"})},
		{"to.phone.plain:", of(Receiver{Webhook: "https://a.example/", Plain: true})},
		{"to.phone.about:", of(Receiver{Webhook: "https://a.example/", About: []string{"fire"}})},
	} {
		if _, err := tt.of.Define(); err == nil || !strings.HasPrefix(err.Error(), tt.key) {
			t.Errorf("%+v: %v, not at %s", tt.of, err, tt.key)
		}
	}
}
