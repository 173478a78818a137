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
)

// Serve serves h on ln until ctx ends, and then gives running requests five
// seconds. Slow and idle clients are bounded in time and in number.
func Serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	conns := newConnLimiter(usualConns, maxConns)
	srv := &http.Server{
		Handler:        h,
		ReadTimeout:    readTimeout,  // Handler and ReadBody lift it, or it would end a stream
		WriteTimeout:   writeTimeout, // streams move it on with every write
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeader,
		ConnState:      conns.changed,
		ConnContext:    conns.context,
		ErrorLog:       slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
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
