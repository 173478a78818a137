package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentsite/agents/rule/trial"
	"agentsite/cmd/internal/chart"
	"agentsite/device"
	"agentsite/node/acts"
	ownerclient "agentsite/transport/owner/client"

	"github.com/spf13/cobra"
)

// tryTimeout bounds a trial of a year on a small board.
const tryTimeout = 10 * time.Minute

func (a *app) rulesTryCommand() *cobra.Command {
	return a.tryCommand(&cobra.Command{
		Use: "try [RULE]", Short: "Show what rules would have done in the past, beside what happened",
		Args: optional("RULE"),
		Long: `Run the rules of the site's configuration, or one of them, over the stored readings, with
the limits of the outputs: the moves that they would have made, how long outputs would have
been away from their safe values, and which moves the limits would have refused. Beside
them stands what happened, whoever moved the output. Nothing is moved.

The past does not react: what a rule would have heated stays as cold as it was. A trial
begins as the site does after a start, nobody but the rules moves anything in it, and the
rules' permissions are not asked. Where readings are not stored any more, the last one of
each minute is used.`,
		Example:           "  agentsite rules try frost\n  agentsite rules try --since 30d",
		ValidArgsFunction: a.completeRules,
	})
}

// tryCommand gives cmd, whose arguments are names of rules, the flags and the function to try them
// over the past.
func (a *app) tryCommand(cmd *cobra.Command) *cobra.Command {
	since := duration(7 * 24 * time.Hour)
	var from, to moment
	cmd.RunE = a.asOwner(func(ctx context.Context, s *session, args []string) error {
		if from.set() && cmd.Flags().Changed("since") {
			return usagef("--since and --from say the same: use one of them")
		}
		p := trial.Request{Rules: args, To: to.Time, From: from.Time}
		if !to.set() {
			now, err := askOwner(ctx, s, s.Owner.Access) // by the site's clock, as its history
			if err != nil {
				return err
			}
			p.To = now.Time
		}
		if !from.set() {
			p.From = p.To.Add(-time.Duration(since))
		}
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		r, err := ownerclient.Call(ctx, s.Owner, acts.TryAct, p)
		if err != nil {
			return a.unreached(err)
		}
		if a.json {
			return a.printJSON(r)
		}
		return a.printTrial(r)
	})
	cmd.Flags().Var(&since, "since", "how far back as a time, such as 12h or 30d; at most 366d")
	cmd.Flags().Var(&from, "from", "the beginning: a date, a date and a time here, or RFC 3339")
	cmd.Flags().Var(&to, "to", "the end, in the same way; now without it")
	return cmd
}

func (a *app) printTrial(r trial.Result) error {
	a.tell("From %s to %s, over %s. The past does not react to moves that were not made.",
		r.From.Local().Format(clockForm), r.To.Local().Format(clockForm), counted(r.Readings, "stored reading"))
	fmt.Fprintln(a.out)
	if len(r.Rules) == 1 && len(r.Outputs) == 1 && a.out.terminal() {
		if err := a.drawTrial(r); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	var rows, refused [][]string
	for _, of := range r.Rules {
		if of.Mistake != "" {
			rows = append(rows, []string{of.Rule, "not tried: " + of.Mistake, "", ""})
		}
		for _, u := range of.Outputs {
			rows = append(rows, []string{of.Rule, u.Output, strconv.Itoa(u.Moves), timeAway(u.Use)})
			for _, w := range u.Refused {
				refused = append(refused, []string{of.Rule, times(w.Count), w.First.Local().Format(clockForm), w.Reason})
			}
		}
	}
	if err := table(a.out, []string{"RULE", "OUTPUT", "MOVES", "AWAY FROM SAFE"}, rows); err != nil {
		return err
	}
	var outputs [][]string
	for _, o := range r.Outputs {
		unknown := ""
		if o.Was.Unknown > 0 {
			unknown = span(o.Was.Unknown)
		}
		outputs = append(outputs, []string{o.Output, strconv.Itoa(o.Would.Moves), timeAway(o.Would), strconv.Itoa(o.Was.Moves), timeAway(o.Was.Use), unknown})
	}
	if len(outputs) > 0 {
		fmt.Fprintln(a.out)
		if err := table(a.out, []string{"OUTPUT", "WOULD MOVE", "WOULD BE AWAY", "MOVED", "WAS AWAY", "NOT KNOWN"}, outputs); err != nil {
			return err
		}
	}
	if len(r.Unproven) > 0 {
		fmt.Fprintln(a.out)
		a.tell("Not tried: the expect of %s. What was recorded is no effect of a move that was not made.",
			strings.Join(r.Unproven, ", "))
	}
	if len(refused) > 0 {
		fmt.Fprintln(a.out)
		return table(a.out, []string{"RULE", "REFUSED", "FIRST", "BECAUSE"}, refused)
	}
	return nil
}

const clockForm = "2006-01-02 15:04"

func timeAway(u trial.Use) string {
	if u.Seconds == 0 {
		return "never"
	}
	return span(u.Seconds)
}

// drawTrial draws one output: the result of the trial above the real history.
func (a *app) drawTrial(r trial.Result) error {
	o := r.Outputs[0]
	would, was := []trial.Was{{Time: r.From, Value: o.Safe}}, o.Was.Changes
	for _, m := range r.Moves {
		would = append(would, trial.Was{Time: m.Time, Value: m.Value})
	}
	end := func(all []trial.Was, more int) time.Time {
		if more > 0 && len(all) > 0 { // the rest was left out of the answer
			return all[len(all)-1].Time
		}
		return r.To
	}
	name := clean(o.Output)
	all := []chart.Series{
		{Name: name + " would have been", Spans: spansAway(would, end(would, r.MoreMoves), o.Safe)},
		{Name: name + " was", Spans: spansAway(was, end(was, o.Was.More), o.Safe)},
	}
	h := history{app: a}
	lines := chart.Draw(all, chart.Options{From: r.From.Local(), To: r.To.Local(),
		Width: h.out.width(), Height: 4, ASCII: !unicodeTerminal()})
	for _, line := range lines {
		if _, err := fmt.Fprintln(a.out, line); err != nil {
			return err
		}
	}
	return nil
}

// spansAway returns when an output was away from its safe value, and thin when it was not.
func spansAway(all []trial.Was, end time.Time, safe device.Value) (spans []chart.Span) {
	for i, c := range all {
		if i+1 < len(all) {
			spans = appendAway(spans, c, all[i+1].Time, safe)
		} else {
			spans = appendAway(spans, c, end, safe)
		}
	}
	return spans
}

func appendAway(spans []chart.Span, c trial.Was, to time.Time, safe device.Value) []chart.Span {
	row := "away"
	if safe.Type() == device.TypeBool {
		row = device.Bool(!safe.Bool()).String()
	}
	if c.Value.IsZero() {
		return spans
	}
	return append(spans, chart.Span{From: c.Time, To: to, Row: row, Off: c.Value == safe})
}
