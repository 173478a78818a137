//go:build e2e && linux

package mdns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
)

// TestAvahi: a program that nobody here wrote understands us, and we it.
func TestAvahi(t *testing.T) {
	b := newBed(t)
	a := b.Avahi(b.Host("10.77.0.50/24"), "taken")
	key := identity.New()
	greenhouse, taken := b.Host("10.77.0.1/24 fd77::1/64"), b.Host("10.77.0.2/24")
	site := b.announce(greenhouse, "greenhouse", string(key.PEM()))

	line := a.Until(site.label, "avahi-browse -r -p -t _agentsite._tcp | grep ^=")
	for _, want := range []string{site.label + ".local", ";8473;", `"path=/mcp"`, `"id=` + key.ID().PeerID() + `"`, `"name=greenhouse"`, `"r0=`} {
		if !strings.Contains(line, want) {
			t.Errorf("avahi-browse has no %s: %s", want, line)
		}
	}
	for _, what := range []string{"_wot._tcp", "_directory._sub._wot._tcp"} {
		line = a.Until(site.label, "avahi-browse -r -p -t "+what+" | grep ^=")
		for _, want := range []string{site.label + ".local", ";8473;", `"td=/.well-known/wot"`, `"type=Directory"`, `"scheme=https"`} {
			if !strings.Contains(line, want) {
				t.Errorf("avahi-browse %s has no %s: %s", what, want, line)
			}
		}
	}
	if line = a.Until(site.label, "avahi-browse -r -p -t _a2a._tcp | grep ^="); !strings.Contains(line, `"card=/.well-known/agent-card.json"`) {
		t.Errorf("avahi-browse has no card: %s", line)
	}
	for _, name := range []string{site.label, "greenhouse"} {
		a.Until("10.77.0.1", "avahi-resolve -4 -n "+name+".local")
		a.Until("fd77::1", "avahi-resolve -6 -n "+name+".local")
	}

	// A name that somebody has stays theirs.
	other := b.announce(taken, "taken")
	a.Until("10.77.0.2", "avahi-resolve -4 -n "+other.label+".local")
	time.Sleep(2 * time.Second) // its probes are over
	if got := a.Until("taken.local", "avahi-resolve -4 -n taken.local"); !strings.Contains(got, "10.77.0.50") {
		t.Errorf("taken.local: %s", got)
	}
	find := b.start(b.Host("10.77.0.100/24"), "find")
	find.all(2, 5*time.Second)
	find.end()
	got := <-b.start(b.Host("10.77.0.101/24"), "ask", "10.77.0.101:0", "10.77.0.2:5353", "taken.local.", "A").lines
	if got != "0 []" {
		t.Errorf("the site answers for a name that another has: %s", got)
	}

	site.end()
	a.Until("gone", "avahi-browse -p -t _agentsite._tcp | grep -q "+site.label+" || echo gone")
	a.Until("gone", "avahi-browse -p -t _wot._tcp | grep -q "+site.label+" || echo gone")
	a.Until("gone", "avahi-browse -p -t _directory._sub._wot._tcp | grep -q "+site.label+" || echo gone")
	a.Until("gone", "avahi-browse -p -t _a2a._tcp | grep -q "+site.label+" || echo gone")
	a.Until("Failed", "avahi-resolve -4 -n greenhouse.local")
}

// TestAvahiAnnounces: a site announced by avahi is found, and its end is noticed.
func TestAvahiAnnounces(t *testing.T) {
	b := newBed(t)
	a := b.Avahi(b.Host("10.77.0.50/24"), "debian")
	record := newRecord(identity.New(), "greenhouse")
	_, text, err := serviceOf(record)
	if err != nil {
		t.Fatal(err)
	}
	label := discovery.Label(record.Site)
	publish := fmt.Sprintf("avahi-publish -s %s _agentsite._tcp 8473 %s", label, strings.Join(text, " "))
	find := b.start(b.Host("10.77.0.100/24"), "find")
	pid := a.Begin(publish)
	at := netip.MustParseAddr("10.77.0.50")
	_, took := find.await(5*time.Second, "what avahi announces, at each of its addresses", func(e event) bool {
		return e.Label == label && slices.Contains(e.At, at)
	})
	a.Run("kill " + pid)
	_, missed := find.await(5*time.Second, "it goes", gone(label))
	t.Logf("found after %v, and gone after %v", took.Round(time.Millisecond), missed.Round(time.Millisecond))
}
