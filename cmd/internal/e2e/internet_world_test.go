//go:build e2e && linux

package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentsite/cmd/internal/peer"
	"agentsite/discovery/bed"
)

// far is an internet with a relay, and with a realm that knows it.
type far struct {
	*bed.World
	relay publicRelay
	realm peer.Realm
}

func newFar(t *testing.T) *far {
	t.Helper()
	need(t, "the program", program)
	f := &far{World: bed.NewWorld(t)}
	f.relay.on, f.relay.ip = f.Public()
	f.relay.folder = folder(t)
	f.relay.start(t)
	f.realm = f.newRealm(t, "home")
	return f
}

func (f *far) newRealm(t *testing.T, name string) (j peer.Realm) {
	t.Helper()
	args := []string{"realm", "new", name, "--json"}
	for _, at := range f.relay.at {
		args = append(args, "--relay", at)
	}
	decode(t, someone(t).must(t, args...), &j)
	return j
}

func decode(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// publicRelay is agentsite relay on a machine that everybody reaches.
type publicRelay struct {
	on, ip, folder string
	at             []string // its addresses, with its peer ID
	cmd            *exec.Cmd
}

// start runs the relay, and waits until it says where it is.
func (p *publicRelay) start(t testing.TB) {
	t.Helper()
	argv := bed.On(p.on, program, "relay", "--json", "--data", p.folder, "--listen", ":8475")
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	var said struct{ Addresses []string }
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		t.Fatal("the relay does not say where it is:", err)
	}
	p.at = said.Addresses
}

// kill ends the relay as kill -9 does.
func (p *publicRelay) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.cmd = nil
}

// site starts a site on a host of the world, with a lamp and a thermometer, in the realm.
func (f *far) site(t *testing.T, on string, flags ...string) *running {
	t.Helper()
	return f.siteAt(t, folder(t), on, flags...)
}

// siteAt is site with a data folder that may have been the site's before.
func (f *far) siteAt(t *testing.T, data, on string, flags ...string) *running {
	t.Helper()
	config := "site: { name: shed }\ndevices:\n  lamp: { driver: sim, model: relay, min_off: 0 }\n  den: { driver: sim, model: climate }\n" +
		"internet: { realm: \"" + f.realm.Realm + "\", relays: [\"" + strings.Join(f.relay.at, `", "`) + "\"] }\n"
	argv := append(bed.On(on, program, "run", "--listen-peers", ":8475"), flags...)
	return startIn(t, data, config, nil, argv...)
}

// laptop is a machine of somebody's, who knows there nothing but the realm.
func (f *far) laptop(t *testing.T, on string, who person) laptop {
	t.Helper()
	l := laptop{on, folder(t)}
	who.key(t) // is made
	own := filepath.Join("agentsite", "owner")
	if err := os.MkdirAll(filepath.Join(l.folder, own), 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(who.folder, own, "key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(l.folder, own, "key"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.join(t, f.realm)
	return l
}

func (l laptop) join(t testing.TB, j peer.Realm) {
	t.Helper()
	args := []string{"realm", "join", j.Realm}
	for _, at := range j.Relays {
		args = append(args, "--relay", at)
	}
	l.must(t, args...)
}

// refused runs a command that must not go well, but end with that code and in such words,
// which it returns without who is meant.
func (l laptop) refused(t testing.TB, code int, says string, args ...string) string {
	t.Helper()
	out, err := l.agentsite(t, args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code || !strings.Contains(err.Error(), says) || out != "" {
		t.Errorf("%q: %s %v, not %d and %q", args, out, err, code, says)
	}
	return particular.ReplaceAllString(fmt.Sprint(err), "…")
}

// particular is what is another each time: keys, and when something ended.
var particular = regexp.MustCompile(`did:key:\w+|[0-9-]+T[0-9:]+Z`)

// finds are the sites that agentsite find prints.
func (l laptop) finds(t testing.TB, args ...string) (all []peer.Found) {
	t.Helper()
	for line := range strings.Lines(l.must(t, append([]string{"find", "--json"}, args...)...)) {
		var s peer.Found
		decode(t, line, &s)
		all = append(all, s)
	}
	return all
}

// pings are the ways by which so many pings of a site go, a second apart.
func (l laptop) pings(t testing.TB, count int, args ...string) (paths []string) {
	t.Helper()
	for line := range strings.Lines(l.must(t, append(args, "ping", "--json", "-c", fmt.Sprint(count))...)) {
		var p peer.PingResult
		decode(t, line, &p)
		paths = append(paths, string(p.Path))
	}
	return paths
}

// lines starts a command, and returns what it prints.
func lines(t testing.TB, cmd *exec.Cmd) <-chan string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	said := make(chan string)
	go func() {
		defer close(said)
		for all := bufio.NewScanner(out); all.Scan(); {
			select {
			case said <- all.Text():
			case <-t.Context().Done():
				return
			}
		}
	}()
	return said
}
