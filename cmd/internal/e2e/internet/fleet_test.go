//go:build e2e && linux

package internet

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/service"
	"agentsite/discovery/bed"
)

// fleetSites is the number of sites of TestFleet, behind fleetHomes routers.
const (
	fleetSites = 50
	fleetHomes = 3
)

// TestFleet has fifty sites behind three routers, which one owner asks, changes and updates by one line. One that hangs
// and three that have ended delay no other. It takes more than 20 s because all are claimed first, and a version proves
// itself in 15.
func TestFleet(t *testing.T) {
	f := newFar(t)
	var hosts []string
	for range fleetHomes {
		hosts = append(hosts, f.Home(bed.Preserving).Host())
	}
	laptop := harness.NewLaptop(t, f.Home(bed.Preserving).Host())
	laptop.JoinRealm(t, f.realm)

	channel := service.NewChannel(t, f.relay.Host, f.relay.IP)
	pkg, program := channel.Build(t, fleetVersion, fleetSequence)
	sites := make([]*service.Service, fleetSites)
	begun := time.Now()
	atOnce(t, func(i int) {
		sites[i] = service.Start(t, pkg, hosts[i%fleetHomes], f.fleetConfig(i, ""),
			"--listen", "127.0.0.1:0", "--listen-peers", fmt.Sprintf(":%d", 8500+i))
		harness.WaitFor(t, time.Minute, fleetName(i)+" is claimed", func() bool {
			invitation, err := sites[i].Invitation()
			if err == nil {
				_, err = laptop.CLI(t, "claim", invitation.String(), "--name", fleetName(i))
			}
			return err == nil
		})
	})
	t.Logf("started and claimed in %v", time.Since(begun).Round(time.Millisecond))

	states := func(want int) (found map[string]int) {
		t.Helper()
		out, code := fleetCLI(t, laptop, "fleet", "status")
		if code != want {
			t.Fatalf("exit code %d:\n%s", code, out)
		}
		found = make(map[string]int)
		for _, m := range regexp.MustCompile(`(?m)^site-\d\d +(\S+)`).FindAllStringSubmatch(out, -1) {
			found[m[1]]++
		}
		return found
	}
	const limit = 5 * time.Second
	measure := func(code, well int) func() time.Duration {
		return func() time.Duration {
			begun := time.Now()
			if found := states(code); found["well"] != well || found["offline"] != fleetSites-well {
				t.Errorf("%v, not %d well", found, well)
			}
			return time.Since(begun)
		}
	}
	t.Logf("all in %v", harness.CheckOrdinaryDeadline(t, limit, measure(0, fleetSites)).Round(time.Millisecond))

	out, code := fleetCLI(t, laptop, "fleet", "allow", carla, "read den/temperature", "--name", "carla", patience)
	if n := strings.Count(out, " done "); code != 0 || n != fleetSites {
		t.Fatalf("allowed at %d sites, exit code %d:\n%s", n, code, out)
	}
	out, code = fleetCLI(t, laptop, "fleet", "read", "den/temperature", patience)
	if n := strings.Count(out, "°C"); code != 0 || n != fleetSites {
		t.Fatalf("%d sites were read, exit code %d:\n%s", n, code, out)
	}
	if out, code = fleetCLI(t, laptop, "fleet", "read", "dne/temperature", patience); code != 2 {
		t.Errorf("a point that no site has: exit code %d:\n%s", code, out)
	}
	out, code = fleetCLI(t, laptop, "fleet", "journal", "--limit", "500", patience)
	for i := range fleetSites {
		if !regexp.MustCompile(`(?m)^` + fleetName(i) + ` .* you +grant `).MatchString(out) {
			t.Errorf("%s does not say who granted it, exit code %d:\n%s", fleetName(i), code, out)
		}
	}

	// What breaks two of them is rolled back there, and stays at the others.
	broken := []int{17, 42}
	folder := harness.TempDir(t)
	for i := range fleetSites {
		more := ", lamp: { driver: sim, model: relay }"
		if slices.Contains(broken, i) {
			more += ", attic: { driver: 'kernel:lm75', bus: i2c-999, address: 0x48 }"
		}
		if err := os.WriteFile(
			filepath.Join(folder, fleetName(i)+".yaml"), []byte(f.fleetConfig(i, more)), 0o600,
		); err != nil {
			t.Fatal(err)
		}
	}
	begun = time.Now()
	out, code = fleetCLI(t, laptop, "fleet", "apply", folder, "--trial", "20s")
	t.Logf("a configuration in %v", time.Since(begun).Round(time.Millisecond))
	if kept := len(
		regexp.MustCompile(`(?m)^site-\d\d +kept`).FindAllString(out, -1),
	); code != 8 || kept != fleetSites-len(broken) {
		t.Errorf("%d sites kept it, exit code %d:\n%s", kept, code, out)
	}
	for _, i := range broken {
		if !regexp.MustCompile(`(?m)^` + fleetName(i) + ` +rolled back +attic is missing`).MatchString(out) {
			t.Errorf("%s is not rolled back:\n%s", fleetName(i), out)
		}
	}
	for i, s := range sites {
		text, err := os.ReadFile(s.Config)
		if back := string(text) == f.fleetConfig(i, ""); err != nil || back != slices.Contains(broken, i) {
			t.Errorf("%s has:\n%s%v", fleetName(i), text, err)
		}
	}

	// The new version does not run at one of the five sites of the second wave: no third one begins.
	channel.Release(t, fleetNext, fleetSequence+1,
		service.Renamed(program, fleetVersion, fleetNext, fleetSequence, fleetSequence+1))
	const bad = 3
	sites[bad].Broken.Store(true)
	begun = time.Now()
	out, code = fleetCLI(t, laptop, "fleet", "update")
	t.Logf("an update in %v", time.Since(begun).Round(time.Millisecond))
	if code != 8 {
		t.Errorf("exit code %d", code)
	}
	for i, s := range sites {
		want, programs := "untouched +"+fleetVersion, 0
		switch {
		case i == bad:
			want, programs = "rolled back +"+fleetVersion+" +"+fleetNext+" did not run well there", 1
		case i < 6:
			want, programs = "updated +"+fleetNext, 1
		}
		if !regexp.MustCompile(`(?m)^` + fleetName(i) + ` +` + want + ` *$`).MatchString(out) {
			t.Errorf("%s is not %q", fleetName(i), want)
		}
		if n := strings.Count(s.Log.String(), "update --install: "); (n > 1) != (programs > 0) {
			t.Errorf("%s was started %d times", fleetName(i), n)
		}
	}
	if t.Failed() {
		t.Log(out)
	}

	// The first ones are asked first.
	sites[0].Signal(syscall.SIGSTOP)
	t.Cleanup(func() { sites[0].Signal(syscall.SIGCONT) })
	for _, s := range sites[1:4] {
		s.Kill()
	}
	took := harness.CheckOrdinaryDeadline(t, limit, measure(8, fleetSites-4))
	t.Logf("with one that hangs and three that have ended in %v", took.Round(time.Millisecond))
}

