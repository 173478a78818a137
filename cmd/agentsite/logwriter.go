package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	maxLogLines = 256         // in the queue
	logTimeout  = time.Second // at the end
)

// logWriter writes lines to a writer in the background and never blocks. A stopped terminal, a full
// pipe or a hanging disk must not delay the return of outputs to safe. It counts the lines that it
// drops. It is safe for concurrent use.
type logWriter struct {
	to    io.Writer
	lines chan []byte
	lost  atomic.Int64
	ended chan struct{} // closed when all until the end is written
}

// logTo makes the process log to a writer, and to others, until end, which waits a second for the last lines.
func logTo(to io.Writer, level slog.Leveler, others ...slog.Handler) (end func()) {
	w := newLogWriter(to)
	own := slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})
	slog.SetDefault(slog.New(slog.NewMultiHandler(append(others, own)...)))
	return w.end
}

func newLogWriter(to io.Writer) *logWriter {
	w := &logWriter{to: to, lines: make(chan []byte, maxLogLines), ended: make(chan struct{})}
	go w.run()
	return w
}

// Write never fails.
func (w *logWriter) Write(line []byte) (int, error) {
	select {
	case w.lines <- bytes.Clone(line):
	default:
		w.lost.Add(1)
	}
	return len(line), nil
}

// run ends with a nil line.
func (w *logWriter) run() {
	defer close(w.ended)
	for line := range w.lines {
		if lost := w.lost.Swap(0); lost > 0 {
			fmt.Fprintf(w.to, "%d log lines were dropped: the log is too slow\n", lost)
		}
		if line == nil {
			return
		}
		w.to.Write(line)
	}
}

// end writes the queued lines. Later lines are lost.
func (w *logWriter) end() {
	late := time.NewTimer(logTimeout)
	defer late.Stop()
	select {
	case w.lines <- nil:
	case <-late.C:
		return
	}
	select {
	case <-w.ended:
	case <-late.C:
	}
}
