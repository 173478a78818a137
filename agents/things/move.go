package things

import (
	"context"
	"math"
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
	return define(agents.Tool{
		Name:        "switch_output",
		Description: "Switch an output for a time. Call again to keep it so, within the owner's limits.",
		Hints:       agents.Hints{Destructive: true}, // again is for longer
	}, limits{enums: map[string][]string{"output": all}, ranges: map[string]device.Range{"for_seconds": forRange}},
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
	return define(agents.Tool{
		Name:        "set_level",
		Description: "Set an output for a time. Call again to keep it so, within the owner's limits.",
		Hints:       agents.Hints{Destructive: true}, // again is for longer
	}, limits{enums: map[string][]string{"output": all}, ranges: map[string]device.Range{"for_seconds": forRange}},
		func(ctx context.Context, p agents.Principal, in levelIn) (outputOut, error) {
			return a.move(ctx, p, in.Output, device.Number(*in.Value), in.For)
		})
}

func (a *Agent) move(ctx context.Context, p agents.Principal, output string, v device.Value, forSeconds *float64) (outputOut, error) {
	var length time.Duration
	if forSeconds != nil {
		length = time.Duration(math.Ceil(*forSeconds * float64(time.Second)))
	}
	s, err := a.site.Outputs.Move(ctx, p.ID, output, v, length)
	return a.outputOut(s), err
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
	return define(agents.Tool{
		Name:        "release_output",
		Description: "Return an output to safe now. Always allowed.",
		Hints:       agents.Hints{Idempotent: true},
	}, limits{enums: map[string][]string{"output": all}},
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
	return define(agents.Tool{
		Name:        "emergency_stop",
		Description: "Send every output to safe until the owner resets it in person. For when something goes wrong.",
		Hints:       agents.Hints{Destructive: true, Idempotent: true},
	}, limits{}, func(ctx context.Context, _ agents.Principal, _ none) (stopOut, error) {
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
