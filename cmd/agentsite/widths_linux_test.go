package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// tables are the commands that print tables, with their arguments for the site of wide.txtar.
var tables = map[string]string{
	"agents": "--data $D", "ask": "--data $D", "grants": "--data $D", "points": "--data $D", "read": "--data $D", "rules": "--data $D",
	"tools": "--data $D", "token list": "--data $D", "journal": "--data $D", "tasks": "--data $D", "tasks show": "$TASK --data $D", "approve": "--data $D",
	"why": "an-output-of-a-long-name/relay --data $D", "history": "an-output-of-a-long-name a-device-of-a-long-name1 --table --steps 2 --data $D",
	"rules try": "--since 1m --data $D", "sites": "", "realm list": "", "owners": "--data $D", "ping": "a-site-with-a-long-name1 -c 1",
	"agents share": "--data $D", "agents publish": "--data $D", "drivers": "", "notify phones": "--data $D",
	"status": "--data $D", "logs": "--data $D", "agents show": "a-routine-of-a-long-name --data $D",
	"fleet": "", "fleet status": "", "fleet read": "", "fleet doctor": "--all", "fleet journal": "",
	"fleet update": "--check", "sim list": "--data $S",
	"fleet allow": "an-agent-of-a-long-name1 stop", "fleet revoke": "an-agent-of-a-long-name1",
}

// noTables are the others: they print sentences, texts to paste, or files, or need other networks or boards.
var noTables = strings.Fields(`accept add console agents-accept agents-allow agents-export agents-forbid agents-import agents-pause agents-remove agents-resume agents-tools
	agents-try agents-unshare agents-install agents-search agents-unpublish agents-updates backup board board-report call chat check claim clock config config-check config-replace completion
	completion-bash completion-fish completion-powershell completion-zsh connect delegate demo doctor grant grant-phone guard history-import
	identity fleet-backup config-trial fleet-apply fleet-realm fleet-realm-join fleet-realm-new
	llm-check notify notify-allow notify-forget notify-test owners-add owners-recover owners-recovery owners-remove open pinout prepare public realm
	realm-join realm-leave realm-new relay reload reset restore revoke rules-pause rules-resume run safe scan schema set sites-connect
	sites-forget sites-tag sites-untag stop sim sim-fault sim-find sim-lose sim-press sim-set simulate
	supervise tasks-answer tasks-cancel tasks-watch token token-add token-change token-revoke update version discover find agents-find help llm`)

// removeLine ends the command of a terminal that removes a line.
const removeLine = "\x1b[K"

// checkWidths runs each command that prints a table at a terminal of 80 columns, and finds the lines that are
// wider, but for single words, such as addresses.
func checkWidths(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: widths")
	}
	ts.Setenv("TASK", strings.Fields(ts.ReadFile("task"))[0])
	commands(func(c *cobra.Command) {
		name := words(c)
		line, has := tables[name]
		switch {
		case !c.HasParent() || slices.Contains(noTables, strings.ReplaceAll(name, " ", "-")):
			return
		case !has:
			ts.Fatalf("%s is a new command: name it in tables or noTables", name)
		}
		checkWidth(ts, strings.Fields(name+" "+line), 80)
	})
	for _, columns := range []int{40, 200} {
		for _, name := range everyday {
			checkWidth(ts, strings.Fields(name+" "+tables[name]), columns)
		}
	}
}

// everyday are the commands that are also run at a narrow and a wide terminal.
var everyday = []string{"status", "logs", "points", "read", "sites"}

// checkWidth runs a command at a terminal, with colours, and finds the lines that are wider, but for single words.
func checkWidth(ts *testscript.TestScript, args []string, columns int) {
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "$"); ok {
			args[i] = ts.Getenv(v)
		}
	}
	printed := atTerminal(ts, args, columns)
	ts.Logf("%s\n%s", args, printed)
	for line := range strings.Lines(printed) {
		line = shownOf(ts, line)
		if utf8.RuneCountInString(line) > columns && len(strings.Fields(line)) > 2 {
			ts.Fatalf("%s prints %d columns of %d: %s", args, utf8.RuneCountInString(line), columns, line)
		}
	}
}

// shownOf returns what stays of a printed line at a terminal, without its style and progress that is removed.
func shownOf(ts *testscript.TestScript, line string) string {
	line = strings.TrimRight(line, "\r\n")
	line = unpainted(strings.TrimPrefix(line[max(0, strings.LastIndex(line, removeLine)):], removeLine))
	if strings.ContainsRune(line, '\x1b') {
		ts.Fatalf("a sequence is printed that is no style: %q", line)
	}
	return line
}

// atTerminal returns the output of a command at a terminal of a width. The command has to end well.
func atTerminal(ts *testscript.TestScript, args []string, columns int) string {
	printed, err := untilAtTerminal(ts, nil, args, columns)
	if err != nil {
		ts.Fatalf("%s: %v\n%s", args, err, printed)
	}
	return printed
}

// untilAtTerminal returns the output of a command at a terminal of a width, and its error. If interrupt is not nil,
// Ctrl-C is typed once it matches what was printed.
func untilAtTerminal(ts *testscript.TestScript, interrupt *regexp.Regexp, args []string, columns int) (string, error) {
	master, slave, err := openTerminal()
	ts.Check(err)
	ts.Check(unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: 24}))
	defer master.Close()
	cmd := exec.Command(lookPath(ts, "agentsite"), args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // the terminal sends it the signal of Ctrl-C
	for _, name := range terminalEnv {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Env = append(cmd.Env, "TERM=xterm")
	read := make(chan string)
	err = cmd.Start()
	slave.Close()
	ts.Check(err)
	go func() {
		var all []byte
		for b := make([]byte, 4096); ; {
			n, err := master.Read(b)
			if all = append(all, b[:n]...); interrupt != nil && interrupt.Match(all) {
				master.WriteString("\x03")
				interrupt = nil
			}
			if err != nil { // the other side is closed
				read <- string(all)
				return
			}
		}
	}()
	late := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer late.Stop()
	err = cmd.Wait()
	return <-read, err
}
