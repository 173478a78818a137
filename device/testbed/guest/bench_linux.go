package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"agentsite/device/testbed"

	"golang.org/x/sys/unix"
)

// The site's program, as it is released, and what it wrote. That is a file and no
// pipe, so that a process that outlives the site can still write to it.
const (
	program = "/agentsite"
	log     = "/tmp/site.log"
)

// bench is the board on the bench: its chips, the bridge that carries them, and the
// site's process.
type bench struct {
	*testbed.Bus
	port string

	mu     sync.Mutex
	bridge io.Closer // nil while it is unplugged
	node   *node
}

type node struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
}

func newBench(port string) *bench { return &bench{Bus: testbed.Board(), port: port} }

// Plug plugs the bridge in or unplugs it.
func (b *bench) Plug(in bool) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case in == (b.bridge != nil):
	case in:
		b.bridge, err = testbed.NewMCP2221(b.Bus).Plug()
	default:
		err = b.bridge.Close()
		b.bridge = nil
	}
	return err
}

// Start starts the site with the configuration in /agentsite.yaml.
func (b *bench) Start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.node != nil && !b.node.over() {
		return errors.New("the site runs already")
	}
	n := &node{ended: make(chan struct{})}
	n.cmd = exec.Command(program, "run", "--config", "/agentsite.yaml", "--data", "/data", "--listen", "127.0.0.1:"+b.port)
	out, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	n.cmd.Stdout, n.cmd.Stderr = out, out
	if err := n.cmd.Start(); err != nil {
		out.Close()
		return err
	}
	b.node = n
	go func() {
		err := n.cmd.Wait()
		fmt.Fprintf(out, "ended: %v\n", err)
		out.Close()
		close(n.ended)
	}()
	return nil
}

func (n *node) over() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}

// Signal signals the site's process and waits until it has ended.
func (b *bench) Signal(s unix.Signal) error {
	b.mu.Lock()
	n := b.node
	b.mu.Unlock()
	if n == nil || n.over() {
		return errors.New("the site does not run")
	}
	if err := n.cmd.Process.Signal(s); err != nil {
		return err
	}
	select {
	case <-n.ended:
		return nil
	case <-time.After(25 * time.Second):
		return errors.New("the site did not end within 25 s")
	}
}

// Hit signals any process, and returns how long it then takes until a file says
// something. It looks each millisecond, for at most 20 s.
func Hit(pid int, s unix.Signal, path, says string) (time.Duration, error) {
	begun := time.Now()
	if err := unix.Kill(pid, s); err != nil {
		return 0, err
	}
	for {
		text, err := os.ReadFile(path)
		took := time.Since(begun)
		switch {
		case err != nil:
			return took, err
		case strings.TrimSpace(string(text)) == says:
			return took, nil
		case took > 20*time.Second:
			return took, fmt.Errorf("20 s after signal %d to %d, %s says %q", s, pid, path, text)
		}
		time.Sleep(time.Millisecond)
	}
}

// Node is the site's process as it is.
type Node struct {
	PID     int    `json:"pid"`
	Running bool   `json:"running"`
	Log     string `json:"log"` // what it wrote
}

func (b *bench) Node() (Node, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.node == nil {
		return Node{}, nil
	}
	text, err := os.ReadFile(log)
	return Node{b.node.cmd.Process.Pid, !b.node.over(), string(text)}, err
}

// Ran is what a program did.
type Ran struct {
	Exit   int    `json:"exit"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// Run runs a program to its end.
func (b *bench) Run(ctx context.Context, args []string) (Ran, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Ran{}, err
	}
	return Ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}, nil
}

// KernelLog is the kernel's ring of messages.
func KernelLog() (string, error) {
	b := make([]byte, 1<<20)
	n, err := unix.Klogctl(3, b) // SYSLOG_ACTION_READ_ALL
	return string(b[:max(n, 0)]), err
}
