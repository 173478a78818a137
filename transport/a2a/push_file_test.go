package a2a_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/transport/a2a"
	"agentsite/transport/adapter"
	"agentsite/transport/adapter/adaptertest"
)

// TestPushTasksGone: configurations of which the tasks are gone end at the start, also while others
// are begun.
func TestPushTasksGone(t *testing.T) {
	r := receive(t, nil)
	s, m := adaptertest.New(t, nil), new(memory)
	m.text = fmt.Appendf(nil, `{"version":1,"pushes":[{"who":"local","owner":true,"agent":"helper","config":{"id":"c","taskId":"gone","url":%q}},`+
		`{"who":"local","owner":true,"agent":"helper","config":{"id":"d","taskId":"gone","url":%[1]q}}]}`, r.URL)
	f, wrote := m.file(), make(chan struct{}, 9)
	s.PushHosts, s.PushFile = []string{r.host()}, adapter.File{Read: f.Read, Write: func(b []byte) error { wrote <- struct{}{}; return f.Write(b) }}
	start, n := s.Go, 0
	s.Go = func(do func()) {
		if n++; n == 2 {
			select { // the first one's goroutine is as far as it comes
			case <-wrote:
			case <-time.After(200 * time.Millisecond):
			}
		}
		start(do)
	}
	s.Serve(t, a2a.Routes(&s.Site))
	eventually(t, "all have ended", func() bool { return !m.has("gone") })
}

// TestPushReplaced: the file never has a configuration and what replaced it, so that a crash leaves
// one of them.
func TestPushReplaced(t *testing.T) {
	r := receive(t, nil)
	s, m := adaptertest.New(t, nil), new(memory)
	f := m.file()
	var twice atomic.Bool
	s.PushHosts, s.PushFile = []string{r.host()}, adapter.File{Read: f.Read, Write: func(b []byte) error {
		if strings.Count(string(b), `"id":"c"`) > 1 {
			twice.Store(true)
		}
		return f.Write(b)
	}}
	s.Serve(t, a2a.Routes(&s.Site))
	id := waiting(t, s, adaptertest.SiteToken, "m", `{"id":"c","url":"`+r.URL+`/first"}`)
	s.Ask(t, "POST", "/a2a/agents/helper/tasks/"+id+"/pushNotificationConfigs", adaptertest.SiteToken, `{"id":"c","url":"`+r.URL+`/second"}`, "A2A-Version", "1.0")
	if twice.Load() || m.has("/first") || !m.has("/second") {
		t.Errorf("%s", m.text)
	}
}

// TestPushDeleted: a configuration that was reported as deleted is not there after the next start,
// also if the site was ending, or its disk had failed.
func TestPushDeleted(t *testing.T) {
	r := receive(t, nil)
	s, m := adaptertest.New(t, nil), new(memory)
	before, f := s.Site, m.file()
	ending, end := context.WithCancel(s.Ending)
	var running sync.WaitGroup
	var full atomic.Bool
	before.Ending, before.Go = ending, running.Go
	before.PushHosts, before.PushFile = []string{r.host()}, adapter.File{Read: f.Read, Write: func(b []byte) error {
		if full.Load() {
			return errors.New("no space left")
		}
		return f.Write(b)
	}}
	s.Serve(t, a2a.Routes(&before))
	id := waiting(t, s, adaptertest.SiteToken, "m", `{"id":"c1","url":"`+r.URL+`"}`)
	remove := func(config string) int {
		res, _ := s.Ask(t, "DELETE", "/a2a/agents/helper/tasks/"+id+"/pushNotificationConfigs/"+config, adaptertest.SiteToken, "", "A2A-Version", "1.0")
		return res.StatusCode
	}
	s.Ask(t, "POST", "/a2a/agents/helper/tasks/"+id+"/pushNotificationConfigs", adaptertest.SiteToken, `{"id":"c2","url":"`+r.URL+`"}`, "A2A-Version", "1.0")
	full.Store(true)
	if status := remove("c1"); status != http.StatusServiceUnavailable {
		t.Errorf("on a full disk: %d", status)
	}
	full.Store(false)
	if status := remove("c1"); status != http.StatusOK || m.has("c1") || !m.has("c2") {
		t.Errorf("again: %d %s", status, m.text)
	}
	end()
	running.Wait()
	if status := remove("c2"); status != http.StatusOK || m.has("c2") {
		t.Errorf("at the end: %d %s", status, m.text)
	}
}
