//go:build e2e && linux

package public

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// readsNothing: while a caller is connected, the site's memory contains what it asked, what it was answered, and the key
// of the certificate. The relay's memory contains the name that was called, and none of these.
func (w *world) readsNothing(t *testing.T, r *harness.PublicRelay, s *site, from, name string) {
	t.Helper()
	client := w.browser(from, w.root(), map[string]string{name + ":443": r.IP + ":443"})
	key := s.certificateKey(t)
	reversed := slices.Clone(key) // as a number lies in the memory of most machines
	slices.Reverse(reversed)
	secrets := map[string][][]byte{"the certificate's key": {key, reversed}}
	const asked = "what-nobody-between-may-read"
	memory := func(pid int) (has map[string]bool) {
		has = make(map[string]bool)
		all := readMemory(t, pid)
		for what, forms := range secrets {
			has[what] = slices.ContainsFunc(forms, func(form []byte) bool { return bytes.Contains(all, form) })
		}
		has["the name"] = bytes.Contains(all, []byte(name))
		return has
	}
	harness.WaitFor(t, 30*time.Second, "the site's memory contains what is said", func() bool {
		res, err := client.Post("https://"+name+"/register", "application/json",
			strings.NewReader(`{"client_name":"`+asked+`","redirect_uris":["https://client.example/back"]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var said struct {
			ID string `json:"client_id"`
		}
		if err := json.NewDecoder(res.Body).Decode(&said); err != nil || res.StatusCode != http.StatusCreated || said.ID == "" {
			t.Fatalf("%s: %v", res.Status, err)
		}
		secrets["what was asked"], secrets["what was answered"] = [][]byte{[]byte(asked)}, [][]byte{[]byte(said.ID)}
		has := memory(s.Cmd.Process.Pid)
		return !slices.Contains([]bool{has["what was asked"], has["what was answered"], has["the certificate's key"]}, false)
	})
	for what, has := range memory(r.Cmd.Process.Pid) {
		if has != (what == "the name") {
			t.Errorf("the relay's memory contains %s: %v", what, has)
		}
	}
}

// certificateKey returns the private number of the certificate's key.
func (s *site) certificateKey(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.data, "public.json"))
	if err != nil {
		t.Fatal(err)
	}
	var stored struct{ Certificate, Key string }
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair([]byte(stored.Certificate), []byte(stored.Key))
	if err != nil {
		t.Fatal(err)
	}
	number, err := pair.PrivateKey.(*ecdsa.PrivateKey).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// readMemory returns what a process has in its writable memory.
func readMemory(t *testing.T, pid int) (all []byte) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n != 3 || !strings.HasPrefix(mode, "rw") || to-from > 1<<30 {
			continue
		}
		part := make([]byte, to-from)
		if n, err := mem.ReadAt(part, from); err == nil || n > 0 {
			all = append(all, part[:n]...)
		}
	}
	return all
}
