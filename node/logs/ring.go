// Package logs keeps the newest lines of a site's log in memory, so that its owners read them wherever they are.
package logs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"time"

	"agentsite/device"
)

const (
	maxBytes = 48 << 10 // of all texts
	maxText  = 2 << 10  // of one line
	perLine  = 128      // what a line takes besides its text
)

// Line is one line of the log.
type Line struct {
	Seq   uint64    `json:"seq"` // from 1, of a run of the site
	Time  time.Time `json:"time"`
	Level string    `json:"level"` // "DEBUG", "INFO", "WARN", "ERROR", or one between, as "INFO+2"
	Text  string    `json:"text"`  // the message and its attributes, as slog.TextHandler writes them

	level slog.Level
}

// Ring keeps the newest lines within a bound of bytes. It wakes nobody up but those that wait for a line. It is safe
// for concurrent use. A nil Ring has no lines.
type Ring struct {
	run string

	mu    sync.Mutex
	lines []Line
	bytes int
	last  uint64
	more  chan struct{} // closed with the next line; nil while nobody waits
}

// NewRing returns an empty ring.
func NewRing() *Ring { return &Ring{run: rand.Text()} }

// Handler returns a handler that adds the records from a level on.
func (r *Ring) Handler(level slog.Leveler) slog.Handler {
	h := &handler{ring: r, mu: new(sync.Mutex), buf: new(bytes.Buffer)}
	h.text = slog.NewTextHandler(h.buf, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutHead})
	return h
}

// withoutHead removes the attributes that a Line has by itself, and the name of the message.
func withoutHead(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
		return slog.Attr{}
	}
	return a
}

// handler writes records as text, and adds the text to the ring.
type handler struct {
	ring *Ring
	mu   *sync.Mutex // held while buf has a record
	buf  *bytes.Buffer
	text slog.Handler // writes to buf
}

func (h *handler) Enabled(ctx context.Context, l slog.Level) bool { return h.text.Enabled(ctx, l) }

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf.Reset()
	if err := h.text.Handle(ctx, r); err != nil {
		return err
	}
	h.ring.add(r.Time, r.Level, h.buf.Bytes())
	return nil
}

func (h *handler) with(text slog.Handler) slog.Handler {
	return &handler{h.ring, h.mu, h.buf, text}
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler { return h.with(h.text.WithAttrs(attrs)) }
func (h *handler) WithGroup(name string) slog.Handler       { return h.with(h.text.WithGroup(name)) }

// add appends a line and drops the oldest beyond the bound.
func (r *Ring) add(at time.Time, level slog.Level, line []byte) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	text := device.Clip(string(line[:min(len(line), maxText+1)]), maxText)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	r.lines = append(r.lines, Line{r.last, at, level.String(), text, level})
	r.bytes += perLine + len(text)
	for ; r.bytes > maxBytes; r.lines = r.lines[1:] { // append copies what is left when the array is full
		r.bytes -= perLine + len(r.lines[0].Text)
		r.lines[0] = Line{}
	}
	if r.more != nil {
		close(r.more)
		r.more = nil
	}
}

// since returns a copy of the lines after a sequence, and a channel that is closed with the next line.
func (r *Ring) since(after uint64) ([]Line, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.more == nil {
		r.more = make(chan struct{})
	}
	i, _ := slices.BinarySearchFunc(r.lines, after+1, func(l Line, seq uint64) int {
		return cmp.Compare(l.Seq, seq)
	})
	return slices.Clone(r.lines[i:]), r.more
}
