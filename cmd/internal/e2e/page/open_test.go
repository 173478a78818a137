//go:build e2e

package page

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// linkPattern finds a link to a page that counts once.
var linkPattern = regexp.MustCompile(`https?://\S+/#k=\S+`)

// opened is agentsite open or another command that prints a link, with a person at its terminal.
type opened struct {
	t      *testing.T
	Link   string
	cmd    *exec.Cmd
	keys   io.Writer
	screen *harness.LogBuffer
}

// openPage runs agentsite open as a person, whose machine has the site in a folder, "" for none.
func openPage(t *testing.T, p harness.Person, folder string, more ...string) *opened {
	t.Helper()
	if folder == "" {
		folder = harness.TempDir(t)
	}
	o := atTerminal(t, p, append([]string{"open", "--no-browser", "--data", folder}, more...)...)
	t.Cleanup(func() {
		o.cmd.Process.Signal(os.Interrupt)
		if err := o.cmd.Wait(); err != nil {
			t.Errorf("agentsite open ended with %v\n%s", err, o.screen)
		}
	})
	return o
}

// atTerminal runs agentsite as a person until it prints a link.
func atTerminal(t *testing.T, p harness.Person, args ...string) *opened {
	t.Helper()
	cmd := exec.Command(harness.Need(t, "the program", harness.Program), args...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+p.Folder)
	return started(t, cmd)
}

// started starts agentsite open, and waits for its link.
func started(t *testing.T, cmd *exec.Cmd) *opened {
	t.Helper()
	o := &opened{t: t, cmd: cmd, screen: &harness.LogBuffer{}}
	cmd.Stdout, cmd.Stderr = o.screen, o.screen
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.keys = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // where the test has not ended it
		cmd.Process.Kill()
		cmd.Wait()
	})
	harness.WaitFor(t, 30*time.Second, "it prints a link", func() bool {
		o.Link = linkPattern.FindString(o.screen.String())
		return o.Link != ""
	})
	return o
}

// pump is a device with an output whose moves an owner confirms.
const pump = "  pump: { driver: sim, model: relay, min_off: 0, confirm: owner }"

// openShed opens the page of a person who owns a site, named shed, with a relay box and more devices.
func openShed(t *testing.T, devices ...string) (*harness.Site, harness.Person, *opened, *tab) {
	t.Helper()
	site, invitation := harness.StartUnclaimed(t, harness.TempDir(t), devices...)
	p := harness.NewPerson(t)
	p.MustCLI(t, "claim", invitation.String())
	o := openPage(t, p, "")
	b := newBrowser(t)
	b.open(o.Link)
	b.live()
	return site, p, o, b
}

// another returns a further link.
func (o *opened) another() string {
	o.t.Helper()
	before := len(linkPattern.FindAllString(o.screen.String(), -1))
	o.typed("\n")
	var all []string
	harness.WaitFor(o.t, 10*time.Second, "it prints another link", func() bool {
		all = linkPattern.FindAllString(o.screen.String(), -1)
		return len(all) > before
	})
	return all[before]
}

func (o *opened) typed(text string) {
	o.t.Helper()
	if _, err := io.WriteString(o.keys, text); err != nil {
		o.t.Fatal(err)
	}
}

// asked waits until the terminal has asked n questions, and returns what it shows.
func (o *opened) asked(n int) string {
	o.t.Helper()
	harness.WaitFor(o.t, time.Minute, "the terminal asks", func() bool { return strings.Count(o.screen.String(), "Press Enter") == n })
	return o.screen.String()
}
