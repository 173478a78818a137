//go:build e2e && linux

package lan

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
)

// ring is sites, each of which asks the next one.
type ring struct {
	*testing.T
	bed    *bed.Bed
	laptop harness.Laptop
	names  []string
	sites  []*harness.Site
	hosts  []string
}

// newRing starts the sites on hosts of a network of 254, each with a lamp and with routines that ask
// those of the same names at the next site, but where last has another step for them, by name and site.
func newRing(t *testing.T, network string, names, routines []string, last map[string]string) *ring {
	b := bed.New(t)
	r := &ring{T: t, bed: b, laptop: harness.NewLaptop(t, b.Host(network+".100/24")), names: names}
	const lamp = "  lamp: { driver: sim, model: relay, min_off: 0 }"
	for i, name := range names {
		r.hosts = append(r.hosts, b.Host(fmt.Sprintf("%s.%d/24", network, i+1)))
		r.sites = append(r.sites, harness.StartOn(t, r.hosts[i], harness.TempDir(t), name, lamp))
		r.laptop.Claim(t, r.sites[i], name)
	}
	for i, name := range names {
		next := (i + 1) % len(names)
		to := names[next]
		config := fmt.Sprintf("site: { name: %s }\ndevices:\n  climate: { driver: sim, model: climate }\n%s\nagents:\n  %s: { kind: remote, peer: \"%s\", may: \"read *, set lamp, ask *\" }\n", name, lamp, to, r.sites[next].DID(t))
		for _, routine := range routines {
			step := cmp.Or(last[routine+" "+name], fmt.Sprintf("{ agent: %s/%s, within: 3m }", to, routine))
			config += fmt.Sprintf("  %s: { kind: routine, may: \"set lamp, set %s, ask %[2]s\", steps: [ %s ] }\n", routine, to, step)
		}
		if err := os.WriteFile(filepath.Join(r.sites[i].Folder, "agentsite.yaml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		r.cli(i, "reload")
		text := grantText.FindString(r.laptop.MustCLI(t, "grant", r.sites[i].DID(t), "read *, set lamp, ask *", "--to-site", "--site", to))
		r.laptop.MustCLI(t, "sites", "connect", text, "--site", name)
	}
	for i := range r.sites {
		harness.WaitFor(t, 30*time.Second, "the next site is reached", func() bool { return strings.Contains(r.cli(i, "agents"), "it is asked by ") })
	}
	return r
}

// ask asks the first site's routine, for which every site denies what the ones behind it deny.
func (r *ring) ask(routine string) {
	r.Helper()
	began := time.Now()
	out, err := r.sites[0].CLI(r.T, "ask", routine)
	if err == nil || !strings.Contains(err.Error(), r.names[1]+"/"+routine+" has failed (denied)") {
		r.Errorf("%s has another end: %s %v", routine, out, err)
	}
	r.Logf("the ring of %s ended after %v", routine, time.Since(began).Round(10*time.Millisecond))
}

// tasks checks how many tasks of a routine a site has, and returns what it says of all.
func (r *ring) tasks(i, want int, routine string) string {
	r.Helper()
	says := r.cli(i, "tasks")
	if n := strings.Count(says, " "+routine+" "); n != want {
		r.Errorf("%s has %d tasks of %s, want %d:\n%s", r.names[i], n, routine, want, says)
	}
	return says
}

// dark checks that a site's lamp is off.
func (r *ring) dark(i int) {
	r.Helper()
	if strings.Contains(r.cli(i, "read", "lamp/relay"), " on ") {
		r.Errorf("the lamp of %s was moved", r.names[i])
	}
}

// TestLANRing: a task goes through three sites, over a cable that is out meanwhile and over a kill of
// the first asker, and is done once. In a ring, both of tasks and of a task that moves an output, the
// first site refuses what came through itself, and every journal shows the way.
func TestLANRing(t *testing.T) {
	t.Parallel() // it waits, mostly
	r := newRing(t, "10.78.0", []string{"ash", "birch", "cedar"}, []string{"next", "light", "push"}, map[string]string{
		"light cedar": "{ set: { lamp/relay: on }, for: 30s, wait: true }", "push cedar": "{ set: { ash/lamp/relay: on }, for: 30s }",
	})
	began := time.Now()
	r.cli(0, "call", "ask_agent", `{"agent":"light","wait_seconds":0}`, "--key", "light")
	harness.WaitFor(t, 20*time.Second, "the third site's lamp is on", func() bool { return strings.Contains(r.cli(2, "read", "lamp/relay"), " on ") })
	t.Logf("asked through two sites, and moved after %v", time.Since(began).Round(10*time.Millisecond))
	r.bed.IP(r.hosts[2], "link set eth0 down")
	r.sites[0].Kill(t)
	time.Sleep(5 * time.Second)
	r.sites[0] = harness.StartOn(t, r.hosts[0], r.sites[0].Folder, r.names[0], strings.SplitN(r.config(0), "climate }\n", 2)[1])
	time.Sleep(30 * time.Second)
	r.bed.IP(r.hosts[2], "link set eth0 up")
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
		r.ask(agent)
		for i := range r.sites {
			r.tasks(i, 1, agent)
		}
		r.has(1, 1, `did:key:\S+ through `+r.via(0)+`, `+agent+` +ask_agent .*"agent":"`+agent+`"`)
		r.has(2, 1, `did:key:\S+ through `+r.via(0, 1)+`, `+agent+` +ask_agent .*"agent":"`+agent+`"`)
		if says := r.cli(2, "tasks"); !strings.Contains(says, "through this site before") {
			t.Errorf("the last site does not say why:\n%s", says)
		}
	}
	r.has(2, 2, `\S+ +(ask_agent|switch_output) .*denied: ash says: `)
	r.has(0, 0, `did:key:\S+ through `)
	r.dark(0)
}

// TestLANRingBound: in a ring of more sites than a call may come through, the bound ends it: the last
// site that may be asked refuses to ask on, a task as well as a move, and the next one hears of nothing.
func TestLANRingBound(t *testing.T) {
	t.Parallel() // it waits, mostly
	names := []string{"ash", "birch", "cedar", "dogwood", "elm", "fig"}
	if len(names) != agents.MaxVia+2 {
		t.Fatalf("%d sites, and a call may come through %d", len(names), agents.MaxVia)
	}
	last := agents.MaxVia // asked through as many
	r := newRing(t, "10.79.0", names, []string{"next", "push"}, map[string]string{"push elm": "{ set: { fig/lamp/relay: on }, for: 30s }"})
	for _, agent := range []string{"next", "push"} {
		r.ask(agent)
		says, through := "", []int{}
		for i := range last + 1 {
			if says = r.tasks(i, 1, agent); i > 0 {
				r.has(i, 1, `did:key:\S+ through `+r.via(through...)+`, `+agent+` +ask_agent .*"agent":"`+agent+`"`)
			}
			through = append(through, i)
		}
		if want := fmt.Sprintf("this call came through %d sites and agents, and goes through no more", agents.MaxVia); !strings.Contains(says, want) {
			t.Errorf("%s does not name the bound:\n%s", names[last], says)
		}
		r.tasks(last+1, 0, agent)
	}
	r.has(last+1, 0, `(through |ask_agent|switch_output)`)
	r.dark(last + 1)
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
		r.Fatalf("%s: %v: %v", r.names[i], args, err)
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
		r.Errorf("the journal of %s has %d times %s, want %d:\n%s", r.names[i], n, pattern, want, text)
	}
}
