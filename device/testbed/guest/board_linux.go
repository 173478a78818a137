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

// The site's released program and its log. The log is a file and not a pipe, so that a
// process that outlives the site can still write to it.
const (
	program = "/agentsite"
	log     = "/tmp/site.log"
)

// emulator has the board's chips, their USB bridge and the site's process.
type emulator struct {
	*testbed.Bus
	port string

	mu     sync.Mutex
	bridge io.Closer // nil while unplugged
	site   *site
}

type site struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has exited
}

func newEmulator(port string) *emulator { return &emulator{Bus: testbed.Board(), port: port} }

// Plug plugs the bridge in or unplugs it.
func (b *emulator) Plug(in bool) (err error) {
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
func (b *emulator) Start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.site != nil && !b.site.exited() {
		return errors.New("the site runs already")
	}
	n := &site{ended: make(chan struct{})}
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
	b.site = n
	go func() {
		err := n.cmd.Wait()
		fmt.Fprintf(out, "ended: %v\n", err)
		out.Close()
		close(n.ended)
	}()
	return nil
}

func (n *site) exited() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}

// Signal signals the site's process and waits until it has ended.
func (b *emulator) Signal(s unix.Signal) error {
	b.mu.Lock()
	n := b.site
	b.mu.Unlock()
	if n == nil || n.exited() {
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

// SignalUntil signals a process, and returns the time until a file has that content. It
// reads the file each millisecond, for at most 20 s.
func SignalUntil(pid int, s unix.Signal, path, content string) (time.Duration, error) {
	started := time.Now()
	if err := unix.Kill(pid, s); err != nil {
		return 0, err
	}
	for {
		text, err := os.ReadFile(path)
		took := time.Since(started)
		switch {
		case err != nil:
			return took, err
		case strings.TrimSpace(string(text)) == content:
			return took, nil
		case took > 20*time.Second:
			return took, fmt.Errorf("20 s after signal %d to %d, %s has %q", s, pid, path, text)
		}
		time.Sleep(time.Millisecond)
	}
}

// SiteProcess is the state of the site's process.
type SiteProcess struct {
	PID     int    `json:"pid"`
	Running bool   `json:"running"`
	Log     string `json:"log"`
}

func (b *emulator) SiteProcess() (SiteProcess, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.site == nil {
		return SiteProcess{}, nil
	}
	text, err := os.ReadFile(log)
	return SiteProcess{b.site.cmd.Process.Pid, !b.site.exited(), string(text)}, err
}

// RunResult is the result of a program.
type RunResult struct {
	Exit   int    `json:"exit"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// Run runs a program until it exits, for at most 4 min.
func (b *emulator) Run(ctx context.Context, args []string) (RunResult, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return RunResult{}, err
	}
	return RunResult{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}, nil
}

// KernelLog returns the kernel's ring buffer of messages.
func KernelLog() (string, error) {
	b := make([]byte, 1<<20)
	n, err := unix.Klogctl(3, b) // SYSLOG_ACTION_READ_ALL
	return string(b[:max(n, 0)]), err
}
