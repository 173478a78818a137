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
	cmd, flags := a.tryCommand(&cobra.Command{
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
		Example: "  agentsite rules try frost\n  agentsite rules try --since 30d\n" +
			"  agentsite rules try --config agentsite.yaml --readings day.csv",
		ValidArgsFunction: a.completeRules,
	})
	return a.offlineTrial(cmd, flags)
}

// trialFlags are the flags of a trial over any past.
type trialFlags struct {
	since    duration
	from, to moment
	moves    bool
	zone     *time.Location // of the times that are printed
	offline  bool           // what really happened to the outputs is not known
}

// request returns the request that the flags stand for, which ends at now if they name no end.
func (f *trialFlags) request(rules []string, now time.Time) trial.Request {
	p := trial.Request{Rules: rules, From: f.from.Time, To: f.to.Time}
	if !f.to.set() {
		p.To = now
	}
	if !f.from.set() {
		p.From = p.To.Add(-time.Duration(f.since))
	}
	return p
}

// tryCommand gives cmd, whose arguments are names of rules, the flags and the function to try them
// over the past.
func (a *app) tryCommand(cmd *cobra.Command) (*cobra.Command, *trialFlags) {
	f := &trialFlags{since: duration(7 * 24 * time.Hour), zone: time.Local}
	cmd.RunE = a.asOwner(func(ctx context.Context, s *session, args []string) error {
		if f.from.set() && cmd.Flags().Changed("since") {
			return usagef("--since and --from say the same: use one of them")
		}
		var now time.Time
		if !f.to.set() {
			access, err := askOwner(ctx, s, s.Owner.Access) // by the site's clock, as its history
			if err != nil {
				return err
			}
			now = access.Time
		}
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		r, err := ownerclient.Call(ctx, s.Owner, acts.TryAct, f.request(args, now))
		if err != nil {
			return a.unreached(err)
		}
		return a.showTrial(r, f)
	})
	cmd.Flags().Var(&f.since, "since", "how far back as a time, such as 12h or 30d; at most 366d")
	cmd.Flags().Var(&f.from, "from", "the beginning: a date, a date and a time here, or RFC 3339")
	cmd.Flags().Var(&f.to, "to", "the end, in the same way; now without it")
	cmd.Flags().BoolVar(&f.moves, "moves", false, "also list each move")
	return cmd, f
}

func (a *app) showTrial(r trial.Result, f *trialFlags) error {
	if a.json {
		return a.printJSON(r)
	}
	if err := a.printTrial(r, f); err != nil || !f.moves {
		return err
	}
	var rows [][]string
	for _, m := range r.Moves {
		rows = append(rows, []string{m.Time.In(f.zone).Format(time.DateTime), m.Output, m.Value.String(), m.Rule, m.Cause})
	}
	if r.MoreMoves > 0 {
		rows = append(rows, []string{counted(r.MoreMoves, "more move"), "", "", "", ""})
	}
	fmt.Fprintln(a.out)
	return table(a.out, []string{"TIME", "OUTPUT", "VALUE", "RULE", "ENDED BY"}, rows)
}

func (a *app) printTrial(r trial.Result, f *trialFlags) error {
	a.tell("From %s to %s, over %s. The past does not react to moves that were not made.",
		r.From.In(f.zone).Format(clockForm), r.To.In(f.zone).Format(clockForm), counted(r.Readings, "stored reading"))
	fmt.Fprintln(a.out)
	if len(r.Rules) == 1 && len(r.Outputs) == 1 && a.out.terminal() {
		if err := a.drawTrial(r, f.zone); err != nil {
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
				refused = append(refused, []string{of.Rule, times(w.Count), w.First.In(f.zone).Format(clockForm), w.Reason})
			}
		}
	}
	if err := table(a.out, []string{"RULE", "OUTPUT", "MOVES", "AWAY FROM SAFE"}, rows); err != nil {
		return err
	}
	var outputs [][]string
	head := []string{"OUTPUT", "WOULD MOVE", "WOULD BE AWAY", "MOVED", "WAS AWAY", "NOT KNOWN"}
	for _, o := range r.Outputs {
		unknown := ""
		if o.Was.Unknown > 0 {
			unknown = span(o.Was.Unknown)
		}
		outputs = append(outputs, []string{o.Output, strconv.Itoa(o.Would.Moves), timeAway(o.Would), strconv.Itoa(o.Was.Moves), timeAway(o.Was.Use), unknown})
	}
	if f.offline {
		head = head[:3]
		for i := range outputs {
			outputs[i] = outputs[i][:3]
		}
	}
	if len(outputs) > 0 {
		fmt.Fprintln(a.out)
		if err := table(a.out, head, outputs); err != nil {
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
func (a *app) drawTrial(r trial.Result, zone *time.Location) error {
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
	lines := chart.Draw(all, chart.Options{From: r.From.In(zone), To: r.To.In(zone),
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
