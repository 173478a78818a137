//go:build e2e && linux

package lan

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
)

// ring is three sites, each of which asks the next one.
type ring struct {
	*testing.T
	bed    *bed.Bed
	laptop harness.Laptop
	sites  [3]*harness.Site
	hosts  [3]string
}

var ringNames = [3]string{"ash", "birch", "cedar"}

// TestLANRing: a task goes through three sites, over a cable that is out meanwhile and over a kill of
// the first asker, and is done once. In a ring, both of tasks and of a task that moves an output, the
// first site refuses what came through itself, and every journal shows the way.
func TestLANRing(t *testing.T) {
	t.Parallel() // it waits, mostly
	b := bed.New(t)
	r := &ring{T: t, bed: b, laptop: harness.NewLaptop(t, b.Host("10.78.0.100/24"))}
	const lamp = "  lamp: { driver: sim, model: relay, min_off: 0 }"
	for i, name := range ringNames {
		r.hosts[i] = b.Host(fmt.Sprintf("10.78.0.%d/24", i+1))
		r.sites[i] = harness.StartOn(t, r.hosts[i], harness.TempDir(t), name, lamp)
		r.laptop.Claim(t, r.sites[i], name)
	}
	for i, name := range ringNames {
		to := (i + 1) % 3
		steps := map[string]string{}
		for _, agent := range []string{"next", "light", "push"} {
			steps[agent] = fmt.Sprintf("{ agent: %s/%s, within: 3m }", ringNames[to], agent)
		}
		if i == 2 {
			steps["light"] = "{ set: { lamp/relay: on }, for: 30s, wait: true }"
			steps["push"] = "{ set: { ash/lamp/relay: on }, for: 30s }"
		}
		config := fmt.Sprintf("site: { name: %s }\ndevices:\n  climate: { driver: sim, model: climate }\n%s\nagents:\n  %s: { kind: remote, peer: \"%s\", may: \"read *, set lamp, ask *\" }\n", name, lamp, ringNames[to], r.sites[to].DID(t))
		for agent, step := range steps {
			config += fmt.Sprintf("  %s: { kind: routine, may: \"set lamp, set %s, ask %[2]s\", steps: [ %s ] }\n", agent, ringNames[to], step)
		}
		if err := os.WriteFile(filepath.Join(r.sites[i].Folder, "agentsite.yaml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		r.cli(i, "reload")
		text := grantText.FindString(r.laptop.MustCLI(t, "grant", r.sites[i].DID(t), "read *, set lamp, ask *", "--to-site", "--site", ringNames[to]))
		r.laptop.MustCLI(t, "sites", "connect", text, "--site", name)
	}
	for i := range r.sites {
		harness.WaitFor(t, 30*time.Second, "the next site is reached", func() bool { return strings.Contains(r.cli(i, "agents"), "it is asked by ") })
	}

	began := time.Now()
	r.cli(0, "call", "ask_agent", `{"agent":"light","wait_seconds":0}`, "--key", "light")
	harness.WaitFor(t, 20*time.Second, "the third site's lamp is on", func() bool { return strings.Contains(r.cli(2, "read", "lamp/relay"), " on ") })
	t.Logf("asked through two sites, and moved after %v", time.Since(began).Round(10*time.Millisecond))
	b.IP(r.hosts[2], "link set eth0 down")
	r.sites[0].Kill(t)
	time.Sleep(5 * time.Second)
	r.sites[0] = harness.StartOn(t, r.hosts[0], r.sites[0].Folder, ringNames[0], strings.SplitN(r.config(0), "climate }\n", 2)[1])
	time.Sleep(30 * time.Second)
	b.IP(r.hosts[2], "link set eth0 up")
	up := time.Now()
	harness.WaitFor(t, 3*time.Minute, "the task is completed", func() bool {
		return strings.Contains(r.cli(0, "call", "ask_agent", `{"agent":"light","wait_seconds":0}`, "--key", "light"), `"state": "completed"`)
	})
	t.Logf("completed %v after the cable was in again", time.Since(up).Round(100*time.Millisecond))
	for i := range r.sites {
		r.has(i, 1, `ask_agent .*"agent":"light"`)
	}
	r.has(2, 1, `routine:light through `+r.via(0, 1)+`, did:key:\S+, light, task/\S+ +switch_output`)

	for _, agent := range []string{"next", "push"} {
		began := time.Now()
		out, err := r.sites[0].CLI(t, "ask", agent)
		if err == nil || !strings.Contains(err.Error(), ringNames[1]+"/"+agent+" has failed (denied)") {
			t.Errorf("the ring has another end: %s %v", out, err)
		}
		t.Logf("the ring of %s ended after %v", agent, time.Since(began).Round(10*time.Millisecond))
		for i := range r.sites {
			if n := strings.Count(r.cli(i, "tasks"), " "+agent+" "); n != 1 {
				t.Errorf("%s has %d tasks of %s", ringNames[i], n, agent)
			}
		}
		r.has(1, 1, `did:key:\S+ through `+r.via(0)+`, `+agent+` +ask_agent .*"agent":"`+agent+`"`)
		r.has(2, 1, `did:key:\S+ through `+r.via(0, 1)+`, `+agent+` +ask_agent .*"agent":"`+agent+`"`)
		if says := r.cli(2, "tasks"); !strings.Contains(says, "this call came through this site before") {
			t.Errorf("the last site does not say why:\n%s", says)
		}
	}
	r.has(2, 2, `\S+ +(ask_agent|switch_output) .*denied: ash says: this call came through this site before`)
	r.has(0, 0, `did:key:\S+ through `)
	if strings.Contains(r.cli(0, "read", "lamp/relay"), " on ") {
		t.Error("the ring moves the first site's lamp")
	}
}

func (r *ring) config(i int) string {
	text, err := os.ReadFile(filepath.Join(r.sites[i].Folder, "agentsite.yaml"))
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

func (r *ring) cli(i int, args ...string) string {
	r.Helper()
	out, err := r.sites[i].CLI(r.T, args...)
	if err != nil {
		r.Fatalf("%s: %v: %v", ringNames[i], args, err)
	}
	return out
}

// via returns the keys of sites, as a journal has them.
func (r *ring) via(sites ...int) string {
	var all []string
	for _, i := range sites {
		all = append(all, regexp.QuoteMeta(r.sites[i].DID(r.T)))
	}
	return strings.Join(all, ", ")
}

// has looks for so many lines in the journal of a site.
func (r *ring) has(i, want int, pattern string) {
	r.Helper()
	text := r.cli(i, "journal")
	if n := len(regexp.MustCompile(`(?m)^.*`+pattern+`.*$`).FindAllString(text, -1)); n != want {
		r.Errorf("the journal of %s has %d times %s, want %d:\n%s", ringNames[i], n, pattern, want, text)
	}
}
