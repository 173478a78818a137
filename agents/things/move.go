package things

import (
	"context"
	"math"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// longestFor keeps for_seconds well inside a time.Duration; an output's own
// lease is far below it unless its owner wrote unlimited.
const longestFor = 366 * 24 * 3600

var forRange = device.Range{Min: 0.001, Max: longestFor}

type outputOut struct {
	Output string  `json:"output"`
	Value  value   `json:"value"`
	Goal   value   `json:"going_to,omitzero"` // on a ramp
	Safe   value   `json:"safe"`
	Held   float64 `json:"seconds_left,omitzero"`
}

type switchIn struct {
	Output string   `json:"output"`
	On     *bool    `json:"on"`
	For    *float64 `json:"for_seconds,omitzero" jsonschema:"then back to safe; 60 when left out"`
}

func (a *Agent) switchOutput() (verb, error) {
	all := a.addresses(device.KindSwitch)
	if len(all) == 0 {
		return verb{}, nil
	}
	return defineMove(agents.Tool{
		Name:        "switch_output",
		Description: "Switch an output for a time. Call again to keep it so, within the owner's limits.",
		Hints:       agents.Hints{Destructive: true}, // again is for longer
	}, limits{enums: map[string][]string{"output": all}, ranges: map[string]device.Range{"for_seconds": forRange}},
		func(p agents.Principal, in switchIn) agents.Move {
			return a.plan(p, in.Output, device.Bool(*in.On), in.For)
		},
		func(ctx context.Context, p agents.Principal, in switchIn) (outputOut, error) {
			return a.move(ctx, p, in.Output, device.Bool(*in.On), in.For)
		})
}

type levelIn struct {
	Output string   `json:"output"`
	Value  *float64 `json:"value" jsonschema:"within its range, see list_points"`
	For    *float64 `json:"for_seconds,omitzero" jsonschema:"then back to safe; 60 when left out"`
}

func (a *Agent) setLevel() (verb, error) {
	all := a.addresses(device.KindLevel)
	if len(all) == 0 {
		return verb{}, nil
	}
	return defineMove(agents.Tool{
		Name:        "set_level",
		Description: "Set an output for a time. Call again to keep it so, within the owner's limits.",
		Hints:       agents.Hints{Destructive: true}, // again is for longer
	}, limits{enums: map[string][]string{"output": all}, ranges: map[string]device.Range{"for_seconds": forRange}},
		func(p agents.Principal, in levelIn) agents.Move {
			return a.plan(p, in.Output, device.Number(*in.Value), in.For)
		},
		func(ctx context.Context, p agents.Principal, in levelIn) (outputOut, error) {
			return a.move(ctx, p, in.Output, device.Number(*in.Value), in.For)
		})
}

func (a *Agent) move(ctx context.Context, p agents.Principal, output string, v device.Value, forSeconds *float64) (outputOut, error) {
	s, err := a.site.Outputs.Move(ctx, p.ID, output, v, lengthOf(forSeconds))
	return a.outputOut(s), err
}

func (a *Agent) plan(p agents.Principal, output string, v device.Value, forSeconds *float64) agents.Move {
	policy, err := a.site.Outputs.Policy(output)
	if err == nil && v == policy.Safe {
		return agents.Move{ToSafe: true, Idle: a.idle(output)}
	}
	return agents.Move{Confirm: a.byName[output].confirm, Try: func(ctx context.Context) error {
		return a.site.Outputs.Try(ctx, p.ID, output, v, lengthOf(forSeconds))
	}}
}

// idle reports whether an output is safe and nobody has asked for anything else.
func (a *Agent) idle(output string) bool {
	return slices.ContainsFunc(a.site.Outputs.Status(), func(s guard.Status) bool {
		return s.Output == output && s.Safe && s.Holder == ""
	})
}

func lengthOf(forSeconds *float64) time.Duration {
	if forSeconds == nil {
		return 0
	}
	return time.Duration(math.Ceil(*forSeconds * float64(time.Second)))
}

func (a *Agent) outputOut(s guard.Status) outputOut {
	policy, _ := a.site.Outputs.Policy(s.Output)
	return outputOut{Output: s.Output, Value: s.Value.Any(), Goal: goal(s), Safe: policy.Safe.Any(), Held: seconds(s.Left)}
}

// goal is where a ramp leads, nil where an output is that far or nobody knows where.
func goal(s guard.Status) value {
	if s.Goal == s.Value || s.Value.IsZero() {
		return nil
	}
	return s.Goal.Any()
}

type releaseIn struct {
	Output string `json:"output"`
}

func (a *Agent) releaseOutput() (verb, error) {
	all := a.addresses(device.KindSwitch, device.KindLevel)
	if len(all) == 0 {
		return verb{}, nil
	}
	return defineMove(agents.Tool{
		Name:        "release_output",
		Description: "Return an output to safe now. Always allowed.",
		Hints:       agents.Hints{Idempotent: true},
	}, limits{enums: map[string][]string{"output": all}},
		func(_ agents.Principal, in releaseIn) agents.Move {
			return agents.Move{ToSafe: true, Idle: a.idle(in.Output)}
		},
		func(ctx context.Context, _ agents.Principal, in releaseIn) (outputOut, error) {
			s, err := a.site.Outputs.Release(ctx, in.Output)
			return a.outputOut(s), err
		})
}

type stopOut struct {
	Stopped bool        `json:"emergency_stop"`
	Outputs []outputOut `json:"outputs"`
}

func (a *Agent) emergencyStop() (verb, error) {
	if len(a.addresses(device.KindSwitch, device.KindLevel)) == 0 {
		return verb{}, nil
	}
	return defineMove(agents.Tool{
		Name:        "emergency_stop",
		Description: "Send every output to safe until the owner resets it in person. For when something goes wrong.",
		Hints:       agents.Hints{Destructive: true, Idempotent: true},
	}, limits{}, func(agents.Principal, none) agents.Move {
		return agents.Move{ToSafe: true, Idle: a.site.Outputs.Stopped()}
	}, func(ctx context.Context, _ agents.Principal, _ none) (stopOut, error) {
		if err := a.site.Outputs.Stop(ctx); err != nil {
			return stopOut{}, err
		}
		out := stopOut{Stopped: true, Outputs: []outputOut{}}
		for _, s := range a.site.Outputs.Status() {
			out.Outputs = append(out.Outputs, a.outputOut(s))
		}
		return out, nil
	})
}
