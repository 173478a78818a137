//go:build e2e && linux

package install

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"
)

// scripted is a computer without apt on which the install script runs: its shell, its home folder and the only
// programs that it has.
type scripted struct {
	shell     []string
	home, bin string
	server    *releaseSite
}

// archives makes the release of an archive for this machine, signed by a key in a file.
func archives(t *testing.T, key string) string {
	t.Helper()
	folder, work := harness.TempDir(t), harness.TempDir(t)
	const name = "agentsite_1.0.0_amd64"
	putFile(t, filepath.Join(packages, "agentsite"), filepath.Join(work, name, "agentsite"))
	putFile(t, filepath.Join(packages, "key.public"), filepath.Join(work, name, "man/agentsite.1.gz"))
	harness.MustRun(t, "chmod", "755", filepath.Join(work, name, "agentsite"))
	harness.MustRun(t, "tar", "-C", work, "-czf", filepath.Join(folder, name+".tar.gz"), name)
	sums := fmt.Sprintf("%s  other_1.0.0_amd64.tar.gz\n%s  %s.tar.gz\n", strings.Repeat("0", 2*sha256.Size),
		hashOf(t, filepath.Join(folder, name+".tar.gz")), name)
	if err := os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(sums), 0o644); err != nil {
		t.Fatal(err)
	}
	tool(t, time.Now(), "release", "signature", key, filepath.Join(folder, "SHA256SUMS"))
	return folder
}

