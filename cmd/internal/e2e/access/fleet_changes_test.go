//go:build e2e && linux

package access

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/service"
)

// The versions, whose digits the test replaces in one program.
const (
	firstVersion, nextVersion, badVersion = "v9.9.1", "v9.9.2", "v9.9.3"
	firstSequence, nextSequence           = 9900001, 9900002
)

// packaged is a site of the package with a person's configuration.
type packaged struct {
	*service.Service
	name        string
	http, https string // its ports
}

func (p *packaged) config(more string) string {
	return fmt.Sprintf("site: { name: %s }\nhttp: { listen: '127.0.0.1:%s', https: '127.0.0.1:%s' }\ndevices:\n  box: { "+
		"driver: sim, model: relay, min_off: 0 }\n%s",
		p.name, p.http, p.https, more)
}

func (p *packaged) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.Config)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fleetSites starts sites of the package, which a person owns.
func fleetSites(t *testing.T, pkg string, names ...string) (harness.Person, map[string]*packaged) {
	t.Helper()
	who, all := harness.NewPerson(t), make(map[string]*packaged)
	for _, name := range names {
		p := &packaged{name: name, http: harness.FreePort(t), https: harness.FreePort(t)}
		p.Service = service.Start(t, pkg, "", p.config(""))
		all[name] = p
	}
	for name, p := range all {
		harness.WaitFor(t, time.Minute, name+" is claimed", func() bool {
			address, err := p.Invitation()
			if err == nil {
				_, err = who.CLI(t, "claim", address.String(), "--name", name)
			}
			return err == nil
		})
	}
	return who, all
}

// fleet runs a fleet command of the person's, and returns each site's row and the exit code.
func fleet(t *testing.T, who harness.Person, args ...string) (rows map[string]string, out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Program, append([]string{"fleet"}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+who.Folder)
	var said bytes.Buffer
	cmd.Stderr = &said
	begun := time.Now()
	b, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	t.Logf(
		"fleet %s (%v): %d\n%s%s", strings.Join(args, " "), time.Since(begun).Round(time.Second), code, b, said.String(),
	)
	rows = make(map[string]string)
	for line := range strings.Lines(string(b)) {
		name, row, _ := strings.Cut(line, " ")
		rows[name] = strings.Join(strings.Fields(row), " ")
	}
	return rows, string(b), code
}

func checkRows(t *testing.T, rows, want map[string]string) {
	t.Helper()
	for name, begins := range want {
		if !strings.HasPrefix(rows[name], begins) {
			t.Errorf("%s: %q, want %q", name, rows[name], begins)
		}
	}
}

// TestFleetApply has four sites take configurations. Those that break a site, or cut it off, are rolled back there. It
// takes more than 20 s: a trial waits until a site has been well.
func TestFleetApply(t *testing.T) {
	t.Parallel()
	harness.Need(t, "the program", harness.Program)
	who, sites := fleetSites(t, harness.Program, "a", "b", "c", "d")
	folder := harness.TempDir(t)
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	// A mistake that one site refuses changes nothing anywhere. The folder has a text for each.
	for name, p := range sites {
		more := "  lamp: { driver: sim, model: relay }\n"
		if name == "c" {
			more = "  lamp: { driver: nothing }\n"
		}
		write(name+".yaml", p.config(more))
	}
	rows, out, code := fleet(t, who, "apply", folder, "--dry-run")
	checkRows(t, rows, map[string]string{"a": "would change", "c": "invalid line 5:"})
	if code != 8 || !strings.Contains(out, "\n+  lamp: { driver: sim, model: relay }\n") {
		t.Error(code)
	}
	rows, _, code = fleet(t, who, "apply", folder)
	checkRows(t, rows, map[string]string{"a": "not applied", "b": "not applied", "c": "invalid", "d": "not applied"})
	for name, p := range sites {
		if code != 8 || p.text(t) != p.config("") {
			t.Errorf("%s is changed", name)
		}
	}

	// What breaks two of them is rolled back there, and stays at the others.
	for name, p := range sites {
		more := "  lamp: { driver: sim, model: relay }\n"
		if name == "b" || name == "c" {
			more += "  attic: { driver: 'kernel:lm75', bus: i2c-999, address: 0x48 }\n"
		}
		write(name+".yaml", p.config(more))
	}
	rows, _, code = fleet(t, who, "apply", folder, "--trial", "30s")
	checkRows(t, rows, map[string]string{
		"a": "kept", "b": "rolled back attic is missing", "c": "rolled back attic is missing", "d": "kept",
	})
	if code != 8 || sites["b"].text(t) != sites["b"].config("") || sites["a"].text(t) == sites["a"].config("") {
		t.Error(code, sites["b"].text(t))
	}

	// A configuration that cuts a site off needs a restart. That site comes back by itself, and so do the others
	// where the owner's machine does not confirm.
	for name, p := range sites {
		text := p.text(t)
		if name == "d" {
			text = strings.Replace(text, p.https, harness.FreePort(t), 1)
		}
		write(name+".yaml", text)
	}
	rows, _, _ = fleet(t, who, "apply", folder)
	checkRows(t, rows, map[string]string{"a": "unchanged", "d": "invalid"})
	rows, _, code = fleet(t, who, "apply", folder, "--restart", "--trial", "20s")
	checkRows(t, rows, map[string]string{"a": "unchanged", "d": "rolled back"})
	if code != 8 || !strings.Contains(sites["d"].text(t), sites["d"].https) {
		t.Error(code, sites["d"].text(t))
	}
	rows, _, code = fleet(t, who, "status")
	checkRows(t, rows, map[string]string{"a": "well", "b": "well", "c": "well", "d": "well"})
	if code != 0 {
		t.Error(code)
	}
	said := who.MustCLI(t, "journal", "--site", "d")
	if !strings.Contains(said, "was rolled back: no owner confirmed it within 20s") {
		t.Error(said)
	}

	// One that a restart takes up, and that is reached again, stays; all have the same text, with their own names.
	one := write("one.yaml", "site: { name: all }\nhttp: { listen: '127.0.0.1:"+sites["a"].http+"', https: '127.0.0.1:"+sites["a"].https+"' }\n"+
		"approvals: { wait: 3m }\ninternet: { listen: '127.0.0.1:0', port_map: off } # by its relay\ndevices:\n"+
		"  box: { driver: sim, model: relay, min_off: 0 }\n")
	rows, _, code = fleet(t, who, "apply", one, "--sites", "a", "--restart", "--trial", "30s")
	checkRows(t, rows, map[string]string{"a": "kept"})
	before := sites["a"].text(t)
	if code != 0 || !strings.HasPrefix(before, "site: { name: a }\n") {
		t.Error(code, before)
	}

	// A realm is written into what is there. The owner's machine is in it, too.
	const relay = "/ip4/127.0.0.1/udp/9/quic-v1/p2p/12D3KooWEHr6QBYgUoTxXvcs5U8kvvNmGVdSqbPRdYxXrf1YFAuo"
	rows, _, code = fleet(t, who, "realm", "new", "farm", "--relay", relay, "--sites", "a", "--trial", "30s")
	checkRows(t, rows, map[string]string{"a": "kept"})
	realm := regexp.MustCompile("farm:[a-z2-7]{26}").FindString(who.MustCLI(t, "realm", "list", "--secrets"))
	want := strings.Replace(before, "off } #", fmt.Sprintf("off, realm: %s, relays: [\"%s\", \"%s\"] } #", realm, relay,
		strings.NewReplacer("/udp/", "/tcp/", "/quic-v1", "").Replace(relay)), 1)
	if code != 0 || realm == "" || sites["a"].text(t) != want {
		t.Errorf("%d:\n%s\nnot\n%s", code, sites["a"].text(t), want)
	}
	rows, out, code = fleet(t, who, "realm", "join", "farm", "--sites", "a,b", "--dry-run")
	checkRows(t, rows, map[string]string{"a": "unchanged", "b": "would change"})
	if code != 0 || !strings.Contains(out, "\n+internet:\n+  realm: "+realm+"\n+  relays: [") {
		t.Error(code)
	}
}

