package devices

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// CloseOnExec has nothing to do: a child inherits what it is given.
func CloseOnExec() {}

// ownProcessGroup keeps a terminal's Ctrl-C from the guard, which ends after the site.
func ownProcessGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

type pipes struct {
	io.ReadCloser
	in io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.in.Write(b) }
func (p pipes) Close() error                { return errors.Join(p.in.Close(), p.ReadCloser.Close()) }

func connectChild(cmd *exec.Cmd) (io.ReadWriteCloser, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	return pipes{out, in}, err
}

// GuardConn returns the guard's end of the connection to the site.
func GuardConn() (io.ReadWriteCloser, error) { return pipes{os.Stdin, os.Stdout}, nil }

func closeChildEnds(*exec.Cmd) {}
