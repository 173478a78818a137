package ops

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"agentsite/node/logs"
	"agentsite/node/state"

	"github.com/go-json-experiment/json"
)

// ServiceLogOptions say which lines of the service's log are read.
type ServiceLogOptions struct {
	Lines  int        // at most, of those from Level on
	Since  time.Time  // zero for any
	Level  slog.Level // the lowest
	Follow bool       // continue with each new line, until ctx ends
}

// maxLogLine bounds a line that journalctl prints.
const maxLogLine = 256 << 10

// HasServiceLog reports whether systemd keeps the log of the site of a folder.
func HasServiceLog(f state.Folder) bool {
	_, noSystemd := os.Stat(systemdFolder)
	_, noJournal := exec.LookPath("journalctl")
	return f == state.ServiceFolder && noSystemd == nil && noJournal == nil
}

// ReadServiceLog reads the service's log by journalctl, the oldest line first. It returns their number,
// which is 0, too, for a user who may not read it.
func ReadServiceLog(ctx context.Context, o ServiceLogOptions, emit func(logs.Line) error) (n int, err error) {
	args := []string{"--unit=" + restartUnit, "--unit=agentsite-prepare.service", "--output=json", "--no-pager", "--quiet"}
	if !o.Since.IsZero() {
		args = append(args, "--since=@"+strconv.FormatInt(o.Since.Unix(), 10))
	}
	var last []logs.Line // the newest that count
	cursor := ""
	err = journalctl(ctx, append(args, "--lines="+strconv.Itoa(o.read())), func(e journalEntry) error {
		cursor = e.Cursor
		if l := e.line(); e.level >= o.Level {
			if last = append(last, l); len(last) > o.Lines {
				last = last[1:]
			}
		}
		return nil
	})
	for _, l := range last {
		err = cmp.Or(err, emit(l))
	}
	if err != nil || !o.Follow || cursor == "" {
		return len(last), err
	}
	return len(last), journalctl(ctx, append(args, "--follow", "--after-cursor="+cursor), func(e journalEntry) error {
		if l := e.line(); e.level >= o.Level {
			return emit(l)
		}
		return nil
	})
}

// read returns the number of lines to read: more than are wanted where some are below the level.
func (o ServiceLogOptions) read() int {
	if o.Level > slog.LevelInfo {
		return max(o.Lines, 10_000)
	}
	return o.Lines
}

// journalEntry is an entry as journalctl --output=json prints it.
type journalEntry struct {
	Cursor   string `json:"__CURSOR"`
	Micros   string `json:"__REALTIME_TIMESTAMP"`
	Priority string `json:"PRIORITY"`
	Message  any    `json:"MESSAGE"` // a text; otherwise an array of bytes, or null for a long one

	level slog.Level
}

// line returns the entry as a line, and sets its level: the one that the site wrote or, for systemd's own words, that
// of its priority.
func (e *journalEntry) line() logs.Line {
	micros, _ := strconv.ParseInt(e.Micros, 10, 64)
	text, isText := e.Message.(string)
	if !isText {
		text = "(a line that is no text)"
	}
	switch p, err := strconv.Atoi(e.Priority); {
	case err != nil || p == 5 || p == 6:
		e.level = slog.LevelInfo
	case p <= 3:
		e.level = slog.LevelError
	case p == 4:
		e.level = slog.LevelWarn
	default:
		e.level = slog.LevelDebug
	}
	if rest, ok := strings.CutPrefix(text, "time="); ok {
		_, rest, _ = strings.Cut(rest, " level=")
		name, message, ok := strings.Cut(rest, " ")
		if ok && e.level.UnmarshalText([]byte(name)) == nil {
			text = message
		}
	}
	return logs.Line{Time: time.UnixMicro(micros), Level: e.level.String(), Text: text}
}

// journalctl runs journalctl and calls each for every entry. An error of each ends it.
func journalctl(ctx context.Context, args []string, each func(journalEntry) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "journalctl", args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failed := readEntries(out, each)
	if failed != nil {
		cancel()
	}
	if err := cmd.Wait(); err != nil && failed == nil && ctx.Err() == nil {
		return fmt.Errorf("journalctl failed: %w", err)
	}
	return failed
}

// readEntries reads entries, a line each, to the end.
func readEntries(r io.Reader, each func(journalEntry) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLogLine)
	for lines.Scan() {
		var e journalEntry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("journalctl prints what is no entry: %w", err)
		}
		if err := each(e); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
