//go:build e2e && linux

package install

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// releaseSite serves the files of a release, which a test replaces.
type releaseSite struct {
	*httptest.Server
	mu      sync.Mutex
	folder  string
	spoiled string // the end of a path, whose file has one other byte
}

func newReleaseSite(t testing.TB, folder string) *releaseSite {
	t.Helper()
	s := &releaseSite{folder: folder}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// serve replaces the files. Of the one whose path ends with spoiled, a byte in the middle is another one.
func (s *releaseSite) serve(folder, spoiled string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.folder, s.spoiled = folder, spoiled
}

func (s *releaseSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	folder, spoiled := s.folder, s.spoiled
	s.mu.Unlock()
	text, err := fs.ReadFile(os.DirFS(folder), strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	if spoiled != "" && strings.HasSuffix(r.URL.Path, spoiled) {
		text[len(text)/2] ^= 1
	}
	w.Header().Set("Connection", "close")
	w.Write(text)
}

// served is the server's address for the emulated board.
const served = "10.0.2.100"

// tool runs release or publish, at a time of a release, and returns its output.
func tool(t testing.TB, at time.Time, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(packages, name), args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", at.Unix()))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, &errs)
	}
	return string(out)
}

// repository makes the folder of a release at a time, with the packages and updates of the versions 1 to
// newest for arm64.
func repository(t testing.TB, newest int, at time.Time) string {
	t.Helper()
	folder := filepath.Join(harness.TempDir(t), fmt.Sprintf("release%d", newest))
	key := filepath.Join(packages, "key")
	for version := 1; version <= newest; version++ {
		for pattern, to := range map[string]string{"*_arm64.deb": "apt/pool/main/a/agentsite", "*_arm64.update": "updates"} {
			from := only(t, version, pattern)
			putFile(t, from, filepath.Join(folder, to, filepath.Base(from)))
		}
	}
	tool(t, at, "publish", "apt", key, filepath.Join(folder, "apt"), "30")
	tool(t, at, "release", "channels", "-key", key, "-keys", releaseKey(t).ID().String(), "-days", "30", folder)
	fillScript(t, folder, "http://"+served)
	return folder
}

func putFile(t testing.TB, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fillScript writes the install script of a release, as deploy/publish/build does.
func fillScript(t testing.TB, folder, base string) {
	t.Helper()
	text, err := os.ReadFile("../../../../deploy/install.sh")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	filled := strings.NewReplacer("@BASE_URL@", base,
		"@APT_KEY@", strings.TrimSpace(tool(t, now, "publish", "cert", filepath.Join(packages, "key"))),
		"@RELEASE_KEY@", strings.TrimSpace(
			tool(t, now, "release", "signers", releaseKey(t).ID().String()),
		)).Replace(string(text))
	if err := os.WriteFile(filepath.Join(folder, "install.sh"), []byte(filled), 0o755); err != nil {
		t.Fatal(err)
	}
}

// hashOf returns the SHA-256 of a file, in hexadecimal.
func hashOf(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}