func newScripted(t *testing.T, shell ...string) *scripted {
	t.Helper()
	folder := archives(t, filepath.Join(packages, "key"))
	s := &scripted{shell: shell, home: harness.TempDir(t), bin: harness.TempDir(t), server: newReleaseSite(t, folder)}
	fillScript(t, folder, s.server.URL)
	for _, name := range strings.Fields("cat cp chmod curl dd env grep gzip head id mkdir mktemp mv od rm sed sh " +
		"sha256sum ssh-keygen tar tr uname") {
		path, err := exec.LookPath(name)
		if err != nil {
			path = harness.Need(t, name, "")
		}
		if err := os.Symlink(path, filepath.Join(s.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	// Somebody without the superuser's rights: id says so to the script.
	without := filepath.Join(s.bin, "id")
	if err := os.Remove(without); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(without, []byte("#!/bin/sh\necho 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return s
}

// run pipes a script into the shell.
func (s *scripted) run(t *testing.T, script string, args ...string) (said string, err error) {
	t.Helper()
	cmd := exec.Command(s.shell[0], append(append(s.shell[1:len(s.shell):len(s.shell)], "-s", "--"), args...)...)
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = []string{"PATH=" + s.bin, "HOME=" + s.home}
	cmd.Dir = s.home
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// files lists the files in the home folder.
func (s *scripted) files(t *testing.T) string {
	t.Helper()
	return harness.MustRun(t, "find", s.home, "-mindepth", "1", "-printf", "%P\n")
}

// TestInstallScript installs and removes the archive with two shells, and refuses what is not signed.
func TestInstallScript(t *testing.T) {
	harness.Need(t, "the packages", packages)
	for _, shell := range [][]string{{"dash"}, {"busybox", "ash"}} {
		path, err := exec.LookPath(shell[0])
		if err != nil {
			path = harness.Need(t, shell[0], "")
		}
		t.Run(shell[0], func(t *testing.T) {
			s := newScripted(t, append([]string{path}, shell[1:]...)...)
			text, err := os.ReadFile(filepath.Join(s.server.folder, "install.sh"))
			if err != nil {
				t.Fatal(err)
			}
			script := string(text)
			if said, err := s.run(t, script, "--dry-run"); err != nil || s.files(t) != "" ||
				!strings.Contains(said, ".local/bin") {
				t.Errorf("a dry run: %v\n%s", err, said)
			}
			refused := func(what string, args ...string) {
				t.Helper()
				if said, err := s.run(t, script, args...); err == nil || s.files(t) != "" {
					t.Errorf("%s: %v\n%s\n%s", what, err, said, s.files(t))
				}
			}
			good := s.server.folder
			for _, file := range []string{".tar.gz", "/SHA256SUMS", "/SHA256SUMS.sig"} {
				s.server.serve(good, file)
				refused("tampered " + file)
			}
			other := filepath.Join(harness.TempDir(t), "key")
			if err := os.WriteFile(other, identity.New().PEM(), 0o600); err != nil {
				t.Fatal(err)
			}
			s.server.serve(archives(t, other), "")
			refused("signed by another key")
			s.server.serve(good, "")
			refused("another version", "--version", "v9.9.9")
			refused("an unknown option", "--now")
			refused("an injected version", "--version", "1;touch x")
			complete := strings.LastIndexByte(script, '}')
			for n := 0; n <= complete; n += min(409, max(1, complete-20-n)) {
				if said, _ := s.run(t, script[:n]); s.files(t) != "" {
					t.Fatalf("cut after %d bytes it did something: %s", n, said)
				}
			}

			said, err := s.run(t, script)
			if err != nil || !strings.Contains(said, "v1.0.0") {
				t.Fatalf("%v\n%s", err, said)
			}
			t.Log(said)
			newer := filepath.Join(s.home, ".local/bin/agentsite")
			program(t, newer, `echo '{"built":"2999-01-01T00:00:00Z"}'`)
			if said, err := s.run(t, script); err == nil {
				t.Errorf("a server that replays an older release: %s", said)
			}
			if said, err := s.run(t, script, "--version", "v1.0.0"); err != nil || !strings.Contains(said, "v1.0.0") {
				t.Errorf("an older version on request: %v\n%s", err, said)
			}
			if said, err := s.run(t, script, "--uninstall"); err != nil || strings.Contains(s.files(t), "agentsite") {
				t.Errorf("%v\n%s\n%s", err, said, s.files(t))
			}
			if err := os.Remove(filepath.Join(s.bin, "ssh-keygen")); err != nil {
				t.Fatal(err)
			}
			if said, err := s.run(t, script); err == nil {
				t.Errorf("not verified: %s", said)
			}
			if said, err := s.run(t, script, "--no-signature", "--version", "v1.0.0"); err != nil {
				t.Errorf("%v\n%s", err, said)
			}
			curl := filepath.Join(s.bin, "curl")
			program(t, filepath.Join(s.bin, "wget"),
				"exec "+strings.TrimSpace(harness.MustRun(t, "readlink", "-f", curl))+` -fs -o "$3" "$4"`)
			if err := os.Remove(curl); err != nil {
				t.Fatal(err)
			}
			if said, err := s.run(t, script, "--no-signature"); err == nil {
				t.Errorf("neither a signature nor a verified connection: %s", said)
			}
		})
	}
}

// program writes a program of one line for the shell.
func program(t *testing.T, file, line string) {
	t.Helper()
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+line+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestArchitecture: the userland's architecture counts, not that of the kernel.
func TestArchitecture(t *testing.T) {
	harness.Need(t, "the packages", packages)
	s := newScripted(t, "/bin/sh")
	text, err := os.ReadFile(filepath.Join(s.server.folder, "install.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ system, machine, bits, dpkg, want string }{
		{"Linux", "x86_64", "2", "", "amd64"}, {"Linux", "aarch64", "2", "", "arm64"}, {"Linux", "aarch64", "1", "", "armhf"},
		{"Linux", "armv6l", "1", "", "armhf"}, {"Linux", "armv7l", "1", "", "armhf"}, {"Linux", "riscv64", "2", "", ""},
		{"Linux", "x86_64", "1", "", ""},
		{"Darwin", "arm64", "", "", "darwin-arm64"}, {"Darwin", "x86_64", "", "", "darwin-amd64"},
		{"Linux", "aarch64", "1", "armhf", "armhf"}, {"Linux", "aarch64", "2", "riscv64", ""},
	} {
		fake := map[string]string{"uname": `[ "$1" = -s ] && echo ` + tt.system + " || echo " + tt.machine, "od": "cat >/dev/null; echo ' " + tt.bits + "'"}
		if tt.dpkg != "" {
			fake["dpkg"], fake["apt-get"], fake["sudo"] = "echo "+tt.dpkg, "exit 1", "exit 1"
		}
		for name, line := range fake {
			file := filepath.Join(s.bin, name)
			os.Remove(file)
			if err := os.WriteFile(file, []byte("#!/bin/sh\n"+line+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		said, err := s.run(t, string(text), "--dry-run")
		if (err == nil) != (tt.want != "") || tt.want != "" && !strings.Contains(said, " for "+tt.want+" ") {
			t.Errorf("%+v: %v\n%s", tt, err, said)
		}
	}
}
