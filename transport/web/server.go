package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	readTimeout   = 10 * time.Second // of a whole request, from the first byte of its header
	writeTimeout  = 30 * time.Second
	deadlineSlack = time.Second // that a write deadline may be older: to set one takes longer than a short write
	idleTimeout   = 2 * time.Minute
	keepAlive     = 30 * time.Second // between comments on a silent stream
	maxHeader     = 16 << 10
	usualConns    = 256
	maxConns      = 1024
	maxStreams    = 128      // of one connection of HTTP/2
	streamBuffer  = 64 << 10 // bytes that HTTP/2 receives for one connection before they are read
)

// Serve serves h on ln until ctx ends, and then gives running requests five
// seconds. Slow and idle clients are bounded in time and in number. A TLS listener whose
// configuration offers h2 serves HTTP/2 (RFC 9113) beside HTTP/1.1, with the same limits.
func Serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	conns := newConnLimiter(usualConns, maxConns)
	srv := &http.Server{
		Handler:        conns.multiplexed(h),
		ReadTimeout:    readTimeout,  // Handler and ReadBody lift it, or it would end a stream
		WriteTimeout:   writeTimeout, // streams move it on with every write
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReadFrameSize: 16 << 10,
			MaxReceiveBufferPerConnection: streamBuffer, MaxReceiveBufferPerStream: streamBuffer,
			WriteByteTimeout: writeTimeout,
		},
		ConnState:   conns.changed,
		ConnContext: conns.context,
		ErrorLog:    slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err := srv.Shutdown(ending)
		if err != nil {
			err = srv.Close()
		}
		stopped <- err
	})
	err := srv.Serve(ln)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return err // it broke by itself
	}
	return <-stopped
}
