package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// TestProgress: a quick operation shows nothing, and a longer one shows a line within the width, which is removed at
// the end and while other lines are printed.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var quick, slow strings.Builder
		p := newProgress(&quick, 40, true, "one")
		time.Sleep(progressDelay / 2)
		p.end()
		if quick.Len() > 0 {
			t.Errorf("it printed %q", quick.String())
		}

		p = newProgress(&slow, 40, false, "searching "+strings.Repeat("é", 60))
		time.Sleep(time.Second)
		p.hold(func() { slow.WriteString("found\n") })
		p.say("ended soon")
		time.Sleep(2 * time.Second)
		p.end()
		text := slow.String()
		before, after, found := strings.Cut(text, "found\n")
		if !found || !strings.HasSuffix(before, clearLine) || !strings.HasSuffix(after, clearLine) {
			t.Errorf("%q", text)
		}
		for _, want := range []string{"| searching", "/ ended soon", "(2 s)"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in %q", want, text)
			}
		}
		for line := range strings.SplitSeq(text, clearLine) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "found\n")); n > 40 {
				t.Errorf("%d columns: %q", n, line)
			}
		}
	})
}
