//go:build e2e && linux

package lan

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

// TestLANSites: a rule of one site holds an output of another one by that site's grant, on a
// reading of a third. When the cable is out, the reading is unknown here, and the lease there ends
// by itself. When it is in again, the rule goes on. A link that nothing happens on costs few
// wake-ups.
func TestLANSites(t *testing.T) {
	t.Parallel() // it waits, mostly
	b := bed.New(t)
	l := harness.NewLaptop(t, b.Host("10.77.0.100/24"))
	const heater, lease = "  heater: { driver: sim, model: relay, min_off: 1s }\n  spare: { driver: sim, model: relay }", 20 * time.Second
	shedHost := b.Host("10.77.0.2/24")
	shed := harness.StartOn(t, shedHost, harness.TempDir(t), "shed", heater)
	hut := harness.StartOn(t, b.Host("10.77.0.3/24"), harness.TempDir(t), "hut")
	barn := harness.StartOn(t, b.Host("10.77.0.1/24"), harness.TempDir(t), "barn", fmt.Sprintf(`agents:
  shed: { kind: remote, peer: "%s", may: "read *, set heater max %v" }
  hut: { kind: remote, peer: "%s", may: "read climate" }
  frost:
    kind: rule
    may: set shed/heater
    when: hut/climate/temperature > -50 Cel and shed/climate/temperature > -50 Cel
    hold: { shed/heater/relay: on }
  blind: { kind: rule, may: set shed/heater, when: hut/climate/temperature > 90 Cel, hold: { shed/heater/relay: on }, priority: 1 }`, shed.DID(t), lease, hut.DID(t)))
	// What nothing happens on, beside a site without any link.
	plain := harness.StartOn(t, b.Host("10.77.0.4/24"), harness.TempDir(t), "plain", "  lamp: { driver: sim, model: relay }")
	idle := harness.StartOn(t, b.Host("10.77.0.5/24"), harness.TempDir(t), "idle", fmt.Sprintf(`  lamp: { driver: sim, model: relay }
agents:
  shed: { kind: remote, peer: "%s", may: "read *" }
  light: { kind: rule, may: set lamp, when: shed/spare/relay, hold: { lamp/relay: on } }`, shed.DID(t)))
	for name, r := range map[string]*harness.Site{"shed": shed, "hut": hut, "barn": barn, "plain": plain, "idle": idle} {
		l.Claim(t, r, name)
	}
	rule := func() string {
		out, err := barn.CLI(t, "rules")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "frost") {
				return line
			}
		}
		return out
	}
	wait := func(most time.Duration, want string) time.Duration {
		t.Helper()
		begun := time.Now()
		harness.WaitFor(t, most, want+"; the last was "+rule(), func() bool { return strings.Contains(rule(), want) })
		return time.Since(begun).Round(10 * time.Millisecond)
	}
	connect := func(here *harness.Site, name, there, may string) {
		text := grantText.FindString(l.MustCLI(t, "grant", here.DID(t), may, "--to-site", "--site", there))
		l.MustCLI(t, "sites", "connect", text, "--site", name)
	}
	connect(barn, "barn", "shed", "read *, set heater max 1h")
	connect(barn, "barn", "hut", "read *")
	connect(idle, "idle", "shed", "read spare")
	t.Logf("granted, and held after %v", wait(20*time.Second, "holds"))
	on := func() bool {
		out, err := shed.CLI(t, "read", "heater/relay")
		return err == nil && strings.Contains(out, " on ")
	}
	if why := l.MustCLI(t, "why", "heater/relay", "--site", "shed"); !regexp.MustCompile(`\(frost\), through (` + barn.DID(t) + `|the site barn), then frost`).MatchString(why) {
		t.Errorf("the shed does not name the agent:\n%s", why)
	}
	if out, err := shed.CLI(t, "journal"); err != nil || !regexp.MustCompile(`did:key:\S+ through (did:key:\S+|the site \S+), frost +switch_output`).MatchString(out) {
		t.Errorf("its journal does not name the agent: %s %v", out, err)
	}

	harness.WaitFor(t, 20*time.Second, "the idle link stands", func() bool {
		out, err := idle.CLI(t, "rules")
		return err == nil && strings.Contains(out, "the condition is false")
	})
	const rest, more = 20 * time.Second, 5
	sites := []*harness.Site{plain, idle, barn}
	var switches [3]float64
	for range 3 { // what else this machine does is no link's
		for i, r := range sites {
			switches[i] = -harness.VoluntarySwitches(t, r.Cmd.Process.Pid)
		}
		time.Sleep(rest)
		for i, r := range sites {
			switches[i] = (switches[i] + harness.VoluntarySwitches(t, r.Cmd.Process.Pid)) / rest.Seconds()
		}
		t.Logf("%.1f switches a second without a link, %.1f with an idle one (at most %d more), and %.1f with four of changing values", switches[0], switches[1], more, switches[2])
		if switches[1] <= switches[0]+more {
			break
		}
	}
	if switches[1] > switches[0]+more {
		t.Error("an idle link costs more, three times")
	}

	for range harness.Workload(2, 20) {
		b.IP(shedHost, "link set eth0 down")
		cut := time.Now()
		var ended, took time.Duration // whichever comes first
		harness.WaitFor(t, lease+11*time.Second, "the lease ends by itself, and the rule holds nothing", func() bool {
			if ended == 0 && !on() {
				ended = time.Since(cut)
			}
			if took == 0 && !strings.Contains(rule(), "holds") {
				took = time.Since(cut)
			}
			return ended > 0 && took > 0
		})
		if ended > lease+5*time.Second {
			t.Errorf("the lease ended after %v", ended)
		}
		wait(15*time.Second, "shed/climate/temperature is unknown")
		t.Logf("cut: the lease ended after %v (at most %v); not held any more here after %v; unknown after %v (at most 30 s)",
			ended.Round(10*time.Millisecond), lease, took.Round(10*time.Millisecond), time.Since(cut).Round(10*time.Millisecond))
		if all := time.Since(cut); all > 31*time.Second {
			t.Errorf("it is unknown after %v", all)
		}
		time.Sleep(5 * time.Second)
		if on() {
			t.Error("the heater is on without a link")
		}
		b.IP(shedHost, "link set eth0 up")
		t.Logf("back: held again after %v", wait(time.Minute, "holds"))
	}
	if strings.Contains(rule(), "blind") {
		t.Error(rule())
	}
}
