package stdio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"agentsite/transport/rpc"
)

const (
	// maxStreams bounds the open streams of one socket.
	maxStreams  = 64
	acceptRetry = 100 * time.Millisecond
)

// Listen returns a Unix socket that its owner can open, and its group where that is the
// owner's own. It replaces the socket of a dead process, and no other file; the caller holds
// the data folder's lock, so there is no living one.
func Listen(path string) (net.Listener, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is in the way and is no socket: move it elsewhere, or use another --data", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w (a socket's path has at most about 100 bytes: use a shorter --data)", err)
	}
	return ln, os.Chmod(path, mode())
}

// ListenOr is Listen at path, or at fallback where the disk of path is read-only or full;
// "" is no fallback. Where it listens at path, it removes a dead socket at fallback.
func ListenOr(path, fallback string) (net.Listener, error) {
	ln, err := Listen(path)
	switch {
	case fallback == "":
	case err == nil:
		os.Remove(fallback)
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOSPC):
		if err := os.MkdirAll(filepath.Dir(fallback), 0o750); err != nil {
			return nil, err
		}
		return Listen(fallback)
	}
	return ln, err
}

// Serve accepts streams until ctx ends and calls handle for each, which blocks while the stream
// lasts. A caller proves who it is by opening the socket. Where the system tells its user, that has
// to be root, this process's user or a member of its group. Serve closes the listener and
// returns once every stream has ended.
func Serve(ctx context.Context, ln net.Listener, handle func(context.Context, net.Conn)) error {
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	var streams sync.WaitGroup
	defer streams.Wait()
	places := make(chan struct{}, maxStreams)
	for {
		conn, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // too many open files, say: that passes
			slog.Warn("a local socket could not be accepted", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(acceptRetry):
			}
			continue
		}
		if err := checkPeer(conn); err != nil {
			slog.Warn("a local caller was refused", "err", err)
			conn.Close()
			continue
		}
		select {
		case places <- struct{}{}:
		default:
			refuse(conn)
			continue
		}
		streams.Go(func() {
			defer func() { <-places }()
			handle(ctx, conn)
		})
	}
}

// refuse tells a caller that too many are connected. A new socket accepts a line without blocking.
func refuse(conn net.Conn) {
	defer conn.Close()
	var line bytes.Buffer
	busy := rpc.Errorf(rpc.CodeBusy,
		"%d programs are connected to this socket: end one of them, or try again later", maxStreams)
	if rpc.EncodeError(rpc.JSON, &line, busy) == nil {
		line.WriteByte('\n')
		conn.Write(line.Bytes())
	}
}
