package mcp

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPlainLeavesNothing: a process of a plain child, with a session of its own and without a parent,
// ends with the child: when the site closes it, when it exits, and when the site is gone.
func TestPlainLeavesNothing(t *testing.T) {
	for how, then := range map[string]string{"closed": "exec cat", "gone": "exec sleep 1000", "exits": "until [ -s left ]; do sleep 0.01; done"} {
		dir := t.TempDir()
		left := filepath.Join(dir, "left")
		a := New(World{})
		a.Command = []string{"sh", "-c", `cd "$1"; (setsid sh -c 'echo $$ >new; mv new left; exec sleep 1000' >/dev/null &); ` + then, "sh", dir}
		rw, err := startPlain(a)
		if err != nil {
			t.Fatal(err)
		}
		pid := 0
		for end := time.Now().Add(20 * time.Second); pid == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			text, _ := os.ReadFile(left)
			pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		if pid == 0 {
			t.Fatal("nothing was started")
		}
		switch how {
		case "gone":
			rw.(*plain).life.Close()
			fallthrough
		case "exits":
			io.Copy(io.Discard, rw)
		}
		rw.Close()
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s: it goes on: %v", how, err)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// TestPlainSignals: a plain child signals its own processes, and neither the process that watches it nor
// the site.
func TestPlainSignals(t *testing.T) {
	if landlockVersion() < signalScopes {
		t.Skip("this kernel does not scope signals")
	}
	a := New(World{})
	a.Command = []string{"sh", "-c", `sleep 1000 & kill -0 $! && echo own; kill -0 $PPID && echo watcher; kill -0 $1 && echo site; kill $!; exec cat`, "sh", strconv.Itoa(os.Getpid())}
	rw, err := startPlain(a)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(rw, "end\n")
	said := ""
	for b := make([]byte, 100); !strings.Contains(said, "end\n"); {
		n, err := rw.Read(b)
		if said += string(b[:n]); err != nil {
			t.Error(err)
			break
		}
	}
	if rw.Close(); said != "own\nend\n" {
		t.Errorf("%q", said)
	}
}
