package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

func (a *app) simCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sim", GroupID: groupBoard, Args: noArgs,
		Short: "Set what the sensors of a simulation read",
		Long: `Set what the sensors of a running "agentsite simulate" read, press its buttons, and have its
parts fail. Outputs are moved by "agentsite set", as on the board.`,
		Example: "  agentsite sim list\n  agentsite sim set climate/temperature 31",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.simSetCommand(), a.simPressCommand(), a.simFaultCommand(), a.simListCommand(),
		a.simDeviceCommand("lose", "Have a device answer nothing, as if it were unplugged", "it is simulated as unplugged"),
		a.simDeviceCommand("find", "Have a lost device answer again", ""))
	return cmd
}

// onSimulation is asOwner for the simulation that runs on this machine, unless a flag names a site.
func (a *app) onSimulation(do func(ctx context.Context, s *session, args []string) error) runFunc {
	run := a.asOwner(do)
	return func(cmd *cobra.Command, args []string) error {
		if a.data == "" && a.site == "" && a.peer == "" && a.url == "" {
			f := state.RunningSimulation()
			if f == "" {
				return coded{exitAway, errors.New("no simulation runs here: start one with agentsite simulate, or name its " +
					"folder with --data")}
			}
			a.data = string(f)
		}
		return run(cmd, args)
	}
}

// simHint returns the flags by which a suggested command finds the same simulation.
func (a *app) simHint() string {
	switch {
	case a.site != "":
		return " --site " + safeWord(a.site, "SITE")
	case a.data != "" && a.data != string(state.RunningSimulation()):
		return " --data " + state.ShellQuote(a.data)
	}
	return ""
}

// simulate has the site read something.
func (s *session) simulate(ctx context.Context, to acts.Simulated) error {
	_, err := callOwner(ctx, s, acts.SimulateAct, to)
	return err
}

// checkSimulated refuses a site with real devices, and that of agentsite demo.
func (s *session) checkSimulated(ctx context.Context) error {
	status, err := s.status(ctx)
	if err != nil || status.Simulated {
		return err
	}
	return usagef("the site %s has real devices: agentsite simulate runs one without", status.Site)
}

// simulated returns the points of a simulation.
func (s *session) simulated(ctx context.Context) ([]point, error) {
	if err := s.checkSimulated(ctx); err != nil {
		return nil, err
	}
	return s.listPoints(ctx)
}

// findPoint returns the point with that name.
func findPoint(all []point, name string) (point, error) {
	names := make([]string, len(all))
	for i, p := range all {
		if names[i] = p.Point; p.Point == name {
			return p, nil
		}
	}
	return point{}, usagef("there is no point %q%s", clean(name), device.Suggest(name, names, "point"))
}

// simulatedPoint returns the point of that name of a simulation.
func (s *session) simulatedPoint(ctx context.Context, name string) (point, error) {
	list, err := s.simulated(ctx)
	if err != nil {
		return point{}, err
	}
	return findPoint(list, name)
}

func (a *app) simSetCommand() *cobra.Command {
	var over duration
	cmd := &cobra.Command{
		Use: "set POINT VALUE [POINT VALUE...]", Args: pairs,
		Short: "Set what points read",
		Long: `Set what measurements and states read from now on: a number in the point's unit, on or off, or
one of its words. It ends a fault. With --over, numbers change step by step from what they are.`,
		Example: "  agentsite sim set climate/temperature 31\n" +
			"  agentsite sim set climate/temperature 5 door/open on --over 10m",
		RunE: a.onSimulation(func(ctx context.Context, s *session, args []string) error {
			return s.simSet(ctx, args, time.Duration(over))
		}),
		ValidArgsFunction: a.completePoints(1, point.settable),
	}
	cmd.Flags().Var(&over, "over", "how long numbers take to get there, such as 10m; the command ends with them")
	return cmd
}

// pairs takes points with their values.
func pairs(_ *cobra.Command, args []string) error {
	if len(args) == 0 || len(args)%2 != 0 {
		return errors.New("it takes points, each with its value, such as climate/temperature 31")
	}
	return nil
}

// settable reports whether the value of a point is set from outside of a simulation.
func (p point) settable() bool { return p.Kind == device.KindMeasurement || p.Kind == device.KindState }

// simSteps is the number of steps of a change over a time, at most one a second.
const simSteps = 100

