//go:build e2e

package access

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/transport/mcp/client"
)

// TestRate: an output with a rate of ten an hour is not moved an eleventh time, by the grantee or
// by its delegates, with the site killed and restarted now and then.
func TestRate(t *testing.T) {
	data, port := harness.TempDir(t), harness.FreePort(t)
	begin := func() *harness.Site {
		r := harness.StartHTTPSAt(t, data, "127.0.0.1:"+port)
		if _, err := r.CLI(t, "clock", "--set"); err != nil { // what acts until a time needs one
			t.Fatal(err)
		}
		return r
	}
	r := begin()
	ann, ben, cleo, dora := harness.NewPerson(t), harness.NewPerson(t), harness.NewPerson(t), harness.NewPerson(t)
	i := r.Invitation(t)
	ann.MustCLI(t, "claim", i.String())
	did := func(p harness.Person) string { return p.Key(t).ID().String() }
	pass := ann.MustCLI(t, "grant", did(ben), "set box 10/h", "--site", "shed")
	ben.MustCLI(t, "accept", pass)
	cleo.MustCLI(t, "accept", ben.MustCLI(t, "delegate", "shed", did(cleo), "set box 10/h"))
	dora.MustCLI(t, "accept", cleo.MustCLI(t, "delegate", "shed", did(dora), "set box"))

	// dialled is how each of them reaches the site; the first contact shows the grant.
	dialled := func() (all []*client.Client) {
		for _, p := range []harness.Person{ben, cleo, dora} {
			t.Setenv("XDG_CONFIG_HOME", p.Folder)
			c, err := peer.Dial(peer.Target{Site: "shed", Version: "e2e"})
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			all = append(all, c.Client)
		}
		return all
	}
	var moved, used atomic.Int64
	move := func(c *client.Client) {
		c.Ask(t.Context(), "release_output", []byte(`{"output":"box/relay"}`)) // a renewal would not be charged
		_, err := c.Ask(t.Context(), "switch_output", []byte(`{"output":"box/relay","on":true,"for_seconds":1}`))
		var refused *client.ToolError
		switch {
		case err == nil:
			moved.Add(1)
		case errors.As(err, &refused) && strings.Contains(err.Error(), "rate is used up"):
			used.Add(1)
		}
	}
	for start := range 8 {
		all := dialled()
		harness.WaitFor(t, time.Minute, "the relay may move after a start", func() bool {
			before := moved.Load() + used.Load()
			move(all[start%len(all)])
			return moved.Load()+used.Load() > before
		})
		var moving sync.WaitGroup
		answered := make(chan struct{}, len(all))
		for _, c := range all[:1+start%len(all)] {
			moving.Go(func() { move(c); answered <- struct{}{} })
		}
		if start%2 == 0 {
			<-answered
		}
		r.Kill(t) // in the middle of them
		moving.Wait()
		r = begin()
	}
	for _, c := range dialled() {
		before := used.Load()
		harness.WaitFor(t, time.Minute, "the rate is used up", func() bool { move(c); return used.Load() > before })
	}
	text, err := r.CLI(t, "journal", "--limit", "1000", "--json")
	if err != nil {
		t.Fatal(err)
	}
	begun := 0 // what a kill left without an answer may have moved
	for line := range strings.Lines(text) {
		if strings.Contains(line, `"tool":"switch_output"`) && (strings.Contains(line, `"outcome":"done"`) || strings.Contains(line, `"outcome":"no result"`)) {
			begun++
		}
	}
	t.Logf("%d moves were begun, %d told of, %d refused", begun, moved.Load(), used.Load())
	if begun > 10 || begun < 5 || moved.Load() > int64(begun) {
		t.Errorf("it moved %d times:\n%s", begun, text)
	}
}
