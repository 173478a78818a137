//go:build linux

package main

import (
	"cmp"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// children are the processes that start started, by process ID. Init also inherits orphans,
// and has to reap all.
var children = struct {
	sync.Mutex
	ended map[int]chan syscall.WaitStatus
}{ended: make(map[int]chan syscall.WaitStatus)}

// process describes a process to start.
type process struct {
	argv   []string
	env    []string
	user   uint32 // and group
	cgroup *os.File
	in     *os.File // nil for nothing
	out    *os.File // nil for the consoles
}

// running is a child process.
type running struct {
	pid   int
	ended <-chan syscall.WaitStatus // gets one status
}

func start(p process) (*running, error) {
	in, out := cmp.Or(p.in, devNull), cmp.Or(p.out, os.Stdout)
	attr := &syscall.ProcAttr{
		Dir: "/", Env: append([]string{"PATH=/bin", "HOME=/tmp"}, p.env...),
		Files: []uintptr{in.Fd(), out.Fd(), os.Stderr.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	if p.user != 0 {
		attr.Sys.Credential = &syscall.Credential{Uid: p.user, Gid: p.user}
	}
	if p.cgroup != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(p.cgroup.Fd())
	}
	// A timer slack of 1 ms makes the board wake up less often. A child inherits it from the
	// thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1_000_000, 0, 0, 0)
	ended := make(chan syscall.WaitStatus, 1)
	children.Lock()
	defer children.Unlock()
	pid, err := syscall.ForkExec(p.argv[0], p.argv, attr)
	if err != nil {
		return nil, &os.PathError{Op: "start", Path: p.argv[0], Err: err}
	}
	children.ended[pid] = ended
	return &running{pid, ended}, nil
}

func (r *running) signal(s syscall.Signal) { syscall.Kill(r.pid, s) }

// devNull is the standard input of children that have no other.
var devNull *os.File

// reapChildren reaps all processes that exit, and never returns.
func reapChildren() {
	exited := make(chan os.Signal, 1)
	signal.Notify(exited, syscall.SIGCHLD)
	for range exited {
		for {
			var status syscall.WaitStatus
			children.Lock() // start adds a child to the list before it is reaped
			pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
			ended := children.ended[pid]
			delete(children.ended, pid)
			children.Unlock()
			if err == syscall.EINTR {
				continue
			}
			if pid <= 0 {
				break
			}
			if ended != nil {
				ended <- status
			}
		}
	}
}
