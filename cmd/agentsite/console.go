package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/site"
	"agentsite/node/access"
	"agentsite/node/state"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (a *app) consoleCommand() *cobra.Command {
	every := 5 * time.Second
	cmd := &cobra.Command{
		Use: "console", GroupID: groupBoard, Args: noArgs,
		Short: "Show the site on a screen of the board: readings, and how to claim it",
		Long: `Show the latest readings of the site on this machine again and again, and as long as
nobody owns it how to claim it, also as a picture for a telephone. It is for a screen
that nobody types at, and takes no orders. Without a terminal it shows them once.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.local("console"); err != nil {
				return err
			}
			if every < time.Second {
				return usagef("--every takes a time such as 5s, and one second at least")
			}
			folder, err := a.siteFolder()
			if err != nil {
				return err
			}
			if !a.out.terminal() {
				now := a.screen(cmd.Context(), folder)
				if now.err == nil {
					_, now.err = a.out.Write([]byte(now.page(0, 0)))
				}
				return now.err
			}
			return a.console(cmd.Context(), folder, every)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().DurationVar(&every, "every", every, "how often the screen is written anew")
	cmd.RegisterFlagCompletionFunc("every", cobra.NoFileCompletions)
	return cmd
}

// console fills the terminal anew until ctx ends, whether the site runs or not.
func (a *app) console(ctx context.Context, folder state.Folder, every time.Duration) error {
	const empty, noCursor, cursor = "\x1b[H\x1b[J", "\x1b[?25l", "\x1b[?25h" // as a Linux console has them
	fmt.Fprint(a.out, noCursor)
	defer fmt.Fprint(a.out, cursor)
	again := time.NewTicker(every)
	defer again.Stop()
	for ctx.Err() == nil {
		columns, rows := 80, 25
		if f, ok := a.out.Writer.(*os.File); ok {
			if c, r, err := term.GetSize(int(f.Fd())); err == nil && c > 0 && r > 0 {
				columns, rows = c, r
			}
		}
		page := a.screen(ctx, folder).page(columns, rows)
		if _, err := fmt.Fprint(a.out, empty+page); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-again.C:
		}
	}
	return nil
}

// screen is what there is to show of a site.
type screen struct {
	at     time.Time
	status statusResult
	claim  string // the address to claim it by, "" where somebody owns it
	qr     string // the same as a picture
	table  string // of the latest readings
	err    error  // why there is nothing but this
}

func (a *app) screen(ctx context.Context, folder state.Folder) (s screen) {
	s.at = time.Now()
	quiet := *a // what it prints goes into the screen
	var text strings.Builder
	quiet.out, quiet.json = &output{Writer: &text}, false
	s.err = quiet.with(func(session *session) error {
		if _, err := session.ask(ctx, "site_status", nil, &s.status); err != nil {
			return err
		}
		var now readResult
		if _, err := session.latest(ctx, nil, &now); err != nil {
			return err
		}
		left := make(map[string]float64)
		for _, h := range s.status.Moved {
			left[h.Output] = h.Left
		}
		return quiet.readTable(now.Readings, left)
	})
	s.table = text.String()
	if i, ok, err := ops.ReadInvitation(folder); ok && err == nil {
		s.claim, s.qr = i.String(), site.Picture(i)
	}
	return s
}

// page is the screen as text, within that many columns and rows; 0 is for as many as it
// takes. What does not fit is left out, the picture first.
func (s screen) page(columns, rows int) string {
	var b strings.Builder
	line := func(text string) { b.WriteString(cut(text, columns) + "\n") }
	if s.err != nil {
		line(s.at.Format(time.TimeOnly) + "  no site runs here yet")
		line("")
		line(explain(s.err, ""))
		return b.String()
	}
	line(fmt.Sprintf("%s  %s  runs for %s", s.at.Format(time.TimeOnly), s.status.Site, span(s.status.Uptime)))
	if s.status.Stopped {
		line("THE EMERGENCY STOP IS LATCHED: outputs stay at their safe values until agentsite reset")
	}
	line("")
	table := strings.Split(strings.TrimSuffix(s.table, "\n"), "\n")
	if left := access.ClaimWindow - time.Duration(s.status.Uptime*float64(time.Second)); s.claim != "" && left <= 0 {
		line("Nobody owns this site. Switch the board off and on again to claim it.")
		line("")
	} else if s.claim != "" {
		fmt.Fprintf(&b, "Nobody owns this site yet. Within %s, on your own machine:\n  agentsite claim %s\n\n", span(left.Seconds()), state.ShellQuote(s.claim))
		const least = 6 // rows of readings beside a picture
		if fits(b.String()+s.qr, columns, rows-min(least, len(table))) {
			b.WriteString(s.qr + "\n")
		}
	}
	room := len(table)
	if rows > 0 {
		room = max(rows-1-height(b.String(), columns), 1)
	}
	for i, row := range table {
		if i == room-1 && len(table) > room {
			line(fmt.Sprintf("… and %d more: agentsite read", len(table)-i))
			break
		}
		line(row)
	}
	return b.String()
}

// fits reports whether a text has room on a screen, and no row of it is broken but those
// of words.
func fits(text string, columns, rows int) bool {
	if columns <= 0 {
		return true
	}
	for row := range strings.SplitSeq(text, "\n") {
		if strings.ContainsAny(row, "█▀▄") && utf8.RuneCountInString(row) > columns {
			return false
		}
	}
	return height(text, columns) < rows
}

// height is how many rows of a screen a text takes.
func height(text string, columns int) (rows int) {
	for row := range strings.Lines(text) {
		rows++
		if columns > 0 {
			rows += max(utf8.RuneCountInString(strings.TrimRight(row, "\n"))-1, 0) / columns
		}
	}
	return rows
}

// cut is what of a row is within that many columns.
func cut(row string, columns int) string {
	row = clean(row)
	if runes := []rune(row); columns > 0 && len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return row
}
