package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// heldWriter blocks until it is released.
type heldWriter struct {
	bytes.Buffer
	let chan struct{}
}

func (h *heldWriter) Write(b []byte) (int, error) {
	<-h.let
	return h.Buffer.Write(b)
}

// TestLogWriter: logging never waits for the writer, and the end not for long. Dropped lines are
// counted, and no others are lost.
func TestLogWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &heldWriter{let: make(chan struct{})}
		w := newLogWriter(held)
		begun := time.Now()
		w.Write([]byte("one\n"))
		synctest.Wait() // it has that one in hand
		for range maxLogLines + 2 {
			if n, err := w.Write([]byte("more\n")); n != 5 || err != nil {
				t.Fatal(n, err)
			}
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("it took %v", took)
		}
		if w.end(); time.Since(begun) > logTimeout {
			t.Errorf("the end took %v", time.Since(begun))
		}
		close(held.let)
		synctest.Wait()
		w.end()
		got := held.String()
		if n := strings.Count(got, "more\n"); n != maxLogLines || !strings.HasPrefix(got, "one\n2 ") {
			t.Errorf("%d lines: %.60q", n, got)
		}
	})
}
