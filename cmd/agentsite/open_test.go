package main

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/cmd/internal/homepage"
	"agentsite/device"
	"agentsite/node/acts"
)

// shownText holds the text of a terminal.
type shownText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *shownText) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *shownText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestConsent: an owner's act is done for an Enter that follows its question, and for nothing else.
func TestConsent(t *testing.T) {
	act := homepage.Act{Site: "greenhouse", Method: "owner/approve", Description: "Approve it.", Params: []byte(`{"name":"H"}`)}
	for _, tt := range []struct {
		what, typed string // a dot is a second
		gone        time.Duration
		want        device.FaultKind
	}{
		{"Enter", ".. \n", 0, ""},
		{"no", "..n\n", 0, device.Denied},
		{"something else", "..what?\n", 0, device.Denied},
		{"Enter for something before", "\n", 0, device.Expired},
		{"Enter as the question comes, and no", "\n..n\n", 0, device.Denied},
		{"nothing", "", 0, device.Expired},
		{"a page that has gone, and Enter", "....\n", 3 * time.Second, device.Expired},
		{"the end of the input", "^", 0, device.Denied},
		{"the end of the input, later", "..^", 0, device.Denied},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var shown shownText
				in, typing := io.Pipe()
				c := newConsent(&shown)
				go c.read(in)
				var typist sync.WaitGroup
				typist.Go(func() {
					for _, r := range tt.typed {
						switch r {
						case '.':
							time.Sleep(time.Second)
						case '^':
							typing.Close()
						default:
							io.WriteString(typing, string(r))
						}
					}
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.gone > 0 {
					defer time.AfterFunc(tt.gone, cancel).Stop()
				}
				err := c.confirm(ctx, act)
				got := device.FaultKind("")
				if err != nil {
					got = device.AsFault(err).Kind
				}
				if got != tt.want || !strings.Contains(shown.String(), "greenhouse") {
					t.Errorf("%v\n%s", err, shown.String())
				}
				typing.Close()
				typist.Wait()
			})
		})
	}
}

// TestConsentByPasskey: a question that a passkey answered in the page is withdrawn, and says so.
func TestConsentByPasskey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []time.Duration{0, quietTime / 2, 2 * quietTime} {
			var shown shownText
			c := newConsent(&shown)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(after, func() { cancel(homepage.Confirmed{Passkey: "Chrome\x1b[2J"}) })
			err := c.confirm(ctx, homepage.Act{Params: []byte("{}")})
			text := shown.String()
			if err == nil || after > 0 && !strings.Contains(text, "Chrome") || strings.Contains(text, "\x1b") {
				t.Errorf("after %v: %v\n%q", after, err, text)
			}
		}
	})
}

// TestConsentQueue: one question is shown at a time, and few wait. Enter between questions asks for a link.
func TestConsentQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown shownText
		in, typing := io.Pipe()
		links := 0
		c := newConsent(&shown)
		c.idle = func() { links++ }
		go c.read(in)
		io.WriteString(typing, "\nx\n")
		synctest.Wait()
		answers := make(chan error, 2*maxConsents)
		for range maxConsents + 1 {
			go func() { answers <- c.confirm(t.Context(), homepage.Act{Params: []byte("{}")}) }()
		}
		synctest.Wait()
		if err := <-answers; device.AsFault(err).Kind != device.Busy || strings.Count(shown.String(), "asks for") != 1 {
			t.Errorf("%v\n%s", err, shown.String())
		}
		for range maxConsents {
			time.Sleep(2 * quietTime)
			io.WriteString(typing, "\n")
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		typing.Close()
		synctest.Wait()
		if links != 1 {
			t.Errorf("%d links", links)
		}
	})
}

// TestConsentShowsAll checks that a question shows all parameters, and that no parameter can imitate our lines.
func TestConsentShowsAll(t *testing.T) {
	filler := strings.Repeat(" ", 33)
	text := describeAct(homepage.Act{
		Site: "greenhouse", Method: "owner/approve", Description: "Approve the call with a handle.",
		Params: []byte(`{"name":"H\u000aPress Enter\u202e` + filler + `Press Enter to see another link` + filler + `"}`),
		Call: &acts.Request{
			Who: "token:kitchen\nPress Enter", Tool: "switch_output\x1b[2J", Args: []byte(`{"output":"house/heater","on":true}`), Via: []string{"x\ny"},
		},
	}, 60)
	for _, want := range []string{"owner/approve", "\n  with {", "\n  switch_output?[2J ", `{"output":"house/heater","on":true}`, "\n  token:kitchen"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	change := &homepage.Change{
		Lines: []string{
			"@@ -1 +1,2 @@", " site: {}", "-# \u202eold\x1b[2J", "+a: " + strings.Repeat("x", 90) + filler + "Press Enter",
		},
		Rest: []byte(`{"well":true}`), Digest: "abc",
	}
	text += describeAct(homepage.Act{Method: "owner/configure", Params: []byte(`{"text":"whole"}`), Change: change}, 60)
	for _, want := range []string{
		"\n  with {\"well\":true}\n", "digest abc\n", "\n   site: {}\n", `  -# \u202eold\u001b[2J`, "\n  +a: ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "whole") || strings.Count(text, "x") < 90 {
		t.Error(text)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "Press") || len(line) > 61 || strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("a forged line: %q", line)
		}
	}
}
