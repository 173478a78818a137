//go:build e2e && linux

package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/node/update"
)

// The versions, whose digits the test replaces in one program.
const (
	firstVersion, firstSequence = "v9.9.1", "9900001"
	nextVersion, nextSequence   = "v9.9.2", "9900002"
	badVersion                  = "v9.9.3"
)

// packaged is a site that a loop starts again, and updates, as the units of the package do.
type packaged struct {
	name, data, file, dir string
	pkg                   string // the package's program
	http, https           string // its ports
	log                   harness.LogBuffer

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended bool
}

func (p *packaged) config(more string) string {
	return fmt.Sprintf("site: { name: %s }\nhttp: { listen: '127.0.0.1:%s', https: '127.0.0.1:%s' }\ndevices:\n  box: { "+
		"driver: sim, model: relay, min_off: 0 }\n%s",
		p.name, p.http, p.https, more)
}

// start starts the loop, which ends with the test.
func (p *packaged) start(t *testing.T) {
	t.Helper()
	notify := filepath.Join(p.data, "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err == nil {
		err = errors.Join(
			os.MkdirAll(filepath.Join(p.dir, "inbox"), 0o755), os.WriteFile(p.file, []byte(p.config("")), 0o600),
		)
	}
	if err != nil {
		t.Fatal(err)
	}
	var loop sync.WaitGroup
	loop.Go(func() {
		for b := make([]byte, 4096); ; {
			if _, err := socket.Read(b); err != nil {
				return
			}
		}
	})
	loop.Go(func() {
		for p.run(t, p.pkg, "update", "--settle", "--folder", p.dir) {
			p.run(t, p.program(), "update", "--install", "--folder", p.dir)
			p.run(t, p.program(), "run", "--config", p.file, "--data", p.data, "--update-folder", p.dir)
		}
	})
	t.Cleanup(func() {
		p.mu.Lock()
		if p.ended = true; p.cmd != nil {
			p.cmd.Process.Signal(syscall.SIGTERM)
		}
		p.mu.Unlock()
		socket.Close()
		loop.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", p.name, p.log.String())
		}
	})
}

// program returns the program that the service would start.
func (p *packaged) program() string {
	link := filepath.Join(p.dir, "agentsite")
	if to, err := os.Readlink(link); err != nil || filepath.IsAbs(to) {
		return p.pkg
	}
	path, _ := filepath.EvalSymlinks(link)
	return path
}

// run runs a program to its end. It returns false when the test has ended.
func (p *packaged) run(t *testing.T, program string, args ...string) bool {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(p.data, "notify"))
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return false
	}
	err := cmd.Start()
	p.cmd = cmd
	p.mu.Unlock()
	if err == nil {
		err = cmd.Wait()
	}
	fmt.Fprintf(&p.log, "%s %s: %v\n", filepath.Base(filepath.Dir(program)), args[0], err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = nil
	return !p.ended
}

func (p *packaged) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// channel serves releases of a program.
type channel struct {
	*httptest.Server
	key     identity.Key
	mu      sync.Mutex
	files   map[string][]byte
	content update.Channel
}

func newChannel(t *testing.T) *channel {
	now := time.Now()
	c := &channel{key: identity.New(), files: make(map[string][]byte),
		content: update.Channel{Name: "stable", Date: now, Expires: now.Add(time.Hour)}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		b, ok := c.files[r.URL.Path]
		c.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Write(b)
	}))
	t.Cleanup(c.Close)
	return c
}

// release adds a release of a program to the channel.
func (c *channel) release(t *testing.T, version string, sequence uint64, program []byte) {
	t.Helper()
	var b, list bytes.Buffer
	r := update.Release{Version: version, Sequence: sequence, Target: update.Target()}
	err := update.Sign(&b, r, program, c.key)
	sum := sha256.Sum256(b.Bytes())
	path := "updates/" + version + ".update"
	file := update.ChannelFile{Target: r.Target, Path: path, Size: int64(b.Len()), SHA256: hex.EncodeToString(sum[:])}
	c.content.Serial++
	c.content.Releases = append([]update.ChannelRelease{
		{Version: version, Sequence: sequence, Files: []update.ChannelFile{file}},
	}, c.content.Releases...)
	if err = errors.Join(err, update.SignChannel(&list, c.content, c.key)); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files["/"+path], c.files["/channel/stable"] = b.Bytes(), list.Bytes()
}

// fleetSites starts sites of the package, which a person owns.
func fleetSites(t *testing.T, pkg string, names ...string) (harness.Person, map[string]*packaged) {
	t.Helper()
	who, all := harness.NewPerson(t), make(map[string]*packaged)
	for _, name := range names {
		data := harness.TempDir(t)
		file := filepath.Join(harness.TempDir(t), "site.yaml")
		p := &packaged{name: name, data: data, file: file, dir: filepath.Join(data, "updates"), pkg: pkg,
			http: harness.FreePort(t), https: harness.FreePort(t)}
		p.start(t)
		all[name] = p
	}
	for name, p := range all {
		harness.WaitFor(t, time.Minute, name+" is claimed", func() bool {
			text, err := os.ReadFile(filepath.Join(p.data, state.ClaimFile))
			if err != nil {
				return false
			}
			address := regexp.MustCompile(`agentsite://\S+`).FindString(string(text))
			if _, err := access.ParseInvitation(address); err != nil {
				return false
			}
			_, err = who.CLI(t, "claim", address, "--name", name)
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
	c := newChannel(t)
	pkg := filepath.Join(harness.TempDir(t), "package", "agentsite")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", fmt.Sprintf(
		"-s -w -X main.version=%s -X main.sequence=%s -X main.releaseKeys=%s -X main.releases=%s",
		firstVersion, firstSequence, c.key.ID(), c.URL), "-o", pkg, "agentsite/cmd/agentsite")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(pkg)
	if err != nil {
		t.Fatal(err)
	}
	next := bytes.ReplaceAll(
		bytes.ReplaceAll(program, []byte(firstVersion), []byte(nextVersion)), []byte(firstSequence), []byte(nextSequence),
	)
	who, sites := fleetSites(t, pkg, "a", "b", "c", "d")
	c.release(t, nextVersion, 9900002, next)

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

	c.release(t, badVersion, 9900003, []byte("#!/bin/sh\nexit 1\n"))
	rows, _, code = fleet(t, who, "update")
	checkRows(t, rows, map[string]string{"a": "rolled back v9.9.2", "b": "untouched", "c": "untouched", "d": "untouched"})
	if code != 8 {
		t.Error(code)
	}
	// A damaged one is refused before the site ends.
	c.mu.Lock()
	damaged := bytes.Clone(c.files["/updates/"+badVersion+".update"])
	damaged[len(damaged)-1] ^= 1
	c.files["/updates/"+badVersion+".update"] = damaged
	c.mu.Unlock()
	rows, _, code = fleet(t, who, "update", "--sites", "b")
	if code != 8 || !strings.Contains(rows["b"], "failed") {
		t.Error(code, rows)
	}
	rows, _, _ = fleet(t, who, "status")
	checkRows(t, rows, map[string]string{"a": "well v9.9.2", "b": "well v9.9.2"})
}

// cli runs agentsite on the site's own machine.
func (p *packaged) cli(args ...string) (string, error) {
	out, err := exec.Command(harness.Program, append(args, "--data", p.data)...).CombinedOutput()
	return string(out), err
}
