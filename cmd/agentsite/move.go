package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/ucum"
	"agentsite/node/acts"
	"agentsite/transport/mcp/client"

	"github.com/spf13/cobra"
)

// toSafe is the value that returns an output to its safe value, whatever that is.
const toSafe = "safe"

func (a *app) setCommand() *cobra.Command {
	var length duration
	var takeOver bool
	cmd := &cobra.Command{
		Use: "set OUTPUT VALUE", GroupID: groupEveryday, Args: exactly("OUTPUT", "VALUE"),
		Short: "Move an output for a time",
		Long: `Move an output: a switch to on or off, a level to a number, either to "safe". After the
time it returns to its safe value by itself. Set it again before that to keep it moved;
the configured limits hold over all calls. An output that another caller holds is busy;
an owner takes it over with --take-over.`,
		Example: "  agentsite set greenhouse/heater on --for 5s\n  agentsite set greenhouse/heater safe",
		RunE: func(cmd *cobra.Command, args []string) error {
			if takeOver {
				if err := a.refuseURL("--take-over"); err != nil {
					return err
				}
				if args[1] == toSafe {
					return usagef("every caller may return an output to safe: leave out --take-over")
				}
			}
			return a.with(func(s *session) error {
				if takeOver {
					if _, err := callOwner(cmd.Context(), s, acts.TakeOverAct, acts.Name{Name: args[0]}); err != nil {
						return err
					}
				}
				return s.set(cmd.Context(), args[0], args[1], time.Duration(length))
			})
		},
		ValidArgsFunction: a.completeSet,
	}
	cmd.Flags().Var(&length, "for", "how long, such as 5s or 1m30s (default: 60s)")
	cmd.Flags().BoolVar(&takeOver, "take-over", false, "take it over from its holder, as an owner")
	a.keyFlag(cmd)
	return cmd
}

// keyFlag adds --key, with which a script repeats a command whose outcome is unknown.
func (a *app) keyFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.key, "key", "", "an idempotency key of your choice: within a day, a repeated command moves once")
}

func (s *session) set(ctx context.Context, output, value string, length time.Duration) error {
	list, err := s.listPoints(ctx)
	if err != nil {
		return err
	}
	p, err := findOutput(list, output)
	if err != nil {
		return err
	}
	r, err := p.move(value)
	if err != nil {
		return err
	}
	if length > 0 && value == toSafe {
		return usagef("an output may stay at its safe value for ever: leave out --for")
	}
	if length > 0 {
		r.For = new(length.Seconds())
	}
	now, err := askSite(ctx, s, agents.Site.Move, r)
	if err != nil {
		return err
	}
	says := moved(now).sentence(p.Unit)
	if now.Effect != "" && now.Value != now.Safe {
		says += "; its effect: " + now.Effect
	}
	if now.Effect == agents.EffectAwaited {
		says += " yet, see agentsite why " + now.Output
	}
	return s.app.print(now, "%s", says)
}

func findOutput(points []point, name string) (point, error) {
	var outputs []string
	for _, p := range points {
		if p.output() {
			outputs = append(outputs, p.Point)
		}
	}
	i := slices.IndexFunc(points, func(p point) bool { return p.Point == name })
	switch {
	case i >= 0 && points[i].output():
		return points[i], nil
	case len(outputs) == 0:
		return point{}, usagef("there is no output that you may see here; a permission to set one is of use with one to read it")
	case i >= 0:
		return point{}, usagef("%s is a %s and cannot be set; the outputs are %s", name, points[i].Kind, strings.Join(outputs, ", "))
	}
	return point{}, usagef("there is no output %q%s", clean(name), device.Suggest(name, outputs, "output"))
}

// move returns the request that brings an output to a value.
func (p point) move(value string) (agents.MoveRequest, error) {
	r := agents.MoveRequest{Output: p.Point}
	if value == toSafe {
		return r, nil
	}
	ok := false
	if r.Value, ok = p.parse(value); ok {
		return r, nil
	}
	if p.Kind == device.KindSwitch {
		return r, usagef("%s is a switch: say on, off or safe, not %q", p.Point, value)
	}
	return r, usagef("%s takes a number within %s, or safe, not %q", p.Point, p.values(), value)
}

