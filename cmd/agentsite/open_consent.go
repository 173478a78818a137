package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"agentsite/cmd/internal/homepage"
	"agentsite/device"
)

const (
	// A person reads before they answer. An Enter that was meant for something else does not count.
	quietTime   = time.Second
	consentTime = 2 * time.Minute
	maxConsents = 4 // that wait, the one that is asked included
)

// consent asks the person at the terminal for what the page may not do alone, one question at a time.
type consent struct {
	out   io.Writer
	idle  func()        // is called for an empty line without a question
	lines chan string   // closed at the end of the input
	turn  chan struct{} // has a value while a question is asked
	queue chan struct{} // has a value for each question
}

func newConsent(out io.Writer) *consent {
	return &consent{
		out: out, lines: make(chan string), turn: make(chan struct{}, 1), queue: make(chan struct{}, maxConsents),
	}
}

// read reads lines until the input ends.
func (c *consent) read(in io.Reader) {
	defer close(c.lines)
	for s := bufio.NewScanner(in); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		select {
		case c.lines <- line:
		case c.turn <- struct{}{}: // nothing is asked
			if line == "" && c.idle != nil {
				c.idle()
			}
			<-c.turn
		}
	}
}

// confirm asks the person whether an act may be done. It returns nil for their Enter, and otherwise a fault.
func (c *consent) confirm(ctx context.Context, a homepage.Act) error {
	// The name again: a long text has moved the first line out of sight.
	return c.ask(ctx, describeAct(a, lineWidth(c.out)), a.Method+" on "+clean(a.Site))
}

// ask shows what is to be done and asks whether to allow it. It returns nil for the person's Enter, and otherwise
// a fault.
func (c *consent) ask(ctx context.Context, says, what string) error {
	select {
	case c.queue <- struct{}{}:
		defer func() { <-c.queue }()
	default:
		return device.Faultf(device.Busy, "the terminal waits for an answer to others already")
	}
	ctx, cancel := context.WithTimeout(ctx, consentTime)
	defer cancel()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return errNoConsent
	}
	fmt.Fprint(c.out, says)
	for quiet := time.After(quietTime); quiet != nil; {
		select {
		case <-quiet:
			quiet = nil
		case _, more := <-c.lines:
			if !more {
				return homepage.ErrNoTerminal
			}
		case <-ctx.Done():
			fmt.Fprintln(c.out, withdrawn(ctx, "The page does not ask any more."))
			return errNoConsent
		}
	}
	fmt.Fprintf(c.out, "Press Enter to allow %s, or type n and Enter to refuse: ", what)
	select {
	case line, more := <-c.lines:
		switch {
		case !more:
			return homepage.ErrNoTerminal
		case line == "":
			fmt.Fprintln(c.out, "Allowed.")
			return nil
		}
		fmt.Fprintln(c.out, "Refused.")
		return device.Faultf(device.Denied, "refused in the terminal of agentsite open")
	case <-ctx.Done():
		fmt.Fprintln(c.out, "\n"+withdrawn(ctx,
			"The page does not ask any more, or too much time has passed. Nothing was done."))
		return errNoConsent
	}
}

var errNoConsent = device.Faultf(device.Expired,
	"nobody pressed Enter in the terminal where agentsite open runs, within %v", consentTime)

// withdrawn says why a question is not asked any more.
func withdrawn(ctx context.Context, usual string) string {
	if by, ok := errors.AsType[homepage.Confirmed](context.Cause(ctx)); ok {
		return clean(by.Error())
	}
	return usual
}

// describeAct returns what exactly is asked for, as lines of a width, 0 for any, that no text of the page or a site
// can forge: theirs begin with blanks, also where a terminal would break them.
func describeAct(a homepage.Act, width int) string {
	var b strings.Builder
	b.WriteString("\n")
	line := func(ours, theirs string) {
		b.WriteString(ours + withBreaks(clean(theirs), cellsOf(ours), width) + "\n")
	}
	line("The page asks for an owner's act on ", fmt.Sprintf("%s: %s (%s)", a.Site, a.Description, a.Method))
	if c := a.Change; c == nil {
		line("  with ", oneLine(a.Params))
	} else {
		line("  with ", oneLine(c.Rest))
		line("  and a text with the digest ", c.Digest)
		b.WriteString("It changes these lines of the configuration:\n")
		for _, l := range c.Lines {
			line("  ", string(escape([]byte(l))))
		}
	}
	if a.Call != nil {
		b.WriteString("It is about the call of:\n")
		line("  ", a.Call.Who)
		line("  ", a.Call.Tool+" "+oneLine(a.Call.Args))
		for _, via := range a.Call.Via {
			line("  by way of ", via)
		}
	}
	return b.String()
}
