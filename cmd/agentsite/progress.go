package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// progressLine is a line on the terminal that shows that a long operation goes on. Nothing is drawn before
// progressDelay, so that a quick operation shows nothing.
type progressLine struct {
	w      io.Writer
	width  int      // of the terminal
	frames []string // the signs that follow each other before the text
	begun  time.Time
	stop   chan struct{}
	ended  chan struct{} // closed when the line is gone

	mu    sync.Mutex
	text  string
	drawn bool
}

const (
	progressDelay = 400 * time.Millisecond
	progressStep  = 120 * time.Millisecond
	clearLine     = "\r\x1b[K"
)

// progress returns functions for the progress of a long operation: show replaces the text that is shown, and end
// removes it. Neither prints anything if errors do not go to a terminal that can erase a line. One goroutine calls
// them. What the command prints meanwhile stands above the line.
func (a *app) progress() (show func(format string, args ...any), end func()) {
	f, isFile := a.errs.(*os.File)
	if !isFile || !(&output{Writer: f}).terminal() || os.Getenv("TERM") == "dumb" {
		return func(string, ...any) {}, func() {}
	}
	var p *progressLine
	show = func(format string, args ...any) {
		text := clean(fmt.Sprintf(format, args...))
		if p == nil {
			p = newProgress(f, lineWidth(f), utf8Terminal(), text)
			a.out.shows.Store(p)
		}
		p.say(text)
	}
	return show, func() {
		if p != nil {
			a.out.shows.Store(nil)
			p.end()
			p = nil
		}
	}
}

// during shows a text while do runs.
func (a *app) during(text string, do func() error) error {
	show, end := a.progress()
	defer end()
	show("%s", text)
	return do()
}

// utf8Terminal reports whether the terminal's characters are those of Unicode.
func utf8Terminal() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			return strings.Contains(strings.ToLower(strings.ReplaceAll(v, "-", "")), "utf8")
		}
	}
	return false
}

func newProgress(w io.Writer, width int, unicode bool, text string) *progressLine {
	frames := `|/-\`
	if unicode {
		frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
	}
	p := &progressLine{
		w: w, width: width, frames: strings.Split(frames, ""), begun: time.Now(), text: text,
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go p.run()
	return p
}

func (p *progressLine) say(text string) {
	p.mu.Lock()
	p.text = text
	p.mu.Unlock()
}

// run draws until end.
func (p *progressLine) run() {
	defer close(p.ended)
	next := time.NewTimer(progressDelay)
	defer next.Stop()
	for i := 0; ; i++ {
		select {
		case <-p.stop:
			p.hold(func() {})
			return
		case <-next.C:
			p.draw(p.frames[i%len(p.frames)])
			next.Reset(progressStep)
		}
	}
}

func (p *progressLine) draw(frame string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := []rune(frame + " " + p.text)
	if lasts := time.Since(p.begun); lasts >= 2*time.Second {
		line = append(line, []rune(fmt.Sprintf(" (%.0f s)", lasts.Seconds()))...)
	}
	for len(line) > 1 && cellsOf(string(line)) > p.width {
		line = line[:len(line)-1]
	}
	io.WriteString(p.w, clearLine+string(line))
	p.drawn = true
}

// hold removes the line, and runs do before it is drawn again.
func (p *progressLine) hold(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		io.WriteString(p.w, clearLine)
	}
	p.drawn = false
	do()
}

// end removes the line for good.
func (p *progressLine) end() {
	close(p.stop)
	<-p.ended
}
