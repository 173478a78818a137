package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agentsite/agents"
	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/qr"
	"agentsite/node/access"
	"agentsite/node/state"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (a *app) consoleCommand() *cobra.Command {
	every := 5 * time.Second
	cmd := &cobra.Command{
		Use: "console", GroupID: groupBoard, Args: noArgs,
		Short: "Show readings, and where the site is, on the board's screen",
		Long: `Show the latest readings of the site on this machine and update them. Until the site has
an owner, also show how to claim it, afterwards the address of its page, both with a QR code.
The screen is for reading only. Without a terminal, print everything once.`,
		RunE: a.onMachine(a.siteFolder, func(ctx context.Context, folder state.Folder, _ []string) error {
			if every < time.Second {
				return usagef("--every takes a time of at least 1s, such as 5s")
			}
			if !a.out.terminal() {
				now := a.screen(ctx, folder)
				if now.err == nil {
					_, now.err = a.out.Write([]byte(now.page(0, 0)))
				}
				return now.err
			}
			return a.console(ctx, folder, every)
		}),
	}
	cmd.Flags().DurationVar(&every, "every", every, "how often to update the screen")
	return cmd
}

// console redraws the terminal until ctx ends, whether the site runs or not.
func (a *app) console(ctx context.Context, folder state.Folder, every time.Duration) error {
	const clear, hideCursor, showCursor = "\x1b[H\x1b[J", "\x1b[?25l", "\x1b[?25h" // of a Linux console
	fmt.Fprint(a.out, hideCursor)
	defer fmt.Fprint(a.out, showCursor)
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
		if _, err := fmt.Fprint(a.out, clear+page); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-again.C:
		}
	}
	return nil
}

// screen is the content of the console.
type screen struct {
	at     time.Time
	status agents.Status
	claim  string   // the address to claim the site by, "" for a site with an owner
	pages  []string // where a site with an owner has its page, the best first
	qr     string   // the address as a QR code
	table  string   // of the latest readings
	err    error    // why the site does not answer
}

func (a *app) screen(ctx context.Context, folder state.Folder) (s screen) {
	s.at = time.Now()
	capture := *a // prints into the screen
	var text strings.Builder
	capture.out, capture.json = &output{Writer: &text}, false
	s.err = capture.with(func(session *session) error {
		var err error
		if s.status, err = session.status(ctx); err != nil {
			return err
		}
		now, err := session.latest(ctx, nil)
		if err != nil {
			return err
		}
		if all, err := askOwner(ctx, session, session.Owner.Access); err == nil && len(all.Owners) > 0 {
			s.pages = pageAddresses(all.At)
		}
		return capture.readTable(now, secondsLeft(s.status))
	})
	s.table = text.String()
	if i, ok, err := ops.ReadInvitation(folder); ok && err == nil {
		s.claim, s.qr = i.String(), qrCode(i)
	} else if len(s.pages) > 0 {
		s.qr = qr.Draw(s.pages[0])
	}
	return s
}

// pageAddresses returns where a site with such addresses has its page, on its network: first by the name that
// derives from its key, which stays when the address changes.
func pageAddresses(of []string) (all []string) {
	for _, at := range slices.Backward(of) {
		if !strings.HasPrefix(at, "/") { // a multiaddress
			all = append(all, "https://"+at+"/")
		}
	}
	return all
}

// minColumns are those of readings beside a QR code.
const minColumns = 30

// page renders the screen within that many columns and rows; 0 is for no limit. It leaves out parts
// that do not fit, the QR code first.
func (s screen) page(columns, rows int) string {
	var b strings.Builder
	line := func(text string) { b.WriteString(cut(text, columns) + "\n") }
	if s.err != nil {
		line(s.at.Format(time.TimeOnly) + "  no site is running here yet")
		line("")
		line(explain(s.err, ""))
		return b.String()
	}
	line(fmt.Sprintf("%s  %s  running for %s", s.at.Format(time.TimeOnly), s.status.Site, span(s.status.Uptime)))
	if s.status.Stopped {
		line("EMERGENCY STOP: outputs stay at their safe values until agentsite reset")
	}
	line("")
	drawn := "" // the QR code
	table := strings.Split(strings.TrimSuffix(s.table, "\n"), "\n")
	if left := access.ClaimWindow - time.Duration(s.status.Uptime*float64(time.Second)); s.claim != "" && left <= 0 {
		line("This site has no owner. Switch the board off and on again to claim it.")
		line("")
	} else if s.claim != "" {
		fmt.Fprintf(&b, "This site has no owner yet. To claim it within %s, on your own computer:\n  agentsite claim %s\n\n", span(left.Seconds()), state.ShellQuote(s.claim))
		drawn = s.qr
	} else if len(s.pages) > 0 {
		line("The page of this site, for phones and computers in its network:")
		line("  " + strings.Join(s.pages, "  "))
		line("")
		drawn = s.qr
	}
	if columns == 0 && drawn != "" {
		b.WriteString(drawn + "\n")
	}
	room := len(table)
	if rows > 0 {
		room = max(rows-1-height(b.String(), columns), 1)
	}
	var picture []string // rows of the code, beside those of the table
	wide := utf8.RuneCountInString(drawn[:max(strings.IndexByte(drawn, '\n'), 0)])
	if left := columns - 1 - wide; wide > 0 && left >= minColumns && strings.Count(drawn, "\n") <= room {
		columns, picture = left, strings.Split(strings.TrimSuffix(qr.Color(drawn), "\n"), "\n")
	}
	if len(table) > room {
		table = append(table[:room-1], fmt.Sprintf("… and %d more: agentsite read", len(table)-room+1))
	}
	for i := range max(len(table), len(picture)) {
		if i < len(table) {
			b.WriteString(cut(table[i], columns))
		}
		if i < len(picture) {
			fmt.Fprintf(&b, "\x1b[%dG%s", columns+2, picture[i])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// height returns the number of screen rows that a text takes.
func height(text string, columns int) (rows int) {
	for row := range strings.Lines(text) {
		rows++
		if columns > 0 {
			rows += max(utf8.RuneCountInString(strings.TrimRight(row, "\n"))-1, 0) / columns
		}
	}
	return rows
}

// cut shortens a row to that many columns.
func cut(row string, columns int) string {
	row = clean(row)
	if runes := []rune(row); columns > 0 && len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return row
}
