//go:build e2e && linux

package harness

import (
	"bytes"
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

func DecodeJSON(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

func (l Laptop) JoinRealm(t testing.TB, j peer.Realm) {
	t.Helper()
	args := []string{"realm", "join", j.Realm}
	for _, at := range j.Relays {
		args = append(args, "--relay", at)
	}
	l.MustCLI(t, args...)
}

// refused runs a command that must not go well, but end with that code and in such words,
// which it returns without who is meant.
func (l Laptop) CheckRefused(t testing.TB, code int, says string, args ...string) string {
	t.Helper()
	out, err := l.CLI(t, args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code || !strings.Contains(err.Error(), says) || out != "" {
		t.Errorf("%q: %s %v, not %d and %q", args, out, err, code, says)
	}
	return particular.ReplaceAllString(fmt.Sprint(err), "…")
}

// particular is what is another each time: keys, and when something ended.
var particular = regexp.MustCompile(`did:key:\w+|[0-9-]+T[0-9:]+Z`)

// finds are the sites that agentsite find prints.
func (l Laptop) Find(t testing.TB, args ...string) (all []peer.Found) {
	t.Helper()
	for line := range strings.Lines(l.MustCLI(t, append([]string{"find", "--json"}, args...)...)) {
		var s peer.Found
		DecodeJSON(t, line, &s)
		all = append(all, s)
	}
	return all
}

// pings are the ways by which so many pings of a site go, a second apart.
func (l Laptop) Ping(t testing.TB, count int, args ...string) (paths []string) {
	t.Helper()
	for line := range strings.Lines(l.MustCLI(t, append(args, "ping", "--json", "-c", fmt.Sprint(count))...)) {
		var p peer.PingResult
		DecodeJSON(t, line, &p)
		paths = append(paths, string(p.Path))
	}
	return paths
}

// What the network has to do within a time is printed, and fails at thirty times that: no
// output depends on it, and machines are busy.

// startOn starts a site on a host, which listens there for the network.
func StartOn(t testing.TB, host, data, name string, more ...string) *Site {
	t.Helper()
	config := "site: { name: " + name + " }\ndevices:\n  climate: { driver: sim, model: climate }\n" + strings.Join(more, "\n") + "\n"
	return StartIn(t, data, config, nil, append(bed.On(host, Need(t, "the program", Program)), "run", "--listen-https", ":8474")...)
}

// did is the site's identity.
func (r *Site) DID(t testing.TB) string {
	t.Helper()
	id, err := state.Folder(r.Folder).Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id.DID
}

// laptop is somebody with a key and a command line on a host.
type Laptop struct{ Host, Folder string }

// NewLaptop returns a laptop on a host, with an empty configuration folder.
func NewLaptop(t testing.TB, host string) Laptop { return Laptop{host, TempDir(t)} }

func (l Laptop) Command(ctx context.Context, args ...string) *exec.Cmd {
	argv := bed.On(l.Host, append([]string{Program}, args...)...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+l.Folder)
	return cmd
}

// agentsite runs a command, and returns what it printed.
func (l Laptop) CLI(t testing.TB, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := l.Command(ctx, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(out), err
}

// must is agentsite for what has to go well.
func (l Laptop) MustCLI(t testing.TB, args ...string) string {
	t.Helper()
	out, err := l.CLI(t, args...)
	if err != nil {
		t.Fatal(args, err)
	}
	return out
}

// claim makes the laptop's user own a site, by the address that it shows.
func (l Laptop) Claim(t testing.TB, r *Site, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.Folder, "agentsite-claim.txt"))
	if err != nil {
		t.Fatal(err)
	}
	l.MustCLI(t, "claim", InvitationPattern.FindString(string(text)), "--name", name)
}

// reads reports whether the laptop reads the site, and how long that took it. What it says
// otherwise is logged.
func (l Laptop) Read(t testing.TB, name string) (time.Duration, bool) {
	t.Helper()
	begun := time.Now()
	out, err := l.CLI(t, "--site", name, "read", "climate/temperature")
	if err != nil {
		t.Logf("%s after %v: %v", name, time.Since(begun).Round(time.Millisecond), err)
	}
	return time.Since(begun), err == nil && strings.Contains(out, "°C")
}

// knows is where the laptop takes a site to be, the best first.
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