func (s *session) simSet(ctx context.Context, args []string, over time.Duration) error {
	list, err := s.simulated(ctx)
	if err != nil {
		return err
	}
	var points []point
	var goals []device.Value
	for pair := range slices.Chunk(args, 2) {
		p, err := findPoint(list, pair[0])
		if err != nil {
			return err
		}
		v, err := p.measuredAs(pair[1])
		if err != nil {
			return err
		}
		points, goals = append(points, p), append(goals, v)
	}
	begin := make([]device.Value, len(points))
	if over > 0 {
		if begin, err = s.numbers(ctx, points); err != nil {
			return err
		}
	}
	steps := max(1, min(simSteps, int(over/time.Second)))
	for step := 1; step <= steps; step++ {
		if over > 0 {
			if err := device.Sleep(ctx, over/time.Duration(steps)); err != nil {
				return nil // Ctrl-C
			}
		}
		for i, p := range points {
			v := goals[i]
			if step < steps {
				if v.Type() != device.TypeNumber {
					continue
				}
				from := cmp.Or(begin[i], v).Number()
				v = device.Number(device.Tidy(from + (v.Number()-from)*float64(step)/float64(steps)))
			}
			if err := s.simulate(ctx, acts.Simulated{Point: p.Point, Value: v}); err != nil {
				return err
			}
		}
	}
	var says []string
	for i, p := range points {
		says = append(says, p.Point+" reads "+show(goals[i], p.Unit))
	}
	return s.app.print(map[string]bool{"ok": true}, "%s", strings.Join(says, ", "))
}

// numbers returns the points' values; none where one is not known.
func (s *session) numbers(ctx context.Context, points []point) ([]device.Value, error) {
	names := make([]string, len(points))
	for i, p := range points {
		names[i] = p.Point
	}
	readings, err := s.latest(ctx, names)
	if err != nil {
		return nil, err
	}
	all := make([]device.Value, len(points))
	for i, p := range points {
		for _, r := range readings {
			if r.Point == p.Point {
				all[i] = r.Value
			}
		}
	}
	return all, nil
}

// measuredAs returns the value of a word for a measurement or a state.
func (p point) measuredAs(word string) (device.Value, error) {
	switch {
	case p.output():
		return device.Value{}, usagef("%s is an output: move it with agentsite set %[1]s VALUE, or have it fail with "+
			"agentsite sim fault %[1]s", p.Point)
	case p.Kind == device.KindEvent:
		return device.Value{}, usagef("%s is an event: agentsite sim press %[1]s", p.Point)
	case !p.settable():
		return device.Value{}, usagef("%s is a %s, which reads nothing", p.Point, p.Kind)
	}
	v, ok := p.parse(word)
	inside := p.Min == nil || p.Max == nil || v.Number() >= *p.Min && v.Number() <= *p.Max
	switch {
	case ok && (inside || v.Type() != device.TypeNumber):
		return v, nil
	case len(p.Values) > 0:
		return v, usagef(
			"%s is one of %s, not %q%s", p.Point, strings.Join(p.Values, ", "), clean(word), device.Suggest(word, p.Values, ""),
		)
	case p.Kind == device.KindState:
		return v, usagef("%s is on or off, not %q", p.Point, clean(word))
	case ok:
		return v, usagef("%s is within %s..%s; %q is outside",
			p.Point, show(device.Number(*p.Min), ""), show(device.Number(*p.Max), p.Unit), clean(word))
	}
	return v, usagef("%s takes a number such as %s, not %q", p.Point, show(device.Number(20), p.Unit), clean(word))
}

func (a *app) simPressCommand() *cobra.Command {
	return &cobra.Command{
		Use: "press POINT", Args: exactly("POINT"),
		Short: "Press a button, and release it",
		RunE: a.onSimulation(func(ctx context.Context, s *session, args []string) error {
			p, err := s.simulatedPoint(ctx, args[0])
			if err != nil {
				return err
			}
			switch {
			case p.Kind == device.KindState: // it would stay what it is after the press
				return usagef("%s is a state, and stays what it is set to: agentsite sim set %[1]s %s%s",
					p.Point, append(p.Values, "on")[0], s.app.simHint())
			case p.Kind != device.KindEvent:
				return usagef("%s is a %s, which cannot be pressed", p.Point, p.Kind)
			}
			for _, down := range []bool{true, false} {
				if err := s.simulate(ctx, acts.Simulated{Point: p.Point, Value: device.Bool(down)}); err != nil {
					return err
				}
			}
			return a.print(map[string]bool{"ok": true}, "%s was pressed and released", p.Point)
		}),
		Example: "  agentsite sim press door/button",
		ValidArgsFunction: a.completePoints(
			1, func(p point) bool { return p.Kind == device.KindEvent },
		),
	}
}

