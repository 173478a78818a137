//go:build e2e && linux

package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/discovery/bed"
	"agentsite/node/state"
)

// Laptop is a host with a person's key and the command line.
type Laptop struct{ Host, Folder string }

// NewLaptop returns a laptop on a host, with an empty configuration folder.
func NewLaptop(t testing.TB, host string) Laptop { return Laptop{host, TempDir(t)} }

// Command returns agentsite with these arguments, to be run on the laptop.
func (l Laptop) Command(ctx context.Context, args ...string) *exec.Cmd {
	argv := bed.On(l.Host, append([]string{Program}, args...)...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+l.Folder)
	return cmd
}

// CLI runs agentsite with these arguments on the laptop, and returns its output.
func (l Laptop) CLI(t testing.TB, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return output(l.Command(ctx, args...))
}

// MustCLI is CLI, and fails the test where the command fails.
func (l Laptop) MustCLI(t testing.TB, args ...string) string {
	t.Helper()
	out, err := l.CLI(t, args...)
	if err != nil {
		t.Fatal(args, err)
	}
	return out
}

// Claim makes the laptop's user the owner of a site.
func (l Laptop) Claim(t testing.TB, r *Site, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.Folder, state.ClaimFile))
	if err != nil {
		t.Fatal(err)
	}
	l.MustCLI(t, "claim", invitationPattern.FindString(string(text)), "--name", name)
}

// Read reports whether the laptop reads a point of the site, and how long that took. It logs an
// error.
func (l Laptop) Read(t testing.TB, name string) (time.Duration, bool) {
	t.Helper()
	begun := time.Now()
	out, err := l.CLI(t, "--site", name, "read", "climate/temperature")
	if err != nil {
		t.Logf("%s after %v: %v", name, time.Since(begun).Round(time.Millisecond), err)
	}
	return time.Since(begun), err == nil && strings.Contains(out, "°C")
}

// Addresses returns the addresses in the laptop's contact of that name, the best first.
func (l Laptop) Addresses(t testing.TB, name string) []string {
	t.Helper()
	for line := range strings.Lines(l.MustCLI(t, "sites", "--json")) {
		var k peer.Contact
		if err := json.Unmarshal([]byte(line), &k); err != nil {
			t.Fatal(err)
		}
		if k.Name == name {
			return k.Addresses
		}
	}
	t.Fatalf("%s is not known", name)
	return nil
}

// DecodeJSON decodes text into a value.
func DecodeJSON(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// JoinRealm joins a realm and its relays.
func (l Laptop) JoinRealm(t testing.TB, j peer.Realm) {
	t.Helper()
	args := []string{"realm", "join", j.Realm}
	for _, at := range j.Relays {
		args = append(args, "--relay", at)
	}
	l.MustCLI(t, args...)
}

// CheckRefused runs a command that has to fail with this exit code and this text in its error.
// It returns the error without its keys and times.
func (l Laptop) CheckRefused(t testing.TB, code int, says string, args ...string) string {
	t.Helper()
	out, err := l.CLI(t, args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code || !strings.Contains(err.Error(), says) || out != "" {
		t.Errorf("%q: %s %v, not %d and %q", args, out, err, code, says)
	}
	return particular.ReplaceAllString(progress.ReplaceAllString(fmt.Sprint(err), ""), "…")
}

// particular and progress find what differs between two runs: keys and times, and a busy machine.
var (
	particular = regexp.MustCompile(`did:key:\w+|[0-9-]+T[0-9:]+Z`)
	progress   = regexp.MustCompile(`agentsite: the site has not answered yet; .*\n`)
)

// Find returns the sites that agentsite find prints.
func (l Laptop) Find(t testing.TB, args ...string) (all []peer.Found) {
	t.Helper()
	for line := range strings.Lines(l.MustCLI(t, append([]string{"find", "--json"}, args...)...)) {
		var s peer.Found
		DecodeJSON(t, line, &s)
		all = append(all, s)
	}
	return all
}

// Ping pings a site count times, a second apart, and returns the path of each ping.
func (l Laptop) Ping(t testing.TB, count int, args ...string) (paths []string) {
	t.Helper()
	for line := range strings.Lines(l.MustCLI(t, append(args, "ping", "--json", "-c", fmt.Sprint(count))...)) {
		var p peer.PingResult
		DecodeJSON(t, line, &p)
		paths = append(paths, string(p.Path))
	}
	return paths
}

// StartOn starts a site on a host. It serves HTTPS on the host's networks.
func StartOn(t testing.TB, host, data, name string, more ...string) *Site {
	t.Helper()
	config := "site: { name: " + name + " }\ndevices:\n  climate: { driver: sim, model: climate }\n" + strings.Join(more, "\n") + "\n"
	return StartIn(t, data, config, nil, append(bed.On(host, Need(t, "the program", Program)), "run", "--listen-https", ":8474")...)
}

// DID returns the site's identity.
func (r *Site) DID(t testing.TB) string {
	t.Helper()
	id, err := state.Folder(r.Folder).Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id.DID
}
