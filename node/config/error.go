package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxErrors limits how many mistakes are reported at once.
const maxErrors = 10

// pos is a place in the file: line and column in characters, both from 1. The
// zero pos is the file as a whole.
type pos struct{ line, column int }

func (p pos) compare(q pos) int {
	if p.line != q.line {
		return p.line - q.line
	}
	return p.column - q.column
}

// Error is one mistake in the file.
type Error struct {
	File         string
	Line, Column int    // in characters, from 1; 0 is the file as a whole
	Err          error  // the mistake and its remedy
	Source       string // the line itself; "" for the file as a whole
}

// Error returns the line "file:line:column: message", then the source line with a mark under
// the column.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	head := fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
	shown, column := window(e.Source, e.Column)
	return fmt.Sprintf("%s\n%5d | %s\n      | %s^", head, e.Line, shown, strings.Repeat(" ", column-1))
}

func (e *Error) Unwrap() error { return e.Err }

// window returns the part of a long line around the column that a terminal shows, and the
// column in it.
func window(line string, column int) (string, int) {
	const width, before = 70, 40 // in a line of 80 columns
	// A tab is as wide as the terminal likes; a space keeps the mark in place.
	runes := []rune(strings.ReplaceAll(line, "\t", " "))
	from := max(0, min(column-before, len(runes)-width))
	return string(runes[min(from, len(runes)):min(from+width, len(runes))]), column - from
}

// source is the text that errors point into.
type source struct {
	name  string
	lines []string
}

func newSource(name, text string) *source {
	return &source{name: name, lines: strings.Split(text, "\n")}
}

func (s *source) errorf(at pos, format string, args ...any) *Error {
	e := &Error{File: s.name, Line: at.line, Column: at.column, Err: fmt.Errorf(format, args...)}
	if at.line > 0 && at.line <= len(s.lines) {
		e.Source = s.lines[at.line-1]
	}
	return e
}

// report collects mistakes, so that an owner sees more than the first.
type report struct {
	src  *source
	errs []*Error
}

// fail adds a mistake about where: a section, a device or a device/point.
func (r *report) fail(at pos, where, format string, args ...any) {
	if where != "" {
		format = "%s: " + format
		args = append([]any{where}, args...)
	}
	r.errs = append(r.errs, r.src.errorf(at, format, args...))
}

// err returns the mistakes in the order of the file; nil for none.
func (r *report) err() error {
	slices.SortStableFunc(r.errs, func(a, b *Error) int {
		return pos{a.Line, a.Column}.compare(pos{b.Line, b.Column})
	})
	var errs []error
	for i, e := range r.errs {
		if i == maxErrors {
			errs = append(errs, fmt.Errorf("%s: and %d more; fix these first", r.src.name, len(r.errs)-i))
			break
		}
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// ErrRestart is in the error of a change that a running site takes up at its next start only.
var ErrRestart = errors.New("restart to change it")
