package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// talk runs a command at a terminal as a person does: talk FILE COMMAND... Of the lines of FILE, "> TEXT"
// is typed, and "< REGEXP" is waited for in what was printed since, for twenty seconds. The command has
// to end then, and well; after ! not well.
func talk(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: talk FILE COMMAND...")
	}
	master, slave, err := openTerminal()
	ts.Check(err)
	defer master.Close()
	ts.Check(unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 250, Row: 24})) // no line is broken
	cmd := exec.Command(lookPath(ts, args[1]), args[2:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), slave, slave, slave
	for _, name := range terminalEnv {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	err = cmd.Start()
	slave.Close()
	ts.Check(err)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var mu sync.Mutex
	var printed bytes.Buffer
	changed := make(chan struct{}, 1)
	go func() {
		for b := make([]byte, 4096); ; {
			n, err := master.Read(b)
			mu.Lock()
			printed.Write(b[:n])
			mu.Unlock()
			select {
			case changed <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	seen := 0
	all := func() string { mu.Lock(); defer mu.Unlock(); return printed.String() }
	fail := func(what string) {
		cmd.Process.Kill()
		ts.Fatalf("%s; it printed:\n%s", what, all())
	}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "> "); ok {
			_, err := master.WriteString(text + "\n")
			ts.Check(err)
			continue
		}
		wanted := regexp.MustCompile(strings.TrimPrefix(line, "< "))
		for late := time.After(20 * time.Second); ; {
			if at := wanted.FindStringIndex(all()[seen:]); at != nil {
				seen += at[1]
				break
			}
			select {
			case <-changed:
			case <-late:
				fail("in 20 s there was no " + line[2:])
			}
		}
	}
	select {
	case err := <-ended:
		if (err != nil) != neg {
			fail(fmt.Sprintf("it ended with %v", err))
		}
	case <-time.After(20 * time.Second):
		fail("it does not end")
	}
	fmt.Fprint(ts.Stdout(), all())
}

// terminalEnv are the variables of a command at a terminal.
var terminalEnv = []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TZ", "D", "GORACE"}

// openTerminal returns both sides of a new terminal.
func openTerminal() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd())
	if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
		var n uint32
		if n, err = unix.IoctlGetUint32(fd, unix.TIOCGPTN); err == nil {
			slave, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
		}
	}
	if err != nil {
		master.Close()
	}
	return master, slave, err
}

// lookPath returns the file of a command by the script's PATH.
func lookPath(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
	}
	ts.Fatalf("there is no %s", name)
	return ""
}
