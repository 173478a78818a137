package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// maxTyped bounds a line that is typed.
const maxTyped = 4 << 10

// typist returns a function that reads the next line of the input, at a terminal with a prompt, editing
// and history, and the channel of the lines that are typed while nobody reads. Both end with io.EOF, or
// closed, when ctx or the input does.
func (a *app) typist(ctx context.Context) (next func() (string, error), lines <-chan string) {
	in, person := a.terminal()
	errs, _ := a.errs.(*os.File)
	if !person || errs == nil || !term.IsTerminal(int(errs.Fd())) {
		lines = typed(ctx, a.in)
		return func() (string, error) {
			if person {
				fmt.Fprint(a.errs, "> ")
			}
			select {
			case line, ok := <-lines:
				if ok {
					return line, nil
				}
			case <-ctx.Done():
			}
			return "", io.EOF
		}, lines
	}
	k := &keyboard{ctx: ctx, in: in, screen: errs, typed: read(ctx, in)}
	k.editor = term.NewTerminal(k, "> ")
	return k.edit, k.typed
}

// typed returns the lines of a reader, until ctx or the reader ends. The goroutine behind it may wait
// for a last line until the program ends.
func typed(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, maxTyped+2)
		for scanner.Scan() {
			select {
			case lines <- strings.TrimSpace(scanner.Text()):
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// read returns what a terminal hands out: lines, or keys while a line is edited.
func read(ctx context.Context, in *os.File) <-chan string {
	pieces := make(chan string)
	go func() {
		defer close(pieces)
		for b := make([]byte, maxTyped); ; {
			n, err := in.Read(b)
			if err != nil || n == 0 {
				return
			}
			select {
			case pieces <- string(b[:n]):
			case <-ctx.Done():
				return
			}
		}
	}()
	return pieces
}

// keyboard edits the lines that a person types. The terminal is in raw mode only while a line is edited:
// meanwhile Ctrl-C ends the input, and else it interrupts the program.
type keyboard struct {
	ctx    context.Context
	in     *os.File
	screen io.Writer
	typed  <-chan string
	rest   string // of what was typed, for the editor
	editor *term.Terminal
}

// edit reads a line with the editor.
func (k *keyboard) edit() (string, error) {
	fd := int(k.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer term.Restore(fd, before)
	if width, height, err := term.GetSize(fd); err == nil {
		k.editor.SetSize(cmp.Or(width, 80), cmp.Or(height, 24))
	}
	line, err := k.editor.ReadLine()
	if err != nil {
		fmt.Fprint(k.screen, "\r\n")
	}
	return strings.TrimSpace(line), err
}

// Read implements io.Reader for the editor.
func (k *keyboard) Read(b []byte) (int, error) {
	for k.rest == "" {
		ok := false
		select {
		case k.rest, ok = <-k.typed:
		case <-k.ctx.Done():
		}
		if !ok {
			return 0, io.EOF
		}
	}
	n := copy(b, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// Write implements io.Writer for the editor.
func (k *keyboard) Write(b []byte) (int, error) { return k.screen.Write(b) }
