package mcp

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// superviseCommand is the command of this program that calls Supervise with the words behind "--".
const superviseCommand = "supervise"

// limits are those of a plain child: it has no unit that bounds more.
var limits = map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 256, unix.RLIMIT_FSIZE: 64 << 20}

// plain is a child without a unit. A process of this program is between it and the site, which ends
// all that the child has started.
type plain struct {
	io.Reader
	io.WriteCloser
	supervisor *os.Process
	life       io.Closer // the supervisor ends its child when this is closed, also by the end of the site
	ended      chan struct{}
	once       sync.Once
}

func startPlain(a *Agent) (io.ReadWriteCloser, error) {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "LANG=C.UTF-8"}
	for variable, file := range a.Secrets {
		text, err := readSecret(filepath.Join(a.world.Secrets, file))
		if err != nil {
			return nil, err
		}
		env = append(env, variable+"="+text)
	}
	program, err := exec.LookPath(a.Command[0]) // by the site's own PATH
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{os.Args[0], superviseCommand, "--", program}, a.Command...)
	cmd.Env, cmd.Dir = env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	theirs, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd.ExtraFiles = []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		life.Close()
		return nil, err
	}
	return &plain{Reader: out, WriteCloser: in, supervisor: cmd.Process, life: life, ended: make(chan struct{})}, nil
}

// Close ends the child, at the latest after endTime, and all that it started.
func (p *plain) Close() error {
	p.once.Do(func() {
		p.WriteCloser.Close()
		late := time.AfterFunc(endTime, func() { p.life.Close() })
		hung := time.AfterFunc(endTime+killTime, func() { p.supervisor.Kill() })
		go func() {
			defer close(p.ended)
			p.supervisor.Wait()
			late.Stop()
			hung.Stop()
			p.life.Close()
			p.Reader.(io.Closer).Close()
		}()
	})
	<-p.ended
	return nil
}

// Supervise is the main function of the process between the site and a plain child. It runs a program
// with the command, its name and arguments, and this process's input and output. When the command ends, or the pipe in file 3 is
// closed, it kills all processes that the command started, also those with a session of their own.
func Supervise(program string, command []string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	for resource, most := range limits {
		if err := unix.Prlimit(0, resource, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
			return err
		}
	}
	syscall.CloseOnExec(3)
	life := os.NewFile(3, "life")
	var child *os.Process
	var err error
	onThread(func() {
		scopeSignals()
		child, err = os.StartProcess(program, command, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	})
	if err != nil {
		return err
	}
	os.Stdin.Close() // the child alone reads it, and writes the output
	os.Stdout.Close()
	go func() {
		io.Copy(io.Discard, life)
		child.Kill()
	}()
	for ended := false; ; {
		if ended {
			killChildren()
		}
		pid, err := syscall.Wait4(-1, nil, 0, nil)
		switch {
		case pid == child.Pid:
			ended = true
		case err != nil && err != syscall.EINTR: // nothing is left
			return nil
		}
	}
}

// onThread runs do on a thread that ends with it, and that is not the process's first, which a signal
// for the process is checked against.
func onThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			do()
			return
		}
		onThread(do)
		runtime.UnlockOSThread()
	}()
	<-done
}

// signalScopes is the version of Landlock, that of Linux 6.12, from which it scopes signals.
const signalScopes = 6

// scopeSignals has what this thread starts signal and trace nothing but what that starts, where the
// kernel can do so, and gain no privileges. Its user can stop this process otherwise.
func scopeSignals() {
	if landlockVersion() < signalScopes || unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return
	}
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_SIGNAL}
	fd, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if failed != 0 {
		return
	}
	unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0)
	unix.Close(int(fd))
}

// landlockVersion returns the version of Landlock that the kernel has, 0 for none.
func landlockVersion() int {
	version, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if failed != 0 {
		return 0
	}
	return int(version)
}

// killChildren kills the children of this process. Their children are this process's when they are
// gone, since it is their subreaper.
func killChildren() {
	all, _ := os.ReadDir("/proc")
	parent := strconv.Itoa(os.Getpid())
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		_, rest, _ := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
		if fields := bytes.Fields(rest); len(fields) > 1 && string(fields[1]) == parent {
			syscall.Kill(pid, syscall.SIGKILL) // it keeps its id until this process has waited for it
		}
	}
}
