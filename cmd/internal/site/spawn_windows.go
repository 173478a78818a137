package site

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// keepOwn has nothing to do: a child inherits what it is given.
func keepOwn() {}

// apart keeps a terminal's Ctrl-C from the guard: it ends with the site, in order.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

type pipes struct {
	io.ReadCloser
	in io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.in.Write(b) }
func (p pipes) Close() error                { return errors.Join(p.in.Close(), p.ReadCloser.Close()) }

func connect(cmd *exec.Cmd) (io.ReadWriteCloser, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	return pipes{out, in}, err
}

// GuardConn is the guard's end of it.
func GuardConn() (io.ReadWriteCloser, error) { return pipes{os.Stdin, os.Stdout}, nil }

func closeChilds(*exec.Cmd) {}
