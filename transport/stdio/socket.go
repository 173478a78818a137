package stdio

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"

	"agentsite/transport/rpc"
)

// maxStreams bounds the open streams of one socket.
const maxStreams = 64

// Listen makes a Unix socket that its owner and its group can open. A socket that
// a dead process left is replaced; the caller holds the data folder's lock, so
// there is no living one.
func Listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w (a socket's path has at most about 100 bytes: use a shorter --data)", err)
	}
	return ln, os.Chmod(path, 0o660)
}

// Serve accepts streams until ctx ends and gives each to handle, which blocks
// while the stream lasts. The evidence is that the caller could open the socket,
// and its user where the system tells. Serve closes the listener and returns once
// every stream has ended.
func Serve(ctx context.Context, ln net.Listener, local string, handle func(context.Context, net.Conn, rpc.Evidence)) error {
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	var streams sync.WaitGroup
	defer streams.Wait()
	places := make(chan struct{}, maxStreams)
	for {
		conn, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		uid, err := peerUID(conn)
		if err != nil {
			slog.Warn("a local caller could not be told apart and was refused", "err", err)
			conn.Close()
			continue
		}
		select {
		case places <- struct{}{}:
		default:
			conn.Close() // as a full machine would: the caller may come again
			continue
		}
		streams.Go(func() {
			defer func() { <-places }()
			handle(ctx, conn, rpc.Evidence{Local: local, UID: uid})
		})
	}
}