// parse parses a value as the point has it: one of its words, on or off, or a number, also with its unit.
func (p point) parse(value string) (v device.Value, ok bool) {
	if slices.Contains(p.Values, value) {
		return device.Text(value), true
	}
	switch {
	case len(p.Values) > 0:
		return v, false
	case p.Kind == device.KindSwitch || p.Kind == device.KindState:
		on := value == "on" || value == "true"
		return device.Bool(on), on || value == "off" || value == "false"
	}
	text := value
	for _, u := range []string{p.Unit, ucum.Symbol(p.Unit)} {
		if rest, ok := strings.CutSuffix(value, u); ok && u != "" {
			text = strings.TrimSpace(rest)
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n-n != 0 || strings.ContainsAny(text, "_xX") { // NaN, the infinities, 1_000, 0x10
		return v, false
	}
	return device.Number(n), true
}

// sentence describes an output's value and its next change.
func (o moved) sentence(unitCode string) string {
	value, safe := show(o.Value, unitCode), show(o.Safe, unitCode)
	switch {
	case !o.Goal.IsZero():
		return fmt.Sprintf("%s is %s, on its way to %s for %s, then %s", o.Output, value, show(o.Goal, unitCode), span(o.Left), safe)
	case o.Value == o.Safe:
		return fmt.Sprintf("%s is %s, its safe value", o.Output, value)
	case o.Left > 0:
		return fmt.Sprintf("%s is %s for %s, then %s", o.Output, value, span(o.Left), safe)
	}
	return fmt.Sprintf("%s is %s until it is set again", o.Output, value)
}

// duration is a flag that takes a time with its unit.
type duration time.Duration

func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "time" }

func (d *duration) Set(s string) error {
	parsed, err := parseDuration(s)
	if _, bare := strconv.ParseFloat(s, 64); err != nil && bare == nil {
		return fmt.Errorf("it needs a unit: write %ss for seconds", s)
	}
	if err != nil {
		return errors.New("write a time such as 5s, 1m30s or 7d")
	}
	if parsed <= 0 {
		return errors.New("it must be longer than zero")
	}
	*d = duration(parsed)
	return nil
}

// parseDuration parses the format of time.ParseDuration, and days and weeks alone or before it.
func parseDuration(s string) (time.Duration, error) {
	total := time.Duration(0)
	for _, unit := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		count, rest, found := strings.Cut(s, unit.letter)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(count, 10, 13) // within a time.Duration
		if err != nil {
			return 0, err
		}
		total += time.Duration(n) * unit.length
		if s = rest; s == "" {
			return total, nil
		}
	}
	d, err := time.ParseDuration(s)
	return total + d, err
}

func (a *app) stopCommand() *cobra.Command {
	return &cobra.Command{
		Use: "stop", GroupID: groupEveryday, Args: noArgs,
		Short: "Emergency stop: every output to its safe value, until reset",
		Long: `Emergency stop: every output goes to its safe value and stays there, also over restarts,
until an owner runs "agentsite reset".`,
		RunE: a.onSite(func(ctx context.Context, s *session, _ []string) error {
			done, err := only(askSite(ctx, s, agents.Site.Stop, agents.SiteRequest{}))
			if err != nil {
				return stopFailed(err)
			}
			return a.print(done, "%s", stopped(done))
		}),
	}
}

// stopped describes a stop, with how many outputs were measured where it wants them.
func stopped(done agents.Stopped) string {
	measured := 0
	for _, o := range done.Outputs {
		if !o.Measured.Value.IsZero() && o.Measured.Value == o.Asked {
			measured++
		}
	}
	says := fmt.Sprintf("stopped: all outputs (%d) stay at their safe values until agentsite reset", len(done.Outputs))
	if measured > 0 {
		says += fmt.Sprintf(" (%d read back)", measured)
	}
	return says
}

// stopFailed explains a stop that was not confirmed.
func stopFailed(err error) error {
	var refused *client.RequestError
	switch {
	case errors.As(err, &refused) && refused.Kind == "invalid":
		return usagef("this site has no outputs to stop")
	}
	return fmt.Errorf("the stop is not confirmed; if an output may still be on, disconnect its power: %w", err)
}

func (a *app) resetCommand() *cobra.Command {
	var e erasing
	cmd := &cobra.Command{
		Use: "reset", GroupID: groupEveryday,
		Short: "End the emergency stop, or erase the site's owners and permissions",
		Long: `End the emergency stop, and let outputs move again that wait because the effect that
their "expect" says did not come (else: latch).

With --erase, remove the owners, permissions, tokens, journal and history of a site that does not
run. Its key and an emergency stop stay. Add --key before you give a board away, so that
it becomes another site. An owner in the configuration ("owner:") owns the site again
after its next start.

Files are removed, not overwritten: rewrite the SD card before you give it away.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if !e.erase && (e.key || e.yes) {
				return errors.New("--key and --yes need --erase")
			}
			return noArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if e.erase {
				return a.erase(cmd.Context(), e)
			}
			if err := a.refuseURL("reset"); err != nil {
				return err
			}
			return a.with(func(s *session) error {
				if _, err := callOwner(cmd.Context(), s, acts.ResetAct, acts.None{}); err != nil {
					return err
				}
				if a.json {
					return a.printJSON(map[string]bool{"emergency_stop": false})
				}
				return s.afterReset(cmd.Context())
			})
		},
	}
	cmd.Flags().BoolVar(&e.erase, "erase", false, "remove owners, permissions, tokens, journal and history")
	cmd.Flags().BoolVar(&e.key, "key", false, "with --erase: also the site's key")
	cmd.Flags().BoolVar(&e.yes, "yes", false, "with --erase: do not ask for confirmation")
	return cmd
}

// afterReset reports the outputs that are not known to be safe yet, which cannot be moved.
func (s *session) afterReset(ctx context.Context) error {
	now, err := s.status(ctx)
	if err != nil {
		return fmt.Errorf("the emergency stop is over, but the state of the outputs is unknown: %w", err)
	}
	var stuck []string
	for _, o := range now.Moved {
		if o.Holder == "" {
			stuck = append(stuck, strings.TrimSuffix(o.Output+": "+clean(o.Fault), ": "))
		}
	}
	if len(stuck) == 0 {
		return s.app.say("the emergency stop is over: outputs may be moved again")
	}
	return s.app.say("the emergency stop is over, but these outputs are not known to be safe and cannot be moved; if one may still be on, disconnect its power: %s",
		strings.Join(stuck, "; "))
}
