package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// terminal reports whether standard input is a terminal.
func (a *app) terminal() (*os.File, bool) {
	in, ok := a.in.(*os.File)
	return in, ok && term.IsTerminal(int(in.Fd()))
}

// prompt asks the person at the terminal, and returns the line that they type. A hidden
// one is not shown.
func (a *app) prompt(ctx context.Context, question string, hidden bool) (string, error) {
	in, ok := a.terminal()
	if !ok {
		return "", errors.New("standard input is not a terminal")
	}
	before, err := term.GetState(int(in.Fd()))
	if err != nil {
		return "", err
	}
	fmt.Fprint(a.errs, question)
	read := readLine
	if hidden {
		defer fmt.Fprintln(a.errs) // for the end of the line, which is not shown
		read = func(in *os.File) ([]byte, error) { return term.ReadPassword(int(in.Fd())) }
	}
	var line []byte
	ended := make(chan error, 1)
	go func() {
		var err error
		line, err = read(in)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			return "", fmt.Errorf("nothing was typed: %w", err)
		}
		return strings.TrimRight(string(line), "\r\n"), nil
	case <-ctx.Done(): // the terminal shows again what is typed
		term.Restore(int(in.Fd()), before)
		return "", errors.New("interrupted")
	}
}

// readLine reads a line of a terminal, which hands out one at a time.
func readLine(in *os.File) ([]byte, error) {
	line := make([]byte, 256)
	n, err := in.Read(line)
	return line[:n], err
}
