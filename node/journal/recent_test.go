package journal

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node"
)

func moveOf(who, output string, seconds int) Call {
	return Call{Who: who, Tool: "switch_output", Args: fmt.Appendf(nil, `{"for_seconds":%d,"on":true,"output":%q}`, seconds, output)}
}

func (j *Journal) made(t testing.TB, c Call, o Outcome) {
	t.Helper()
	ticket, _, err := j.Begin(c)
	if err == nil {
		err = j.End(ticket, o)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// words renders what the journal has about an output.
func words(j *Journal, about string) string {
	var all []string
	for _, r := range j.recent.about(about, time.Now()) {
		all = append(all, fmt.Sprintf("%s %s %s×%d", r.Who, strings.Join(append([]string{r.Tool}, r.Via...), "<"), r.Outcome, r.Count))
	}
	return strings.Join(all, ", ")
}

// TestRecent asks for the last calls of this run and, after a kill, of an earlier one: the same,
// except calls that were not known to have ended.
func TestRecent(t *testing.T) {
	folder := t.TempDir()
	j := open(t, folder)
	j.made(t, moveOf("ann", "fan/on", 60), Outcome{})
	j.made(t, moveOf("ann", "fan/on", 60), Outcome{}) // again
	refused := moveOf("bob", "fan/on", 60)
	refused.Via = []string{"llm:house", "rule:frost"}
	j.made(t, refused, Outcome{Fault: "busy", Says: "held by ann"})
	j.Add(Call{Who: "ann", Tool: "release_output", Args: []byte(`{"output":"fan/on"}`)}, Outcome{})
	j.Add(Call{Who: "own", Tool: "take-over", Args: []byte(`{"name":"fan/on"}`)}, Outcome{})
	j.Add(Call{Who: "own", Tool: "emergency_stop", Args: []byte(`{}`)}, Outcome{})
	j.Add(Call{Who: "own", Tool: "grant", Args: []byte(`{"name":"did: read fan/on"}`)}, Outcome{})
	if _, _, err := j.Begin(moveOf("ann", "fan/on", 5)); err != nil {
		t.Fatal(err)
	}
	j.made(t, moveOf("ann", "pump/on", 5), Outcome{})
	j.mu.Lock()
	if err := j.writeWaiting(); err != nil {
		t.Fatal(err)
	}
	j.mu.Unlock()
	const ended = "ann switch_output done×2, bob switch_output<llm:house<rule:frost busy×1, ann release_output done×1, own take-over done×1, ann switch_output "
	for about, want := range map[string]string{
		"fan/on": ended + "×1", "pump/on": "ann switch_output done×1", "emergency_stop": "own emergency_stop done×1", "grant": "", "other/on": "",
	} {
		if got := words(j, about); got != want {
			t.Errorf("about %s: %s, want %s", about, got, want)
		}
	}
	j.crash()
	j = open(t, folder)
	defer j.crash()
	// Calls added without the disk follow those that had waited for it.
	const again = "ann switch_output done×2, bob switch_output<llm:house<rule:frost busy×1, ann switch_output unknown_outcome×1, ann release_output done×1, own take-over done×1"
	if got := words(j, "fan/on"); got != again {
		t.Errorf("after a kill: %s, want %s", got, again)
	}
	if got := words(j, "emergency_stop"); got != "own emergency_stop done×1" {
		t.Errorf("after a kill, stops: %s", got)
	}
}

// TestRecentBounded calls about many outputs with long texts.
func TestRecentBounded(t *testing.T) {
	all := new(recent)
	long := strings.Repeat("x", 10*maxShortSays)
	for i := range 5000 {
		c := moveOf("did:key:z6Mk"+strings.Repeat("z", 44), fmt.Sprintf("relay-%d/on", i%300), i)
		c.Via = []string{long[:64], "rule:a"}
		all.begin(uint64(i), c, time.Now())
		if i%7 != 0 {
			all.end(uint64(i), Outcome{Fault: "offline", Says: long}, time.Now())
		}
		all.add(c, Outcome{}, time.Now(), 1)
	}
	all.recalled()
	count, size := 0, 0
	for about, calls := range all.calls {
		if len(calls) > maxRecent || len(calls) == 0 {
			t.Errorf("%s has %d calls", about, len(calls))
		}
		for _, r := range calls {
			count, size = count+1, size+r.size()
			if len(r.Says) > maxShortSays {
				t.Errorf("%d bytes of a sentence", len(r.Says))
			}
		}
	}
	if size != all.bytes || size > maxRecentBytes || len(all.open) > 0 || count < 80 {
		t.Errorf("%d calls of %d bytes, counted as %d, and %d open", count, size, all.bytes, len(all.open))
	}
}

// TestRecentDoesNotWait asks while the journal waits for its disk.
func TestRecentDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder()
		if r.Recent("fan/on") != nil {
			t.Error("a journal that is not open has calls")
		}
		r.Open(t.TempDir())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		r.Add(moveOf("ann", "fan/on", 1), Outcome{})
		r.mu.Lock()
		if got := r.Recent("fan/on"); len(got) != 1 || got[0].Outcome != node.Done {
			t.Errorf("%+v", got)
		}
		r.mu.Unlock()
		cancel()
		<-done
	})
}

// TestSaysIsUTF8: a sentence that is cut or broken can be read again.
func TestSaysIsUTF8(t *testing.T) {
	folder := t.TempDir()
	j := open(t, folder)
	j.made(t, call(""), Outcome{Fault: "offline", Says: strings.Repeat("x", maxSays-1) + "ü"})
	j.made(t, call(""), Outcome{Fault: "offline", Says: "a\xffb"})
	j.crash()
	if got := entries(t, folder); len(got) != 4 || got[1].Says != strings.Repeat("x", maxSays-len("…"))+"…" || got[3].Says != "a\ufffdb" {
		t.Errorf("%+v", got)
	}
}
