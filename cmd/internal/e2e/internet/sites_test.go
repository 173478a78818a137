//go:build e2e && linux

package internet

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
)

var grantText = regexp.MustCompile(`agentsite://\S+/grant\.\S+`)

// TestInternetSites: a rule of a site behind one router holds an output of a site behind another
// one, by a relay. When the other router loses its line, that is unknown here within half a minute
// and the lease there ends; then the rule goes on.
func TestInternetSites(t *testing.T) {
	w := newWay(t, "relayed")
	config := fmt.Sprintf(`site: { name: barn }
devices: { den: { driver: sim, model: climate } }
internet: { realm: "%s", relays: ["%s"] }
agents:
  shed: { kind: remote, peer: "%s", may: "read *, set lamp max 20s" }
  light: { kind: rule, may: set shed/lamp, when: shed/den/temperature > -50 Cel, hold: { shed/lamp/relay: on } }
`, w.realm.Realm, strings.Join(w.relay.Addresses, `", "`), w.site.DID(t))
	barn := harness.StartIn(t, harness.TempDir(t), config, nil, bed.On(w.from.Host(), harness.Program, "run", "--listen-peers", ":8475")...)
	harness.WaitFor(t, time.Minute, "the site is reached", func() bool {
		_, err := w.ann.CLI(t, w.peer, "ping", "-c1")
		return err == nil
	})
	w.ann.MustCLI(t, "claim", w.site.Invitation(t).String())
	text := grantText.FindString(w.ann.MustCLI(t, "grant", barn.DID(t), "read *, set lamp max 1h", "--to-site", "--site=shed"))
	if out, err := barn.CLI(t, "sites", "connect", text); err != nil {
		t.Fatal(out, err)
	}
	wait := func(most time.Duration, want string) time.Duration {
		t.Helper()
		begun := time.Now()
		harness.WaitFor(t, most, want, func() bool {
			out, err := barn.CLI(t, "rules")
			return err == nil && strings.Contains(out, want)
		})
		return time.Since(begun).Round(10 * time.Millisecond)
	}
	t.Logf("granted, and held by a relay after %v", wait(time.Minute, "holds"))
	if why, err := w.site.CLI(t, "why", "lamp/relay"); err != nil || !regexp.MustCompile(`\(light\), through (`+barn.DID(t)+`|the site barn), then light`).MatchString(why) {
		t.Errorf("the shed does not name the agent: %v\n%s", err, why)
	}
	w.home.Cut(true)
	cut := time.Now()
	wait(40*time.Second, "is unknown")
	unknown := time.Since(cut)
	harness.WaitFor(t, 25*time.Second, "the lease ends by itself", func() bool {
		out, err := w.site.CLI(t, "read", "lamp/relay")
		return err == nil && strings.Contains(out, " off ")
	})
	t.Logf("cut: unknown after %v (at most 30 s), and off after %v at the latest", unknown.Round(10*time.Millisecond), time.Since(cut).Round(10*time.Millisecond))
	if unknown > 31*time.Second {
		t.Error("it is unknown late")
	}
	w.home.Cut(false)
	t.Logf("back: held again after %v", wait(3*time.Minute, "holds"))
}
