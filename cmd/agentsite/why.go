package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device"

	"github.com/spf13/cobra"
)

func (a *app) whyCommand() *cobra.Command {
	var length duration
	cmd := &cobra.Command{
		Use: "why POINT [VALUE]", GroupID: groupEveryday,
		Args: func(cmd *cobra.Command, args []string) error {
			return exactly([]string{"POINT", "VALUE"}[:max(1, min(2, len(args)))]...)(cmd, args)
		},
		Short: "Show who holds an output, what forbids a change, and what happened",
		Long: `Explain an output: who holds it, through which agents, since when and until when, what its
limits say to a change now, why it returned to safe, and its last changes with the calls
that made them. The outcome unknown_outcome means that the site ended during the call.

With a value or --for, say whether a move there would be refused, and for how long it would
hold. Nothing moves.

Of a sensor, show the reading, its quality and the outputs that require it.

A caller with permissions for a part of the site learns of the others only "somebody else".`,
		Example: "  agentsite why greenhouse/heater\n  agentsite why greenhouse/heater on --for 5m",
		RunE: a.onSite(func(ctx context.Context, s *session, args []string) error {
			r := agents.WhyRequest{Point: args[0]}
			if length > 0 {
				r.For = new(time.Duration(length).Seconds())
			}
			if len(args) > 1 {
				var err error
				if r.Value, err = s.valueOf(ctx, args[0], args[1]); err != nil {
					return err
				}
			}
			answer, err := askSite(ctx, s, agents.Site.Why, r)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(answer)
			}
			w := why(answer).withNames()
			for _, line := range w.sentences() {
				a.tell("%s", line)
			}
			if len(w.Changes) == 0 {
				return nil
			}
			fmt.Fprintln(a.out)
			return table(a.out, []string{"TIME", "VALUE", "HOLDER", "BY", "WHAT"}, w.rows())
		}),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return a.completeSet(cmd, args, prefix)
			}
			return a.completePoints(1, point.readable)(cmd, args, prefix)
		},
	}
	cmd.Flags().Var(&length, "for", "how long a move would be asked for, such as 5s or 1m30s")
	return cmd
}

// valueOf returns what people write as the value of an output.
func (s *session) valueOf(ctx context.Context, output, value string) (device.Value, error) {
	list, err := s.listPoints(ctx)
	if err != nil {
		return device.Value{}, err
	}
	p, err := findOutput(list, output)
	if err != nil {
		return device.Value{}, err
	}
	r, err := p.move(value)
	return cmp.Or(r.Value, p.Safe), err
}

type why agents.Why

// sentences explain a point as it is now.
func (w why) sentences() (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	now := "has no value"
	if !w.Value.IsZero() {
		now = "is " + show(w.Value, w.Unit)
	}
	o := w.Output
	switch {
	case o != nil && o.Left > 0:
		if !o.Goal.IsZero() {
			now += ", on its way to " + show(o.Goal, w.Unit)
		}
		say("%s %s for %s, then %s.", w.Point, now, span(o.Left), show(o.Safe, w.Unit))
	case o != nil && w.Value == o.Safe:
		say("%s %s, its safe value.", w.Point, now)
	case o != nil && !o.Goal.IsZero():
		say("%s %s, on its way to %s.", w.Point, now, show(o.Goal, w.Unit))
	case o != nil || w.Time == "":
		say("%s %s.", w.Point, now)
	default:
		say("%s %s, read %s.", w.Point, now, ago(w.Age))
	}
	if w.Quality != device.Good || w.Why != "" {
		say("Its reading is %s.", strings.TrimSuffix(string(w.Quality)+": "+w.Why, ": "))
	}
	if o != nil {
		all = append(all, w.moves(o)...)
	}
	if len(w.Needed) > 0 {
		say("Outputs that require it: %s.", strings.Join(w.Needed, ", "))
	}
	if len(w.Used) > 0 {
		say("Agents of the site that use it: %s.", strings.Join(w.Used, ", "))
	}
	return all
}

// moves explain who holds an output, and whether it can be moved.
func (w why) moves(o *agents.OutputDetail) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if o.Holder != "" {
		holder := o.Holder
		if w.Name != "" {
			holder += " (" + w.Name + ")"
		}
		if len(w.Via) > 0 {
			holder += ", through " + strings.Join(w.Via, ", then ")
		}
		if w.Held > 0 {
			holder += ", for " + span(w.Held)
		}
		say("It is held by %s.", holder)
	}
	if !o.Measured.Value.IsZero() {
		say("It was set to %s %s, and read back as %s %s.",
			show(o.Set.Value, w.Unit), ago(o.Set.Age), show(o.Measured.Value, w.Unit), ago(o.Measured.Age))
	}
	switch {
	case o.Effect != "" && o.Holder != "":
		say("Its effect: %s.", o.Effect)
	case o.Effect != "":
		say("The effect of its last move: %s.", o.Effect)
	}
	if o.Why != "" {
		say("It returned to safe because %s.", o.Why)
	}
	switch {
	case w.Refused != "":
		say("It cannot become %s now: %s.", show(w.Other, w.Unit), w.Refused)
	case o.Confirm != "" && w.Other != o.Safe:
		say("It can become %s%s now, after the %s approved that.", show(w.Other, w.Unit), w.length(), o.Confirm)
	case !w.Other.IsZero():
		say("It can become %s%s now.", show(w.Other, w.Unit), w.length())
	}
	if o.Limits != "" {
		say("Its limits: %s.", o.Limits)
	}
	if l := o.MaxOn; span(l.Left) != span(l.Of) {
		say("Left of its max_on: %s of %s.", span(l.Left), span(l.Of))
	}
	if l := o.Duty; span(l.Left) != span(l.Of) {
		started := ""
		if l.Assumed > 0 {
			started = "; it has just started, and the time before counts as used"
		}
		say("Left of its duty: %s of %s in %s%s.", span(l.Left), span(l.Of), span(l.Within), started)
	}
	return all
}

// length says how long a move would hold.
func (w why) length() string {
	if w.Holds == 0 {
		return ""
	}
	return " for " + span(w.Holds)
}

// rows are the last changes and calls.
func (w why) rows() (all [][]string) {
	for _, d := range w.Changes {
		when := d.Time
		if t, err := time.Parse(time.RFC3339, d.Time); err == nil {
			when = t.Local().Format(time.DateTime)
		}
		value := "unknown"
		switch {
		case !d.Value.IsZero():
			value = show(d.Value, w.Unit)
		case d.Tool != "":
			value = ""
		}
		what := d.Tool
		if d.Outcome != "" && d.Outcome != "done" {
			what += ": " + d.Outcome
		}
		if d.Says != "" {
			what += ", " + d.Says
		}
		if d.Times > 1 {
			what += fmt.Sprintf(", %d times", d.Times)
		}
		if d.Cause != "" {
			what = strings.TrimPrefix(what+"; "+d.Cause, "; ")
		}
		by := d.By
		if len(d.Via) > 0 {
			by += " through " + strings.Join(d.Via, ", ")
		}
		all = append(all, []string{when, value, d.Holder, by, what})
	}
	return all
}
