package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"agentsite/node/acts"
)

// TestNamesOfPrograms: what a program calls itself is told from what the site says of it.
func TestNamesOfPrograms(t *testing.T) {
	const calls, quoted = `Claude, claude.ai) ("x`, `"Claude, claude.ai) (\"x"`
	who := tokenName(acts.Granted{Token: "evil", Client: calls, Host: "evil.example"})
	if !strings.HasSuffix(who, " ("+quoted+", evil.example)") {
		t.Error(who)
	}
	var out bytes.Buffer
	a := &app{out: &output{Writer: &out}}
	steps := []acts.PublicStep{{Client: calls, Step: "/token"}, {Client: calls, Step: "/token", Err: "no"}}
	err := a.sayPublic(publicResult{PublicState: acts.PublicState{SignIns: steps}})
	if err != nil || strings.Count(out.String(), ": "+quoted+" ") != 2 {
		t.Errorf("%v, %s", err, &out)
	}
}

// TestWishKeepsTheEnd: the command that allows a call leaves the permission the end that it has.
func TestWishKeepsTheEnd(t *testing.T) {
	for want, until := range map[string]time.Time{
		" --until 2030-01-02T03:04:05Z": time.Unix(1893553445, 0), " --until never": {},
	} {
		var out bytes.Buffer
		s := &session{app: &app{out: &output{Writer: &out}}}
		w := acts.Wish{Handle: strings.Repeat("A", 26), Token: "claude", May: "read *, set pump max 2m", Until: until}
		if err := s.printWish(w); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "token change claude '"+w.May+"'"+want+"\n") {
			t.Errorf("%q is not in %s", want, &out)
		}
	}
}
