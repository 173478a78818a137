//go:build e2e && linux

package internet

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/discovery/bed"
)

// far is an internet with a relay, and with a realm that knows it.
type far struct {
	*bed.World
	relay  harness.PublicRelay
	realm  peer.Realm
	agents string // that new sites host
}

func newFar(t *testing.T) *far {
	t.Helper()
	harness.Need(t, "the program", harness.Program)
	f := &far{World: bed.NewWorld(t)}
	f.relay.Host, f.relay.IP = f.Public()
	f.relay.Folder = harness.TempDir(t)
	f.relay.Start(t)
	f.realm = f.newRealm(t, "home")
	return f
}

func (f *far) newRealm(t *testing.T, name string) (j peer.Realm) {
	t.Helper()
	args := []string{"realm", "new", name, "--json"}
	for _, at := range f.relay.Addresses {
		args = append(args, "--relay", at)
	}
	harness.DecodeJSON(t, harness.NewPerson(t).MustCLI(t, args...), &j)
	return j
}

// site starts a site on a host of the world, with a lamp and a thermometer, in the realm.
func (f *far) site(t *testing.T, on string, flags ...string) *harness.Site {
	t.Helper()
	return f.siteAt(t, harness.TempDir(t), on, flags...)
}

// siteAt is site with a data folder that may have been the site's before.
func (f *far) siteAt(t *testing.T, data, on string, flags ...string) *harness.Site {
	t.Helper()
	config := "site: { name: shed }\ndevices:\n  lamp: { driver: sim, model: relay, min_off: 0 }\n  den: { driver: sim, model: climate }\n" +
		"internet: { realm: \"" + f.realm.Realm + "\", relays: [\"" + strings.Join(f.relay.Addresses, `", "`) + "\"] }\n" + f.agents
	argv := append(bed.On(on, harness.Program, "run", "--listen-peers", ":8475"), flags...)
	return harness.StartIn(t, data, config, nil, argv...)
}

// laptop is a machine of somebody's, who knows there nothing but the realm.
func (f *far) laptop(t *testing.T, on string, who harness.Person) harness.Laptop {
	t.Helper()
	l := harness.NewLaptop(t, on)
	who.Key(t) // is made
	own := filepath.Join("agentsite", "owner")
	if err := os.MkdirAll(filepath.Join(l.Folder, own), 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(who.Folder, own, "key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(l.Folder, own, "key"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.JoinRealm(t, f.realm)
	return l
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
