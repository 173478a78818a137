package main

import (
	"io"
	"strings"
	"testing"

	"agentsite/node/config"

	"golang.org/x/sys/unix"
)

// TestRemarks: a terminal gets a long error, or sentence, in lines that fit it, but for what is to be copied,
// which is whole in one; a pipe gets it in one line.
func TestRemarks(t *testing.T) {
	const width = 60
	whole := []string{"agentsite --data '/tmp/a folder/of mine' read", "sudo chmod 600 /etc/agentsite/secret",
		`"a name with: blanks"`, "{ set: { g/vent: 50 }, for: 1m }", "/a/path/that/is/long/enough/for/a/line/of/its/own/and/more/of/it/yet/again/and"}
	text := "the site's folder isn't used: it's " + strings.Join(whole, "; or else the owner's way, which is to write ") +
		"; that is all there is to say of it \" here"
	mistake := &config.Error{File: "a.yaml", Line: 2, Column: 3, Err: usagef("%s", text), Source: strings.Repeat("x ", 100)}
	for _, err := range []error{usagef("%s", text), mistake} {
		master, slave, failed := openTerminal()
		if failed != nil {
			t.Fatal(failed)
		}
		if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: 24}); err != nil {
			t.Fatal(err)
		}
		printed := make(chan string)
		go func() {
			all, _ := io.ReadAll(master) // it ends with an error, once the other side is closed
			printed <- strings.ReplaceAll(string(all), "\r\n", "\n")
		}()
		a := &app{out: &output{Writer: slave}, errs: slave}
		a.complain(err)
		a.say("%s", text)
		slave.Close()
		shown := <-printed
		master.Close()
		for _, w := range whole {
			if !strings.Contains(shown, w) {
				t.Errorf("%q is broken in:\n%s", w, shown)
			}
		}
		for line := range strings.Lines(shown) {
			line = strings.TrimSuffix(line, "\n")
			if cellsOf(line) > width && !strings.Contains(line, " | ") && line != continuedMark+whole[4]+";" {
				t.Errorf("%d columns: %q", cellsOf(line), line)
			}
		}
		var pipe strings.Builder
		(&app{out: new(output), errs: &pipe}).complain(err)
		if first, _, _ := strings.Cut(pipe.String(), "\n"); !strings.HasSuffix(first, text) {
			t.Errorf("a pipe gets %q", first)
		}
	}
}
