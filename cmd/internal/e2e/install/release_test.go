//go:build e2e && linux

package install

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"
	"agentsite/node/update"
)

// releases makes releases with one key, in a folder of its own.
type releases struct {
	dir, key string
	id       identity.ID
}

// clone copies the working tree to a folder, with sections in the changelog for the versions of this test.
func (r releases) clone(t *testing.T, name string) string {
	t.Helper()
	to := filepath.Join(r.dir, name)
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSpace(harness.MustRun(t, "git", "rev-parse", "--show-toplevel"))
	const files = "git ls-files -z --cached --others --exclude-standard"
	harness.MustRun(t, "sh", "-c", `cd "$1" && `+files+` | tar -c --null -T - | tar -x -C "$2"`, "sh", root, to)
	text := "# Changelog\n"
	for _, version := range []string{"9.1.0-beta.1", "9.0.0"} {
		text += "\n## [" + version + "] - 2026-11-28\n\n### Added\n\n- A test.\n"
	}
	if err := os.WriteFile(filepath.Join(to, "CHANGELOG.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return to
}

// build runs make with a target in a clone, and returns its output.
func (r releases) build(t *testing.T, clone, target string, date time.Time, params ...string) (string, error) {
	t.Helper()
	args := append([]string{"-C", clone, target, "SIGN_KEY=" + r.key, "RELEASE_KEYS=" + r.id.String(),
		"BASE_URL=https://example.org/agentsite",
		"IMAGE=no", "ARCHES=amd64", "CLIENTS=windows-amd64", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", date.Unix())},
		params...)
	begun := time.Now()
	cmd := exec.Command("make", args...)
	cmd.Env = append(os.Environ(), "SEQUENCE=", "VERSION=")
	out, err := cmd.CombinedOutput()
	t.Logf("make %s: %.0f s", target, time.Since(begun).Seconds())
	return string(out), err
}

func (r releases) mustBuild(t *testing.T, clone, target string, date time.Time, params ...string) {
	t.Helper()
	if out, err := r.build(t, clone, target, date, params...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestRelease: two clones make the same bytes; each file is verified by the command that docs/releases.md names, and
// refused once it is altered; apt installs each version, and refuses an index that is altered or has expired.
func TestRelease(t *testing.T) {
	r := releases{dir: harness.TempDir(t)}
	key := identity.New()
	r.key, r.id = filepath.Join(r.dir, "key.pem"), key.ID()
	if err := os.WriteFile(r.key, key.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	one, two := r.clone(t, "one"), r.clone(t, "two")
	now := time.Now().Truncate(time.Second)
	first, again, beta := filepath.Join(r.dir, "first"), filepath.Join(r.dir, "again"), filepath.Join(r.dir, "beta")
	r.mustBuild(t, one, "release", now.Add(-time.Hour), "VERSION=v9.0.0", "OUT="+first)
	r.mustBuild(t, two, "release", now.Add(-time.Hour), "VERSION=v9.0.0", "OUT="+again)
	r.mustBuild(t, one, "release", now.Add(-time.Minute), "VERSION=v9.1.0-beta.1", "OUT="+beta, "RELEASES="+first)

	t.Run("same", func(t *testing.T) { sameFiles(t, first, again) })
	t.Run("refused", func(t *testing.T) {
		none := filepath.Join(r.dir, "none")
		for what, params := range map[string][]string{
			"a version without a section": {"VERSION=v9.2.0"}, "no version": {"VERSION=9.0.0"},
			"a stranger's key": {"VERSION=v9.0.0", "RELEASE_KEYS=" + identity.New().ID().String()},
			"plain HTTP":       {"VERSION=v9.0.0", "BASE_URL=http://example.org"},
		} {
			if out, err := r.build(t, one, "release", now, append(params, "OUT="+none)...); err == nil {
				t.Errorf("%s: a release is made\n%s", what, out)
			}
		}
	})
	t.Run("sums", func(t *testing.T) { verifySums(t, beta) })
	t.Run("channels", func(t *testing.T) { r.verifyChannels(t, first, beta) })
	t.Run("apt", func(t *testing.T) { r.verifyRepository(t, one, beta, now) })
}

// sameFiles fails unless two folders have the same files with the same bytes.
func sameFiles(t *testing.T, one, two string) {
	count := 0
	list := func(dir string) (all []string) {
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				name, _ := filepath.Rel(dir, path)
				all = append(all, name)
			}
			return err
		})
		return all
	}
	if a, b := list(one), list(two); !slices.Equal(a, b) {
		t.Fatalf("%v\nand\n%v", a, b)
	}
	for _, name := range list(one) {
		a, err := os.ReadFile(filepath.Join(one, name))
		b, err2 := os.ReadFile(filepath.Join(two, name))
		if err != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v %v", name, err, err2)
		}
		count++
	}
	t.Logf("%d files are the same", count)
}

// sh runs a command line in a folder.
func sh(dir, line string) (string, error) {
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// verifySums runs the commands of docs/releases.md, with the files as they are and altered.
func verifySums(t *testing.T, dir string) {
	const verify = "ssh-keygen -Y verify -f agentsite.signers -I release@agentsite -n agentsite-release " +
		"-s SHA256SUMS.sig <SHA256SUMS"
	const sums = "sha256sum --ignore-missing -c SHA256SUMS"
	docs, err := os.ReadFile("../../../../docs/releases.md")
	if err != nil || !strings.Contains(string(docs), verify) || !strings.Contains(string(docs), sums) {
		t.Errorf("docs/releases.md has other commands: %v", err)
	}
	out, err := sh(dir, verify+" && "+sums)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	for _, name := range []string{"agentsite_9.1.0-beta.1_amd64.deb", "agentsite_9.1.0-beta.1_amd64.tar.gz",
		"agentsite_9.1.0-beta.1_windows-amd64.zip",
		"agentsite_9.1.0-beta.1_amd64.cdx.json", "agentsite-9.1.0-beta.1.oci.tar",
		"updates/agentsite_9.0.0_amd64.update"} {
		if !strings.Contains(out, name+": OK") {
			t.Errorf("%s is not verified", name)
		}
	}
	alter(t, filepath.Join(dir, "SHA256SUMS"), func() {
		if out, err := sh(dir, verify); err == nil {
			t.Errorf("altered sums are verified: %s", out)
		}
	})
	alter(t, filepath.Join(dir, "agentsite-9.1.0-beta.1.oci.tar"), func() {
		if out, err := sh(dir, sums); err == nil {
			t.Errorf("an altered file is verified: %s", out)
		}
	})
}

// alter changes one bit in the middle of a file while do runs.
func alter(t *testing.T, file string, do func()) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	altered := bytes.Clone(text)
	altered[len(altered)/2] ^= 1
	if err := os.WriteFile(file, altered, 0o644); err != nil {
		t.Fatal(err)
	}
	do()
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// verifyChannels: a board that reads a channel finds the updates in it, and notices an old one.
func (r releases) verifyChannels(t *testing.T, before, dir string) {
	read := func(dir, name string) update.Channel {
		t.Helper()
		f, err := os.Open(filepath.Join(dir, "channel", name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c, err := update.ReadChannel(f, []identity.ID{r.id}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	stable, beta := read(dir, "stable"), read(dir, "beta")
	if len(stable.Releases) != 1 || stable.Releases[0].Version != "v9.0.0" || len(beta.Releases) != 2 ||
		beta.Releases[0].Version != "v9.1.0-beta.1" {
		t.Errorf("%+v\n%+v", stable, beta)
	}
	old := read(before, "stable")
	if old.Check("stable", stable.Serial) == nil || stable.Check("stable", old.Serial) != nil {
		t.Errorf("the serials are %d and %d", old.Serial, stable.Serial)
	}
	for _, release := range beta.Releases {
		f, ok := release.File("linux/amd64")
		if !ok {
			t.Fatalf("%+v", release)
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Path))
		if err != nil || int64(len(text)) != f.Size {
			t.Errorf("%+v: %v", f, err)
		}
		if u, err := update.Read(bytes.NewReader(text), []identity.ID{r.id}); err != nil ||
			u.Version != release.Version {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// aptClient is an apt with folders of its own, which changes nothing on this machine.
type aptClient struct{ dir string }

func newAPT(t *testing.T, url, suite, keyring string) aptClient {
	t.Helper()
	dir := harness.TempDir(t)
	for _, name := range []string{"etc/apt.conf.d", "etc/preferences.d", "etc/trusted.gpg.d", "state/lists/partial",
		"cache/archives/partial", "get"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"state/status": "", "etc/sources.list": "deb [signed-by=" + keyring + "] " + url + " " + suite + " main\n",
		"apt.conf": fmt.Sprintf(`Dir "%[1]s";
Dir::State "%[1]s/state";
Dir::State::status "%[1]s/state/status";
Dir::Cache "%[1]s/cache";
Dir::Etc "%[1]s/etc";
Dir::Bin::methods "/usr/lib/apt/methods";
APT::Architecture "amd64";
APT::Sandbox::User "";
Acquire::Languages "none";
`, dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return aptClient{dir}
}

func (a aptClient) run(line string) (string, error) {
	return sh(filepath.Join(a.dir, "get"), "export APT_CONFIG="+a.dir+"/apt.conf LC_ALL=C; "+line)
}

// verifyRepository checks that apt and gpgv read the repository and find every version, and that they refuse altered
// and expired files.
func (r releases) verifyRepository(t *testing.T, clone, dir string, now time.Time) {
	out, err := sh(dir, "gpg --dearmor <agentsite.asc >"+r.dir+"/agentsite.gpg"+
		" && gpgv --keyring "+r.dir+"/agentsite.gpg apt/dists/stable/InRelease"+
		" && gpgv --keyring "+r.dir+"/agentsite.gpg apt/dists/stable/Release.gpg apt/dists/stable/Release")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	url, keyring := server.URL+"/apt", filepath.Join(dir, "agentsite.asc")
	const update = "apt-get -q update --error-on=any"
	const get = "apt-get -q download agentsite=%s && dpkg-deb -f agentsite_*.deb Version && rm agentsite_*.deb"
	for suite, versions := range map[string][]string{"stable": {"9.0.0"}, "beta": {"9.1.0~beta.1", "9.0.0"}} {
		a := newAPT(t, url, suite, keyring)
		out, err := a.run(update + " && apt-cache policy agentsite")
		if err != nil || !strings.Contains(out, "Candidate: "+versions[0]+"\n") {
			t.Fatalf("%s: %v\n%s", suite, err, out)
		}
		for _, version := range versions {
			if out, err := a.run(fmt.Sprintf(get, version)); err != nil || !strings.HasSuffix(out, version+"\n") {
				t.Errorf("%s of %s: %v\n%s", version, suite, err, out)
			}
		}
		alter(t, filepath.Join(dir, "apt/pool/main/a/agentsite/agentsite_9.0.0_amd64.deb"), func() {
			if out, err := a.run(fmt.Sprintf(get, "9.0.0")); err == nil {
				t.Errorf("an altered package is taken:\n%s", out)
			}
		})
	}
	refused := func(what string) {
		t.Helper()
		out, err := newAPT(t, url, "stable", keyring).run(update)
		if err == nil {
			t.Errorf("%s is taken:\n%s", what, out)
		}
		t.Logf("%s: %s", what, out[max(0, len(out)-400):])
	}
	alter(t, filepath.Join(dir, "apt/dists/stable/InRelease"), func() {
		alter(t, filepath.Join(dir, "apt/dists/stable/Release"), func() { refused("an altered index") })
	})
	lists := filepath.Join(r.dir, "lists")
	r.mustBuild(t, clone, "refresh", now.AddDate(0, 0, -10), "RELEASES="+dir, "OUT="+lists, "VALID_DAYS=9")
	harness.MustRun(t, "cp", "-r", lists+"/.", dir)
	refused("an expired index")
	r.mustBuild(t, clone, "refresh", now, "RELEASES="+dir, "OUT="+lists)
	harness.MustRun(t, "cp", "-r", lists+"/.", dir)
	if out, err := newAPT(t, url, "stable", keyring).run(update); err != nil {
		t.Errorf("the index is signed anew, and not taken: %v\n%s", err, out)
	}
}
