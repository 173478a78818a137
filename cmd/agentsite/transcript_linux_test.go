package main

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// transcript prints the output of a command at terminals of 40, 80 and 200 columns: transcript COMMAND..., or
// transcript -until REGEXP COMMAND..., which types Ctrl-C once REGEXP was printed, and ends with its line. Parts that
// differ from run to run are replaced. A difference in length moves line breaks, so a script has to keep it constant.
func transcript(ts *testscript.TestScript, neg bool, args []string) {
	interrupt, args := interruptOf(ts, args)
	if neg || len(args) == 0 {
		ts.Fatalf("usage: transcript [-until REGEXP] COMMAND...")
	}
	for _, columns := range []int{40, 80, 200} {
		printed, err := untilAtTerminal(ts, interrupt, args, columns)
		fmt.Fprintf(ts.Stdout(), "[%d columns]\n", columns)
		for line := range strings.Lines(printed) {
			line = shownOf(ts, line)
			fmt.Fprintln(ts.Stdout(), constant(ts, line))
			if interrupt != nil && interrupt.MatchString(line) {
				break // the lines that follow depend on the moment of Ctrl-C
			}
		}
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			fmt.Fprintf(ts.Stdout(), "[%s]\n", exit)
		}
	}
}

// interruptOf takes the flag -until from arguments.
func interruptOf(ts *testscript.TestScript, args []string) (*regexp.Regexp, []string) {
	if len(args) < 2 || args[0] != "-until" {
		return nil, args
	}
	interrupt, err := regexp.Compile(args[1])
	ts.Check(err)
	return interrupt, args[2:]
}

// varying are the parts of a line that differ from run to run, with what stands for them.
var varying = []struct {
	part *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d`), "2026-01-02"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "03:04:05"},
	{regexp.MustCompile(`\bup [0-9.]+ s\b`), "up 5 s"},
	{regexp.MustCompile(`\bversion [^ ,]+`), "version v1.2.3"},
	{regexp.MustCompile(`^agentsite [^ ]+: the site`), "agentsite v1.2.3: the site"},
	{regexp.MustCompile(`did:key:z[0-9A-Za-z]+`), "did:key:zKEY"},
	{regexp.MustCompile(`[^" ]*/agentsite\b`), "agentsite"}, // the program that runs
	{regexp.MustCompile(`#k=[0-9A-Z]+`), "#k=CODE"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
}

// constant replaces what differs from run to run in a line.
func constant(ts *testscript.TestScript, line string) string {
	line = strings.ReplaceAll(line, ts.Getenv("D"), "/DATA")
	for _, v := range varying {
		line = v.part.ReplaceAllString(line, v.by)
	}
	return line
}

// interrupted types Ctrl-C once REGEXP was printed, and checks that the command leaves no line and no style, such as a
// hidden cursor, behind: interrupted REGEXP COMMAND...
func interrupted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: interrupted REGEXP COMMAND...")
	}
	interrupt, err := regexp.Compile(args[0])
	ts.Check(err)
	printed, _ := untilAtTerminal(ts, interrupt, args[1:], 80)
	if !interrupt.MatchString(printed) {
		ts.Fatalf("%q was not printed: %q", args[0], printed)
	}
	for line := range strings.Lines(printed) {
		if text := shownOf(ts, line); interrupt.MatchString(text) || text != "" && !strings.HasSuffix(line, "\n") {
			ts.Fatalf("this stays: %q of %q", text, printed)
		}
	}
}
