//go:build e2e && linux

package lan

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/discovery"
	"agentsite/discovery/bed"
	"agentsite/node/identity"
	"agentsite/transport/web"
)

// id is the site's identity, as the test needs it.
func siteID(t testing.TB, r *harness.Site) identity.ID {
	t.Helper()
	id, err := identity.Parse(r.DID(t))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

const browse = "avahi-browse -r -p -t _agentsite._tcp | grep '^=.*;IPv4;'"

// recordIn is what avahi-browse said of a site, and the record in it.
func recordIn(t testing.TB, label, said string) (line string, r *discovery.Signed) {
	t.Helper()
	for line := range strings.Lines(said) {
		if !strings.Contains(line, ";"+label+";") {
			continue
		}
		var all string
		for n := range 8 {
			if m := regexp.MustCompile(fmt.Sprintf(`"r%d=([^"]*)"`, n)).FindStringSubmatch(line); m != nil {
				all += m[1]
			}
		}
		b, err := base64.RawURLEncoding.DecodeString(all)
		if err == nil {
			r, err = discovery.Open(b)
		}
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		return line, r
	}
	t.Fatalf("%s is not in %s", label, said)
	return "", nil
}

// TestLANAvahi: Debian's avahi sees a site and finds its names, and what it publishes that
// is no site does no harm. What it sees tells of a site that it is there, and what it
// offers only where its owner wants that.
func TestLANAvahi(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	a := b.Avahi(b.Host("10.77.0.50/24"), "debian")
	l := harness.NewLaptop(t, b.Host("10.77.0.100/24"))
	relay := "  secret-heater: { driver: sim, model: relay }"
	shown, hidden := harness.TempDir(t), harness.TempDir(t)
	open := harness.StartOn(t, b.Host("10.77.0.1/24"), shown, "shed", relay, "discovery: { public: on }")
	closed := harness.StartOn(t, b.Host("10.77.0.2/24"), hidden, "barn", relay)
	labels := []string{discovery.Label(siteID(t, open)), discovery.Label(siteID(t, closed))}

	tells := func(label, name string) *discovery.Signed {
		t.Helper()
		line, r := recordIn(t, label, a.Until(label, browse))
		for _, want := range []string{label + ".local", ";8474;", `"path=/mcp"`, `"id=12D3Koo`, `"name=` + name + `"`} {
			if !strings.Contains(line, want) {
				t.Errorf("avahi-browse has no %s: %s", want, line)
			}
		}
		for _, never := range []string{"heater", "climate", "relay", "temperature"} {
			if strings.Contains(line, never) || r.Offer == nil && bytes.Contains(r.Bytes(), []byte(never)) {
				t.Errorf("%s is told of %s: %s, %+v", never, name, line, r)
			}
		}
		return r
	}
	before := tells(labels[0], "shed")
	for i, name := range []string{"shed", "barn"} {
		if r := tells(labels[i], name); r.Offer != nil || r.Digest != ([32]byte{}) {
			t.Errorf("nobody owns %s, and it offers %v, %x", name, r.Offer, r.Digest)
		}
	}
	w := l.Watch(t)
	w.AwaitSites(30*time.Second, open.DID(t), closed.DID(t))
	l.Claim(t, open, "shed")
	l.Claim(t, closed, "barn")
	w.Await(30*time.Second, "the open one says so", func(e harness.Discovered) bool { return e.DID == open.DID(t) && e.Change == "changed" })
	harness.WaitFor(t, time.Minute, "the open one's other record is seen", func() bool { return tells(labels[0], "shed").Sequence > before.Sequence })
	if after := tells(labels[0], "shed"); after.Digest == ([32]byte{}) {
		t.Errorf("what the owner wants public is not: %+v", after)
	}
	if r := tells(labels[1], "barn"); r.Offer != nil || r.Digest != ([32]byte{}) {
		t.Errorf("nobody made barn's offer public, and it offers %v, %x", r.Offer, r.Digest)
	}

	for _, name := range []string{labels[0], "shed"} {
		a.Until("10.77.0.1", "avahi-resolve -4 -n "+name+".local")
	}

	// By the name that avahi finds, and the certificate of the site's key.
	key, err := os.ReadFile(filepath.Join(shown, "key"))
	if err != nil {
		t.Fatal(err)
	}
	k, err := identity.ParsePEM(key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := web.Authority(k)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(harness.TempDir(t), "shed.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	host := labels[0] + ".local"
	if got := a.Run(fmt.Sprintf("curl -sS --cacert %s --resolve %s:8474:`avahi-resolve -4 -n %[2]s | cut -f2` https://%[2]s:8474/healthz", file, host)); got != "ok" {
		t.Errorf("curl by name says %q", got)
	}

	// What is no site, as if it were one.
	for _, nonsense := range []string{
		"-s nonsense _agentsite._tcp 8474 id=x r0=AAAA", "-s 'shed' _agentsite._tcp 1", "-s " + labels[0] + "-2 _agentsite._tcp 65535 name=shed path=/",
		"-s 'a.b c' _agentsite._tcp 8474 id=" + siteID(t, open).PeerID() + " r0=" + strings.Repeat("A", 200),
	} {
		a.Begin("avahi-publish " + nonsense)
	}
	a.Until("nonsense", "avahi-browse -p -t _agentsite._tcp")
	fresh := l.Watch(t)
	fresh.AwaitSites(30*time.Second, open.DID(t), closed.DID(t))
	if out := l.MustCLI(t, "discover", "--json"); strings.Count(out, "\n") != 2 {
		t.Errorf("what is no site is shown:\n%s", out)
	}
	for _, name := range []string{"shed", "barn"} {
		if _, ok := l.Read(t, name); !ok {
			t.Errorf("%s is not read any more", name)
		}
	}
	w.End()
	fresh.End()
	open.Stop(t)
	a.Until("gone", "avahi-browse -p -t _agentsite._tcp | grep -q '"+labels[0]+";' || echo gone")
}

// TestLANPublic: the kinds and the names of its points are told once somebody owns the
// site and wants it, and never else.
func TestLANPublic(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	l := harness.NewLaptop(t, b.Host("10.77.0.100/24"))
	open := harness.StartOn(t, b.Host("10.77.0.1/24"), harness.TempDir(t), "shed", "  lamp: { driver: sim, model: relay }", "discovery: { public: on }")
	closed := harness.StartOn(t, b.Host("10.77.0.2/24"), harness.TempDir(t), "barn")
	w := l.Watch(t)
	for range 2 {
		e, _ := w.Await(30*time.Second, "both are found", func(e harness.Discovered) bool { return e.Change == "appeared" })
		if e.Public != nil {
			t.Errorf("nobody owns %s, and it tells %+v", e.Name, e.Public)
		}
	}
	l.Claim(t, open, "shed")
	l.Claim(t, closed, "barn")
	e, _ := w.Await(30*time.Second, "what is public is told", func(e harness.Discovered) bool { return e.Public != nil })
	if got := fmt.Sprint(e.Public); e.DID != open.DID(t) || got != "[{measurement [humidity pressure temperature]} {switch [relay]}]" {
		t.Errorf("%s tells %s", e.Name, got)
	}
	if out := l.MustCLI(t, "discover", "--json"); strings.Count(out, `"public"`) != 1 {
		t.Errorf("discover says\n%s", out)
	}
}

// TestLANNames: two sites of one name are both shown, and neither is taken for the other.
func TestLANNames(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	l := harness.NewLaptop(t, b.Host("10.77.0.100/24"))
	first, second := b.Host("10.77.0.1/24"), b.Host("10.77.0.2/24")
	mine := harness.StartOn(t, first, harness.TempDir(t), "shed")
	l.Claim(t, mine, "shed")
	theirs := harness.StartOn(t, second, harness.TempDir(t), "shed")
	w := l.Watch(t)
	w.AwaitSites(30*time.Second, mine.DID(t), theirs.DID(t))
	out := l.MustCLI(t, "discover")
	for _, r := range []*harness.Site{mine, theirs} {
		if strings.Count(out, r.DID(t)) != 1 {
			t.Errorf("%s is not in\n%s", r.DID(t), out)
		}
	}
	if strings.Count(out, "not yours") != 1 {
		t.Errorf("who is whose?\n%s", out)
	}
	if at := l.Addresses(t, "shed"); at[0] != "10.77.0.1:8474" {
		t.Errorf("shed is known at %v", at)
	}

	// The other one has its place now, name and address, and is not asked.
	mine.Stop(t)
	b.IP(first, "addr del 10.77.0.1/24 dev eth0")
	b.IP(second, "addr add 10.77.0.1/24 dev eth0")
	w.Await(30*time.Second, "the other has its address", at(theirs.DID(t), "10.77.0.1"))
	if _, ok := l.Read(t, "shed"); ok {
		t.Error("another site is read under the name of one's own")
	}
	if at := l.Addresses(t, "shed"); at[0] != "10.77.0.1:8474" {
		t.Errorf("shed is known at %v", at)
	}
	for _, name := range []string{"barn", discovery.Label(siteID(t, theirs))} {
		if out, err := l.CLI(t, "--site", name, "read"); err == nil || !strings.Contains(err.Error(), "you know no site") {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
	l.Claim(t, theirs, "shed-2")
	if _, ok := l.Read(t, "shed-2"); !ok {
		t.Error("the other one is not read under its own name")
	}
}

// TestLANFlood: a hostile neighbour makes up 10,000 sites, and says that ours is elsewhere
// and gone.
func TestLANFlood(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	l := harness.NewLaptop(t, b.Host("10.77.0.100/16"))
	if out, err := exec.Command("ip", "netns", "exec", l.Host, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out) // else it is read at the address of its link, which stays
	}
	host := b.Host("10.77.0.1/16")
	r := harness.StartOn(t, host, harness.TempDir(t), "shed")
	l.Claim(t, r, "shed")
	w := l.Watch(t)
	w.AwaitSites(30*time.Second, r.DID(t))
	resident := func(pid int) float64 { return harness.Status(t, pid, "VmRSS:") / 1024 }
	watch, served := resident(w.Cmd.Process.Pid), resident(r.Cmd.Process.Pid)
	go func() { // what is shown is nobody's concern until the end
		for range w.Lines {
		}
	}()

	was := "10.77.0.1/16"
	read := func(wait time.Duration, now string) (time.Duration, bool) {
		b.IP(host, "addr del "+was+" dev eth0", "addr add "+now+" dev eth0")
		was = now
		begun := time.Now()
		out, err := l.CLI(t, "--site", "shed", "--wait", wait.String(), "read", "climate/temperature")
		if err != nil {
			t.Logf("after %v: %v", time.Since(begun), err)
		}
		return time.Since(begun), err == nil && strings.Contains(out, "°C")
	}
	// On a busy machine it takes longer without a flood, too.
	wait := peer.DefaultTimeout
	for n := range 3 {
		took, ok := read(30*time.Second, fmt.Sprintf("10.77.2.%d/16", n+1))
		if !ok {
			t.Fatal("without a flood the site is not found at another address")
		}
		wait = min(max(wait, 8*took), 30*time.Second)
	}

	argv := bed.On(b.Host("10.77.0.66/16"), os.Args[0], "10.77.0.66", r.DID(t))
	flood := exec.Command(argv[0], argv[1:]...)
	flood.Env, flood.Stderr = append(os.Environ(), "NEIGHBOUR=flood"), os.Stderr
	if err := flood.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- flood.Wait() }()
	t.Cleanup(func() { _ = flood.Process.Kill() })
	reads, tries := 0, 0
	var took []time.Duration
	for flooding := true; flooding; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			flooding = false
		default:
		}
		tries++
		found, ok := read(wait, fmt.Sprintf("10.77.1.%d/16", tries))
		if ok {
			reads++
		}
		took = append(took, found)
	}
	harness.LogDurations(t, "the site is looked for and read in the flood", took)
	t.Logf("read %d of %d times, within %v; discover --watch grew from %.1f to %.1f MB, the site from %.1f to %.1f MB", reads, tries, wait, watch, resident(w.Cmd.Process.Pid), served, resident(r.Cmd.Process.Pid))
	if reads != tries {
		t.Error("the site is not reached")
	}
	// It knows discovery.MaxSites at most; the rest is garbage, which a busy machine collects late.
	if grew := resident(w.Cmd.Process.Pid) - watch; grew > 35 {
		t.Errorf("discover --watch grew by %.1f MB", grew)
	}
	if grew := resident(r.Cmd.Process.Pid) - served; grew > 20 {
		t.Errorf("the site grew by %.1f MB", grew)
	}
}
