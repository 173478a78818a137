package logs

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
)

// ReadAct is the owners' method on the log, beside those of node/acts.
const ReadAct op.Name[Filter, Page] = "owner/log" // answers the newest lines, or waits for the next

// maxWait bounds a request that waits for a line.
const maxWait = 25 * time.Second

// Filter says which lines a request is for.
type Filter struct {
	// Run and After are those of the page before: only later lines are answered. A Run of an earlier start of the
	// site answers all.
	Run   string  `json:"run,omitzero"`
	After uint64  `json:"after,omitzero"`
	Level string  `json:"level,omitzero"`        // the lowest; INFO unless set
	Wait  float64 `json:"wait_seconds,omitzero"` // the longest wait for a line, if there is none yet; at most 25
}

// Page answers ReadAct.
type Page struct {
	Lines []Line `json:"lines"`
	Run   string `json:"run"` // for the next request, as the next
	Last  uint64 `json:"last"`
	Lost  bool   `json:"lost,omitzero"` // older lines, or those between the requests, are gone
}

// Operations returns the owners' operations.
func (r *Ring) Operations() []op.Row {
	return []op.Row{op.ForOwners(ReadAct, agents.Reads, "logs",
		"Tell the newest lines of the log, which are kept in memory; or wait for the next.",
		func(ctx context.Context, _ agents.Principal, f Filter) (Page, error) {
			if f.Wait < 0 || f.Wait > maxWait.Seconds() {
				return Page{}, device.Faultf(device.Invalid, "wait_seconds is 0 to %.0f, not %v", maxWait.Seconds(), f.Wait)
			}
			var level slog.Level
			if err := level.UnmarshalText([]byte(cmp.Or(f.Level, "INFO"))); err != nil {
				return Page{}, device.Faultf(device.Invalid, "level is debug, info, warn or error, not %.20q", f.Level)
			}
			return r.read(ctx, f, level), nil
		})}
}

// read returns the lines of a filter. It waits for a line where there is none, at most as long as the filter says.
func (r *Ring) read(ctx context.Context, f Filter, level slog.Level) Page {
	if r == nil {
		return Page{Lines: []Line{}}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(f.Wait*float64(time.Second)))
	defer cancel()
	p := Page{Lines: []Line{}, Run: r.run, Last: f.After}
	if f.Run != r.run {
		p.Last = 0
	}
	for {
		lines, more := r.since(p.Last)
		if len(lines) > 0 {
			p.Lost = p.Lost || lines[0].Seq > p.Last+1
			p.Last = lines[len(lines)-1].Seq
		}
		for _, l := range lines {
			if l.level >= level {
				p.Lines = append(p.Lines, l)
			}
		}
		if len(p.Lines) > 0 {
			return p
		}
		select {
		case <-more:
		case <-ctx.Done():
			return p
		}
	}
}
