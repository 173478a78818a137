//go:build e2e && linux

package lan

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
)

// TestLANOwnersCard: a board whose configuration names its owner's key is the owner's at
// once: it is shown so, and reached by its name or taken over by its key. Where a name is
// claimed by two, neither is taken for the other.
func TestLANOwnersCard(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	anna, ben := harness.NewLaptop(t, b.Host("10.77.0.100/24")), harness.NewLaptop(t, b.Host("10.77.0.101/24"))
	card := strings.TrimSpace(anna.MustCLI(t, "identity", "--card", "-"))
	ben.MustCLI(t, "identity", "--card", "-")
	harness.StartOn(t, b.Host("10.77.0.1/24"), harness.TempDir(t), "shed", card)
	harness.StartOn(t, b.Host("10.77.0.2/24"), harness.TempDir(t), "attic", card)
	lost := harness.StartOn(t, b.Host("10.77.0.3/24"), harness.TempDir(t), "lost", card)
	harness.StartOn(t, b.Host("10.77.0.4/24"), harness.TempDir(t), "lost", card)
	harness.StartOn(t, b.Host("10.77.0.5/24"), harness.TempDir(t), "ours")

	yours := func(out string) (all []string) {
		for line := range strings.Lines(out) {
			if strings.Contains(line, `"yours":true`) {
				_, name, _ := strings.Cut(line, `"name":"`)
				name, _, _ = strings.Cut(name, `"`)
				all = append(all, name)
			}
		}
		return all
	}
	want := []string{"attic", "lost", "lost", "shed"}
	var out string
	for begun := time.Now(); time.Since(begun) < time.Minute; { // sites announce themselves once they are there
		if out = anna.MustCLI(t, "discover", "--json"); slices.Equal(yours(out), want) {
			break
		}
	}
	if got := yours(out); !slices.Equal(got, want) {
		t.Fatalf("hers are said to be %q\n%s", got, out)
	}
	if out := ben.MustCLI(t, "discover", "--json"); len(yours(out)) > 0 || strings.Count(out, "\n") != 5 {
		t.Errorf("Ben is told\n%s", out)
	}
	begun := time.Now()
	if _, ok := anna.Read(t, "shed"); !ok {
		t.Error("the site is not reached by its name")
	}
	t.Logf("the first reading by the name of a new site took %v", time.Since(begun).Round(time.Millisecond))
	if _, ok := ben.Read(t, "shed"); ok {
		t.Error("Ben reads it by its name")
	}
	anna.MustCLI(t, "claim", "attic", "--name", "loft")
	if _, ok := anna.Read(t, "loft"); !ok {
		t.Error("the site that was taken over by its name is not reached")
	}
	if _, err := anna.CLI(t, "--site", "lost", "points"); err == nil || !strings.Contains(err.Error(), "several sites") || !strings.Contains(err.Error(), lost.DID(t)) {
		t.Error("one of two sites of a name was taken:", err)
	}
	anna.MustCLI(t, "claim", lost.DID(t))
	if _, ok := anna.Read(t, "lost"); !ok {
		t.Error("the site that was taken over by its key is not reached")
	}
	if _, err := anna.CLI(t, "claim", "ours"); err == nil {
		t.Error("a site that nobody owns was taken over by its name")
	}
	var names []string
	for line := range strings.Lines(anna.MustCLI(t, "sites")) {
		names = append(names, strings.Fields(line)[0])
	}
	if slices.Sort(names[1:]); !slices.Equal(names[1:], []string{"loft", "lost", "shed"}) {
		t.Errorf("she knows %q", names)
	}
}

// TestLANAway: a command for a site that is away says what it tries, and ends soon after its time
// is over: a connection would be tried for two minutes.
func TestLANAway(t *testing.T) {
	t.Parallel()
	b := bed.New(t)
	host := b.Host("10.77.0.1/24")
	l := harness.NewLaptop(t, b.Host("10.77.0.100/24"))
	l.Claim(t, harness.StartOn(t, host, harness.TempDir(t), "shed"), "shed")
	b.IP(host, "link set eth0 down")
	back := make(chan error, 1)
	defer func() {
		go func() {
			_, err := l.CLI(t, "--site", "shed", "points", "--wait", "40s")
			back <- err
		}()
		time.Sleep(5 * time.Second)
		b.IP(host, "link set eth0 up")
		if err := <-back; err != nil {
			t.Error("it was waited for, and came back:", err)
		}
	}()
	const late = 20 * time.Second // on a machine that does much else
	for _, c := range []struct {
		flags []string
		wait  time.Duration
		says  string
	}{
		{nil, 4 * time.Second, "10.77.0.1:8474, this network"},
		{[]string{"--wait", "2s"}, 2 * time.Second, "for 2s in all"},
		{[]string{"--wait", "500ms"}, 500 * time.Millisecond, "--wait 30s"},
	} {
		for _, command := range [][]string{{"--site", "shed", "points"}, {"ping", "shed"}, {"identity", "--certificate", "--site", "shed"}} {
			begun := time.Now()
			_, err := l.CLI(t, append(command, c.flags...)...)
			took := time.Since(begun)
			t.Logf("%q %q after %v: %v", command, c.flags, took.Round(time.Millisecond), err)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 6 || command[0] != "identity" && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q %q: %v, not %q", command, c.flags, err, c.says)
			}
			if took > c.wait+late || command[0] != "identity" && took < c.wait/2 {
				t.Errorf("%q %q ended after %v", command, c.flags, took)
			}
		}
	}
}
