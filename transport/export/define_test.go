package export

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/agent"
)

// TestFile: a file that this program does not know is not replaced, and nothing is sent.
func TestFile(t *testing.T) {
	for _, text := range []string{"{", `{"version":2,"sent":{}}`} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "bed/temperature")
			r.file = []byte(text)
			w := World{Claimed: func() bool { return true }, Load: func() ([]byte, error) { return r.file, nil }}
			a := Kind(w).New().(*Agent)
			a.RemoteWrite.URL = "https://metrics.example.org/api/v1/write"
			if err := a.Run(t.Context(), self, r); err == nil || string(r.file) != text {
				t.Errorf("%v, %s", err, r.file)
			}
		})
	}
}

// TestDefine: each mistake is told at its key.
func TestDefine(t *testing.T) {
	good := func() *Agent {
		a := Kind(World{}).New().(*Agent)
		a.RemoteWrite.URL = "https://metrics.example.org/api/v1/write"
		return a
	}
	for _, c := range []struct {
		key    string
		change func(*RemoteWrite)
	}{
		{"", func(w *RemoteWrite) {}},
		{"", func(w *RemoteWrite) { w.URL = "http://127.0.0.1:9090/api/v1/write" }},
		{"", func(w *RemoteWrite) { w.URL, w.Plain = "http://192.168.1.20:9090/api/v1/write", true }},
		{"", func(w *RemoteWrite) {
			w.User, w.PasswordFile, w.Labels = "ann", "a.password", map[string]string{"region": "north"}
		}},
		{"url", func(w *RemoteWrite) { w.URL = "" }},
		{"url", func(w *RemoteWrite) { w.URL = "metrics.example.org" }},
		{"url", func(w *RemoteWrite) { w.URL = "https://ann:secret@metrics.example.org/" }},
		{"url", func(w *RemoteWrite) { w.URL = "http://192.168.1.20:9090/api/v1/write" }},
		{"url", func(w *RemoteWrite) { w.URL, w.Plain = "http://prometheus:9090/api/v1/write", true }},
		{"url", func(w *RemoteWrite) { w.URL = "https://nas.local/api/v1/write" }},
		{"url", func(w *RemoteWrite) { w.URL, w.Plain = "http://localhost:9090/api/v1/write", true }},
		{"plain", func(w *RemoteWrite) { w.Plain = true }},
		{"user", func(w *RemoteWrite) { w.User = "ann" }},
		{"user", func(w *RemoteWrite) { w.PasswordFile = "a" }},
		{"password_file", func(w *RemoteWrite) { w.User, w.PasswordFile = "ann", "../a" }},
		{"key_file", func(w *RemoteWrite) { w.KeyFile = "/etc/shadow" }},
		{"key_file", func(w *RemoteWrite) { w.User, w.PasswordFile, w.KeyFile = "ann", "a", "b" }},
		{"ca_file", func(w *RemoteWrite) { w.URL, w.CAFile = "http://127.0.0.1/", "a.pem" }},
		{"tenant", func(w *RemoteWrite) { w.Tenant = "a\r\nb" }},
		{"every", func(w *RemoteWrite) { w.Every = time.Second }},
		{"labels", func(w *RemoteWrite) { w.Labels = map[string]string{"9": "a"} }},
		{"labels", func(w *RemoteWrite) { w.Labels = map[string]string{"__name__": "a"} }},
		{"labels", func(w *RemoteWrite) { w.Labels = map[string]string{"site": "a"} }},
		{"labels", func(w *RemoteWrite) { w.Labels = map[string]string{"region": "a\nb"} }},
	} {
		a := good()
		c.change(&a.RemoteWrite)
		_, err := a.Define()
		mistake, _ := errors.AsType[*agent.Mistake](err)
		if (err == nil) != (c.key == "") || err != nil && mistake.Key != "remote_write."+c.key {
			t.Errorf("%+v: %v, want %s", a.RemoteWrite, err, c.key)
		}
	}
}