// TestFleetUpdate updates four sites in waves to a version that works, and then to one that does not, which stops at
// the first site. It takes more than 20 s: a version proves itself in 15.
func TestFleetUpdate(t *testing.T) {
	t.Parallel()
	harness.Need(t, "the program", harness.Program)
	c := service.NewChannel(t, "", "127.0.0.1")
	pkg, program := c.Build(t, firstVersion, firstSequence)
	next := service.Renamed(program, firstVersion, nextVersion, firstSequence, nextSequence)
	who, sites := fleetSites(t, pkg, "a", "b", "c", "d")
	c.Release(t, nextVersion, nextSequence, next)

	rows, _, code := fleet(t, who, "update", "--check")
	checkRows(t, rows, map[string]string{"a": "v9.9.1 v9.9.2 may be updated", "d": "v9.9.1 v9.9.2"})
	if code != 0 {
		t.Error(code)
	}
	// An output that is away from safe is not switched off by the way.
	if _, err := sites["c"].cli("set", "box/relay", "on", "--for", "1m"); err != nil {
		t.Fatal(err)
	}
	rows, _, code = fleet(t, who, "update", "--wave", "1,2")
	checkRows(
		t, rows, map[string]string{"a": "updated v9.9.2", "b": "updated v9.9.2", "c": "unsafe", "d": "untouched v9.9.1"},
	)
	if code != 8 {
		t.Error(code)
	}
	// The next one goes on where that stopped.
	rows, _, code = fleet(t, who, "update", "--now")
	checkRows(t, rows, map[string]string{
		"a": "current v9.9.2", "b": "current v9.9.2", "c": "updated v9.9.2", "d": "updated v9.9.2",
	})
	if code != 0 {
		t.Error(code)
	}
	said := who.MustCLI(t, "journal", "--site", "c")
	if !strings.Contains(said, "update") || !strings.Contains(said, "the site ends for the update to v9.9.2") {
		t.Error(said)
	}

	c.Release(t, badVersion, nextSequence+1, []byte("#!/bin/sh\nexit 1\n"))
	rows, _, code = fleet(t, who, "update")
	checkRows(t, rows, map[string]string{"a": "rolled back v9.9.2", "b": "untouched", "c": "untouched", "d": "untouched"})
	if code != 8 {
		t.Error(code)
	}
	// A damaged one is refused before the site ends.
	c.Damage(badVersion)
	rows, _, code = fleet(t, who, "update", "--sites", "b")
	if code != 8 || !strings.Contains(rows["b"], "failed") {
		t.Error(code, rows)
	}
	rows, _, _ = fleet(t, who, "status")
	checkRows(t, rows, map[string]string{"a": "well v9.9.2", "b": "well v9.9.2"})
}

// cli runs agentsite on the site's own machine.
func (p *packaged) cli(args ...string) (string, error) {
	out, err := exec.Command(harness.Program, append(args, "--data", p.Data)...).CombinedOutput()
	return string(out), err
}
