package a2a_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/transport/a2a"
	"agentsite/transport/adapter/adaptertest"
)

// TestStreamEnds: a stream ends with its caller's permission and with the site, and the task goes on.
func TestStreamEnds(t *testing.T) {
	s := adaptertest.New(t, nil)
	ending, end := context.WithCancel(s.Ending)
	s.Site.Ending = ending
	s.Serve(t, a2a.Routes(&s.Site))
	token, revoke := s.Token(t, "asker", "ask helper")
	for _, c := range []struct {
		name, token string
		stop        func()
	}{{"the permission", token, revoke}, {"the site", adaptertest.SiteToken, end}} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/a2a/agents/helper/message:stream",
				strings.NewReader(`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"skill":"wait"}}]}}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+c.token)
			r.Header.Set("A2A-Version", "1.0")
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != "text/event-stream" {
				t.Fatal(res.Status, got)
			}
			lines, last := bufio.NewScanner(res.Body), ""
			for first := true; lines.Scan(); first = false {
				if first {
					c.stop()
				}
				if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					last = text
				}
			}
			if err := lines.Err(); err != nil || !strings.HasPrefix(last, `{"error":`) {
				t.Errorf("%v %s", err, last)
			}
		})
	}
}

// TestHeadOfStream: HEAD begins no stream, which would keep its connection from all that comes next.
func TestHeadOfStream(t *testing.T) {
	s := newSite(t)
	_, text := s.Ask(t, "POST", "/a2a/agents/helper/message:send", adaptertest.SiteToken,
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"skill":"wait"}}]},"configuration":{"returnImmediately":true}}`, "A2A-Version", "1.0")
	_, id, _ := strings.Cut(text, `"id":"`)
	path := "/a2a/agents/helper/tasks/" + id[:strings.Index(id, `"`)]
	if res, _ := s.Ask(t, "HEAD", path, adaptertest.SiteToken, "", "A2A-Version", "1.0"); res.StatusCode != http.StatusOK {
		t.Error(res.Status)
	}
	if res, _ := s.Ask(t, "HEAD", path+":subscribe", adaptertest.SiteToken, "", "A2A-Version", "1.0"); res.StatusCode != http.StatusBadRequest {
		t.Error(res.Status)
	}
	s.Ask(t, "POST", path+":cancel", adaptertest.SiteToken, "", "A2A-Version", "1.0")
}

// TestWaits: a message waits for its task's end or question, and is answered when that comes.
func TestWaits(t *testing.T) {
	s := newSite(t)
	token, _ := s.Token(t, "asker", "ask helper")
	for skill, want := range map[string]string{"echo": "TASK_STATE_COMPLETED", "question": "TASK_STATE_INPUT_REQUIRED"} {
		_, text := s.Ask(t, "POST", "/a2a/agents/helper/message:send", token, `{"message":{"messageId":"`+skill+`","role":"ROLE_USER","parts":[{"data":{"skill":"`+skill+`"}}]}}`, "A2A-Version", "1.0")
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s", skill, text)
		}
	}
}

// TestVersions: pictures, texts and stops of the things in both versions, as each writes them.
func TestVersions(t *testing.T) {
	s := newSite(t)
	for name, c := range map[string]struct{ method, role, kind, text, picture string }{
		"1.0": {"SendMessage", "ROLE_USER", "", `"result":{"message":{"messageId":`, `{"raw":"`},
		"0.3": {"message/send", "user", `"kind":"data",`, `"kind":"message","role":"agent"`, `{"kind":"file","file":{"bytes":"`},
	} {
		t.Run(name, func(t *testing.T) {
			ask := func(data string) string {
				t.Helper()
				body := `{"jsonrpc":"2.0","id":"x","method":"` + c.method + `","params":{"message":{"messageId":"` + fmt.Sprint(name, len(data)) + `","contextId":"ours","role":"` + c.role + `","parts":[{` + c.kind + `"data":` + data + `}]}}}`
				_, text := s.Ask(t, "POST", "/a2a", adaptertest.SiteToken, body, "A2A-Version", name)
				if !strings.Contains(text, c.text) || !strings.Contains(text, `"contextId":"ours"`) {
					t.Errorf("%.400s", text)
				}
				return text
			}
			if text := ask(`{"operation":"capture","camera":"greenhouse/camera"}`); !strings.Contains(text, c.picture) || !strings.Contains(text, `"image/`) {
				t.Errorf("%.400s", text)
			}
			if text := ask(`{"operation":"show","display":"greenhouse/message","text":"hello"}`); !strings.Contains(text, `"text":"hello"`) {
				t.Errorf("%.400s", text)
			}
			if text := ask(`{"operation":"stop"}`); !strings.Contains(text, `"emergency_stop":true`) {
				t.Errorf("%.400s", text)
			}
		})
	}
}
