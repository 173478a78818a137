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
	logLines    = 256         // that wait
	logPatience = time.Second // at the end
)

// logWriter passes lines on to a writer and never waits for it: a terminal that is held, a
// pipe that nobody reads, or a journal whose disk hangs would else hold up what returns
// outputs to safe. Lines that find no room are counted. It is safe for concurrent use.
type logWriter struct {
	to    io.Writer
	lines chan []byte
	lost  atomic.Int64
	ended chan struct{} // closed when all until the end is written
}

// logTo has the process log to a writer until end, which waits a second for what is left.
func logTo(to io.Writer, level slog.Leveler) (end func()) {
	w := newLogWriter(to)
	slog.SetDefault(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})))
	return w.end
}

func newLogWriter(to io.Writer) *logWriter {
	w := &logWriter{to: to, lines: make(chan []byte, logLines), ended: make(chan struct{})}
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
			fmt.Fprintf(w.to, "%d lines were not logged: they came faster than they were taken\n", lost)
		}
		if line == nil {
			return
		}
		w.to.Write(line)
	}
}

// end writes what is left. What is logged after it is lost.
func (w *logWriter) end() {
	late := time.NewTimer(logPatience)
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
