package a2a_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentsite/transport/a2a"
	"agentsite/transport/adapter/adaptertest"
)

// TestPushWear: a caller cannot have the card written without end, nor have much stored.
func TestPushWear(t *testing.T) {
	r := receive(t, nil)
	s, m := adaptertest.New(t, nil), new(memory)
	writes := 0
	file := m.file()
	s.PushHosts, s.PushFile = []string{r.host()}, file
	s.PushFile.Write = func(b []byte) error { writes++; return file.Write(b) }
	s.Serve(t, a2a.Routes(&s.Site))
	ann, _ := s.Token(t, "ann", "ask helper")
	id := waiting(t, s, ann, "m", "")
	path := "/a2a/agents/helper/tasks/" + id + "/pushNotificationConfigs"
	long := strings.Repeat(`"`+strings.Repeat("x", 80)+`",`, 900)
	if res, text := s.Ask(t, "POST", "/a2a/agents/helper/v1/tasks/"+id+"/pushNotificationConfigs", ann, `{"config":{"pushNotificationConfig":{"url":"`+r.URL+`","authentication":{"schemes":[`+long+`"Bearer"],"credentials":"x"}}}}`); res.StatusCode != http.StatusBadRequest {
		t.Errorf("many schemes: %d %.300s, %d bytes are stored", res.StatusCode, text, len(m.text))
	}
	busy := 0
	for range 200 {
		res, _ := s.Ask(t, "POST", path, ann, fmt.Sprintf(`{"id":"c","url":"%s"}`, r.URL), "A2A-Version", "1.0")
		if res.StatusCode == http.StatusTooManyRequests {
			busy++
		}
	}
	if busy < 100 || writes > 200 {
		t.Errorf("%d of 200 configurations are refused, %d writes", busy, writes)
	}
	if res, text := s.Ask(t, "POST", path, adaptertest.SiteToken, `{}`, "A2A-Version", "1.0"); res.StatusCode == http.StatusTooManyRequests {
		t.Error(text)
	}
}