func (a *app) simFaultCommand() *cobra.Command {
	var end bool
	cmd := &cobra.Command{
		Use: "fault POINT [WHY]", Args: cobra.RangeArgs(1, 2),
		Short: "Have a point be unreadable",
		Long: `Have a measurement or a state be unreadable, or an output not be read back, until --end or "sim
set". The guard drives an output that it cannot read back to its safe value.`,
		Example: "  agentsite sim fault climate/temperature \"wire cut\"\n  agentsite sim fault climate/temperature --end",
		RunE: a.onSimulation(func(ctx context.Context, s *session, args []string) error {
			p, err := s.simulatedPoint(ctx, args[0])
			if err != nil {
				return err
			}
			to := acts.Simulated{Point: p.Point}
			if !end {
				to.Fault = cmp.Or(strings.Join(args[1:], ""), "it is simulated as broken")
			}
			if err := s.simulate(ctx, to); err != nil {
				return err
			}
			says := p.Point + " is broken until agentsite sim fault " + p.Point + " --end" + a.simHint()
			if end {
				says = p.Point + " is read again"
			}
			return a.print(map[string]bool{"ok": true}, "%s", says)
		}),
		ValidArgsFunction: a.completePoints(1, func(p point) bool { return p.settable() || p.output() }),
	}
	cmd.Flags().BoolVar(&end, "end", false, "end the fault")
	return cmd
}

// simDeviceCommand is a command about a whole device.
func (a *app) simDeviceCommand(name, short, fault string) *cobra.Command {
	return &cobra.Command{
		Use: name + " DEVICE", Args: exactly("DEVICE"), Short: short,
		Example: "  agentsite sim " + name + " climate",
		RunE: a.onSimulation(func(ctx context.Context, s *session, args []string) error {
			list, err := s.simulated(ctx)
			if err != nil {
				return err
			}
			var devices []string
			for _, p := range list {
				if dev, _, ok := device.SplitAddress(p.Point); ok && !slices.Contains(devices, dev) {
					devices = append(devices, dev)
				}
			}
			if !slices.Contains(devices, args[0]) {
				return usagef("there is no device %q%s", clean(args[0]), device.Suggest(args[0], devices, "device"))
			}
			if err := s.simulate(ctx, acts.Simulated{Point: args[0], Fault: fault}); err != nil {
				return err
			}
			says := args[0] + " answers again"
			if fault != "" {
				says = args[0] + " answers nothing until agentsite sim find " + args[0] + a.simHint()
			}
			return a.print(map[string]bool{"ok": true}, "%s", says)
		}),
	}
}

func (a *app) simListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Args: noArgs,
		Short:   "List the points, with what they read and take",
		Example: "  agentsite sim list",
		RunE: a.onSimulation(func(ctx context.Context, s *session, _ []string) error {
			list, err := s.simulated(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string][]point{"points": list})
			}
			now, err := s.latest(ctx, nil)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, p := range list {
				value := ""
				for _, r := range now {
					if r.Point == p.Point {
						value = show(r.Value, r.Unit)
					}
				}
				rows = append(rows, []string{clean(p.Point), value, p.takes()})
			}
			return table(a.out, []string{"POINT", "NOW", "SET IT BY"}, rows)
		}),
	}
}

// takes names the command for a point of a simulation, with the values that it takes.
func (p point) takes() string {
	switch {
	case p.output():
		return "set (" + p.values() + ")"
	case p.Kind == device.KindEvent:
		return "sim press"
	case p.Kind == device.KindState && len(p.Values) == 0:
		return "sim set (on, off)"
	case p.Kind == device.KindState:
		return "sim set (" + p.values() + ")"
	case p.Kind == device.KindMeasurement && p.Min != nil && p.Max != nil:
		return "sim set (" + show(device.Number(*p.Min), "") + ".." + show(device.Number(*p.Max), p.Unit) + ")"
	case p.Kind == device.KindMeasurement:
		unit := strings.TrimSpace(show(device.Number(1), p.Unit)[1:])
		return "sim set (" + strings.TrimSuffix("a number in "+unit, " in ") + ")"
	}
	return ""
}
