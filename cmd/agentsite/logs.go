package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"agentsite/cmd/internal/ops"
	"agentsite/device"
	"agentsite/node/logs"

	"github.com/spf13/cobra"
)

// logWait bounds the site's wait for a new line before it answers a command that follows.
const logWait = 20 * time.Second

func (a *app) logsCommand() *cobra.Command {
	var o ops.ServiceLogOptions
	var since duration
	cmd := &cobra.Command{
		Use: "logs", GroupID: groupEveryday, Args: noArgs,
		Short: "Show the log of the site",
		Long: `Show the newest lines of the site's log, the oldest first; with --follow also each new one, until
Ctrl-C.

For the service on this machine they come from systemd's journal, which has those of earlier
starts, too. For all other sites they come from the site itself, which keeps its newest ones in
memory, some hundred, for its owners. The process that drives the outputs logs to the journal,
or the terminal, only.`,
		Example: "  agentsite logs --follow\n  agentsite logs --since 1h --level warn\n" +
			"  agentsite logs --site shed --lines 20",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.refuseURL("logs"); err != nil {
				return err
			}
			if o.Lines < 1 || o.Lines > maxLogged {
				return usagef("--lines takes a number from 1 to %d", maxLogged)
			}
			if since > 0 {
				o.Since = time.Now().Add(-time.Duration(since))
			}
			folder, err := a.siteFolder()
			if err != nil {
				return err
			}
			if a.namedSite() == "" && a.peer == "" && ops.HasServiceLog(folder) {
				n, err := ops.ReadServiceLog(cmd.Context(), o, a.printLogLine)
				if n > 0 || err != nil {
					return err
				}
			}
			return a.siteLog(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "print each new line until Ctrl-C")
	cmd.Flags().Var(&since, "since", "how far back as a time, such as 10m or 7d")
	cmd.Flags().IntVarP(&o.Lines, "lines", "n", 100, "at most so many lines")
	cmd.Flags().TextVar(&o.Level, "level", slog.LevelInfo,
		"the minimum level: debug, info, warn or error; debug needs a site that logs it (run --log-level)")
	cmd.RegisterFlagCompletionFunc("level", completeLevels)
	return cmd
}

// maxLogged bounds the lines that are shown at first.
const maxLogged = 10_000

// siteLog prints the lines that the site keeps. While it follows, it waits for a site that starts again.
func (a *app) siteLog(ctx context.Context, o ops.ServiceLogOptions) error {
	s, err := a.dial()
	if err != nil {
		return err
	}
	defer func() { s.Close() }()
	f := logs.Filter{Level: o.Level.String()}
	ended := false
	for first := true; ; {
		page, err := callOwner(ctx, s, logs.ReadAct, f)
		switch {
		case ctx.Err() != nil && o.Follow:
			return nil
		case err != nil && (first || exitCode(err) == exitDenied):
			return err
		case err != nil:
			if !ended {
				a.note("the site ended; waiting until it runs again (Ctrl-C ends this)")
			}
			ended = true
			if device.Sleep(ctx, time.Second) != nil {
				return nil
			}
			s.redial()
			continue
		}
		if err := a.printPage(page, o, first); err != nil || !o.Follow {
			return err
		}
		f.Run, f.After, f.Wait = page.Run, page.Last, logWait.Seconds()
		first, ended = false, false
	}
}

// printPage prints the lines of a page; of the first one, the newest that o asks for.
func (a *app) printPage(p logs.Page, o ops.ServiceLogOptions, first bool) error {
	lines := p.Lines
	if first {
		for len(lines) > 0 && (len(lines) > o.Lines || lines[0].Time.Before(o.Since)) {
			lines = lines[1:]
		}
	} else if p.Lost {
		a.note("some lines are missing here: the site logged faster than they were read")
	}
	for _, l := range lines {
		if err := a.printLogLine(l); err != nil {
			return err
		}
	}
	if first && len(lines) == 0 && !o.Follow && !a.json {
		return a.say("no line of the log is as asked for: the site keeps the newest ones of this run only")
	}
	return nil
}

// printLogLine prints a line of the log.
func (a *app) printLogLine(l logs.Line) error {
	if a.json {
		return a.printJSON(l)
	}
	message, attributes := splitLog(clean(l.Text))
	level := clean(l.Level)
	if len(level) > 8 {
		level = level[:8]
	}
	head := l.Time.Local().Format("2006-01-02 15:04:05") + " "
	text := withBreaks(strings.TrimSpace(message+" "+attributes), cellsOf(head)+6, lineWidth(a.out))
	if rest, ok := strings.CutPrefix(text, message); ok { // not where a break is in it
		text = message + a.out.paint(styleDim, rest)
	}
	if !strings.HasPrefix(text, "\n") {
		level, text = pad(level, 5), " "+text
	}
	shown := a.out.paint(levelStyle(strings.TrimSpace(level)), level)
	_, err := fmt.Fprintf(a.out, "%s%s%s\n", a.out.paint(styleDim, head), shown, text)
	return err
}

// splitLog returns the message of a line, without its quotes, and its attributes.
func splitLog(text string) (message, attributes string) {
	rest, ok := strings.CutPrefix(text, slog.MessageKey+"=")
	if !ok {
		return text, ""
	}
	if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		if message, err = strconv.Unquote(quoted); err == nil {
			return clean(message), strings.TrimPrefix(rest[len(quoted):], " ")
		}
	}
	message, attributes, _ = strings.Cut(rest, " ")
	return message, attributes
}

// levelStyle returns the style of a level of the log.
func levelStyle(level string) style {
	switch level {
	case slog.LevelError.String():
		return styleWrong
	case slog.LevelWarn.String():
		return styleWarning
	}
	return styleDim
}
