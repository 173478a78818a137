//go:build e2e && linux

// Package service runs sites as the package's service does, and the channels that they are updated from.
package service

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
	"agentsite/node/access"
	"agentsite/node/state"
)

// Service is a site that a loop starts again, and updates, as the units of the package do.
type Service struct {
	Data   string // its folder
	Config string // the file
	// Broken has updated programs end when they start, as on a board that lacks what they need.
	Broken atomic.Bool
	Log    harness.LogBuffer

	folder  string // of updates
	program string // the package's
	on      string
	flags   []string

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended bool
	loop  sync.WaitGroup
}

// Start starts the loop of a site on a host of a bed, "" for this machine. It ends with the test. flags are of
// agentsite run.
func Start(t testing.TB, program, on, config string, flags ...string) *Service {
	t.Helper()
	data := harness.TempDir(t)
	s := &Service{Data: data, Config: filepath.Join(data, "agentsite.yaml"), folder: filepath.Join(data, "updates"),
		program: program, on: on, flags: flags}
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.notify(), Net: "unixgram"})
	if err == nil {
		err = errors.Join(
			os.MkdirAll(filepath.Join(s.folder, "inbox"), 0o755), os.WriteFile(s.Config, []byte(config), 0o600),
		)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.loop.Go(func() {
		for b := make([]byte, 4096); ; {
			if _, err := socket.Read(b); err != nil {
				return
			}
		}
	})
	s.loop.Go(func() {
		defer socket.Close()
		for s.run(s.program, "update", "--settle", "--folder", s.folder) {
			s.run(s.current(), "update", "--install", "--folder", s.folder)
			s.run(s.current(), append(
				[]string{"run", "--config", s.Config, "--data", s.Data, "--update-folder", s.folder}, s.flags...,
			)...)
		}
	})
	t.Cleanup(func() {
		s.end(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("%s:\n%s", s.Data, s.Log.String())
		}
	})
	return s
}

func (s *Service) notify() string { return filepath.Join(s.Data, "notify") }

// end ends the loop and its program, and waits for both.
func (s *Service) end(by syscall.Signal) {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.Signal(by)
	s.loop.Wait()
}

// Kill ends the site as a power cut does: it does not start again.
func (s *Service) Kill() { s.end(syscall.SIGKILL) }

// Signal sends a signal to the program that runs now.
func (s *Service) Signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(sig)
	}
}

var invitationPattern = regexp.MustCompile(`agentsite://\S+`)

// Invitation returns the invitation in the site's data folder, once it is there.
func (s *Service) Invitation() (access.Invitation, error) {
	text, err := os.ReadFile(filepath.Join(s.Data, state.ClaimFile))
	if err != nil {
		return access.Invitation{}, err
	}
	return access.ParseInvitation(invitationPattern.FindString(string(text)))
}

// current returns the program that the service would start.
func (s *Service) current() string {
	link := filepath.Join(s.folder, "agentsite")
	if to, err := os.Readlink(link); err != nil || filepath.IsAbs(to) {
		return s.program
	}
	path, _ := filepath.EvalSymlinks(link)
	return path
}

// run runs a program to its end. It returns false when the loop has to end.
func (s *Service) run(program string, args ...string) bool {
	argv := append([]string{program}, args...)
	switch {
	case s.Broken.Load() && args[0] == "run" && program != s.program:
		argv = []string{"false"}
	case s.on != "":
		argv = bed.On(s.on, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.notify())
	cmd.Stdout, cmd.Stderr = &s.Log, &s.Log
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return false
	}
	err := cmd.Start()
	if err == nil {
		s.cmd = cmd
	}
	s.mu.Unlock()
	if err == nil {
		err = cmd.Wait()
	}
	fmt.Fprintf(&s.Log, "%s %s: %v\n", filepath.Base(filepath.Dir(program)), strings.Join(args[:2], " "), err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd = nil
	return !s.ended
}
