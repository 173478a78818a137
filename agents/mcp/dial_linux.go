package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxSecret = 4 << 10
	// endTime is the time that a child has to exit after its input is closed.
	endTime = 2 * time.Second
	// killTime is for the service manager, whose unit gives a child 5 s after its signal.
	killTime = 10 * time.Second
)

// dialChild connects to the child's socket, which starts it, or starts it as a plain process.
func dialChild(ctx context.Context, a *Agent) (io.ReadWriteCloser, error) {
	if a.Isolation == isolationNone {
		return startPlain(a)
	}
	u, err := dialUnit(ctx, a.name, SocketPath(a.name), endPath(a.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no %s: run sudo agentsite prepare, which makes it of the configuration", SocketPath(a.name))
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s is for the group agentsite only", SocketPath(a.name))
	case err != nil:
		return nil, fmt.Errorf("its socket does not answer: %w; systemctl status agentsite-child-%s.socket says why", err, a.name)
	}
	return u, nil
}

// unit is a connection to a child that the service manager runs.
type unit struct {
	*net.UnixConn
	name, end string
	once      sync.Once
}

func dialUnit(ctx context.Context, name, path, end string) (*unit, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return &unit{UnixConn: conn.(*net.UnixConn), name: name, end: end}, nil
}

// Close ends the child. The service manager kills a child that does not exit after its input is
// closed, and processes that it left behind: this user cannot.
func (u *unit) Close() error {
	u.once.Do(func() {
		u.CloseWrite()
		u.waitHangUp(endTime)
		u.UnixConn.Close()
		if err := u.kill(); err != nil {
			slog.Warn("what may be left of a child cannot be ended", "agent", u.name, "err", err)
		}
	})
	return nil
}

// waitHangUp waits until the other end is closed. It reads nothing: another goroutine may.
func (u *unit) waitHangUp(most time.Duration) {
	raw, err := u.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		for end := time.Now().Add(most); ; {
			left := time.Until(end)
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd)}}, int(max(left, 0).Milliseconds()))
			if n > 0 || left <= 0 || err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
}

// kill asks the service manager to kill all processes of the child, and waits until it has.
func (u *unit) kill() error {
	conn, err := net.DialTimeout("unix", u.end, killTime)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(killTime))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// readSecret reads a file that nobody else can read.
func readSecret(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s is readable by others, or not a file: chmod 600 %s", path, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if len(text) > maxSecret || strings.ContainsAny(secret, "\x00\n") {
		return "", fmt.Errorf("%s is not a secret of one line and at most %d KiB", path, maxSecret>>10)
	}
	return secret, nil
}
