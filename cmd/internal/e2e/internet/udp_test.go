//go:build e2e && linux

package internet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
)

// TestInternetNoUDP: a site and its owner are in offices that block outbound UDP, and know only the
// relay's address for QUIC. They connect over TCP, and the site ends on request, whatever dials are
// pending.
func TestInternetNoUDP(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	f.relay.Addresses = slices.DeleteFunc(f.relay.Addresses, func(at string) bool { return !strings.Contains(at, "/quic-v1/") })
	if len(f.relay.Addresses) == 0 {
		t.Fatal("the relay tells no address for QUIC")
	}
	f.realm = f.newRealm(t, "office")
	if !slices.ContainsFunc(f.realm.Relays, func(at string) bool { return strings.Contains(at, "/tcp/8475/") }) {
		t.Errorf("for others it is %q, and nothing for TCP", f.realm.Relays)
	}
	f.realm.Relays = f.relay.Addresses // as written down by those who know no better
	here, there := f.Home(bed.Preserving), f.Home(bed.Preserving)
	here.NoUDP()
	there.NoUDP()
	on := here.Host()
	s := f.site(t, on)
	l := f.laptop(t, there.Host(), harness.NewPerson(t))
	begun := time.Now()
	harness.WaitFor(t, 60*time.Second, "the site is claimed", func() bool {
		_, err := l.CLI(t, "claim", s.Invitation(t).String())
		return err == nil
	})
	t.Logf("claimed %v after both began", time.Since(begun).Round(10*time.Millisecond))
	begun = time.Now()
	if out := l.MustCLI(t, "--site=shed", "read", "den/temperature"); !strings.Contains(out, "°C") {
		t.Errorf("read says %s", out)
	}
	t.Logf("read in %v", time.Since(begun).Round(10*time.Millisecond))
	l.MustCLI(t, "--site=shed", "set", "lamp/relay", "on", "--for", "1m")

	ends := func(s *harness.Site) time.Duration {
		begun := time.Now()
		s.Stop(t)
		return time.Since(begun)
	}
	took := []time.Duration{ends(s)}
	for i := range harness.Workload(4, 100) { // while it looks for its relay, at all moments of that
		s := f.site(t, on)
		time.Sleep(time.Duration(i%10) * 7 * time.Second / 4)
		took = append(took, ends(s))
	}
	home := f.Home(bed.Preserving) // whose router drops UDP only while the relay is connected by it
	s = f.site(t, home.Host())
	harness.WaitFor(t, 60*time.Second, "the site is reached", func() bool {
		_, err := l.CLI(t, "--peer="+s.DID(t), "ping", "-c1")
		return err == nil
	})
	home.NoUDP()
	took = append(took, ends(s))
	harness.LogDurations(t, "SIGTERM, and ended (at most 10 s)", took)
	if slowest := slices.Max(took); slowest > 10*time.Second {
		t.Errorf("the site took %v to end", slowest)
	}
}