// The versions of the sites.
const (
	fleetVersion, fleetNext = "v9.9.1", "v9.9.2"
	fleetSequence           = 9900001
)

// patience is the timeout of calls that are not measured.
const patience = "--timeout=30s"

// carla is a key that owns nothing.
const carla = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"

func fleetName(i int) string { return fmt.Sprintf("site-%02d", i) }

// fleetConfig returns the configuration of a site with more devices.
func (f *far) fleetConfig(i int, more string) string {
	return fmt.Sprintf("site: { name: %s }\nhttp: { https: none }\ndevices: { den: { driver: sim, model: climate }%s }\n"+
		"internet: { realm: \"%s\", relays: [\"%s\"] }\n", fleetName(i), more, f.realm.Realm,
		strings.Join(f.relay.Addresses, `", "`))
}

// atOnce calls do for each site, a few at the same time.
func atOnce(t *testing.T, do func(i int)) {
	t.Helper()
	const few = 5
	var running sync.WaitGroup
	for part := range few {
		running.Go(func() {
			for i := part; i < fleetSites; i += few {
				do(i)
			}
		})
	}
	running.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// fleetCLI runs a command, and returns its output and its exit code.
func fleetCLI(t *testing.T, l harness.Laptop, args ...string) (string, int) {
	t.Helper()
	cmd := l.Command(t.Context(), slices.Clone(args)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exits := err.(*exec.ExitError); err != nil && !exits {
		t.Fatal(err)
	}
	if s := errs.String(); s != "" {
		t.Logf("%q: %s", args, s)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}
