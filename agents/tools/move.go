package tools

import (
	"math"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
)

// The tools that render agents.OpMove, by its value.
var (
	SwitchOutput  = op.SwitchOutput.Name
	SetLevel      = op.SetLevel.Name
	ReleaseOutput = op.ReleaseOutput.Name
)

// Arguments of the tools that move an output.
type (
	switchArgs struct {
		Output string   `json:"output"`
		On     *bool    `json:"on"`
		For    *float64 `json:"for_seconds,omitzero" jsonschema:"then back to safe; 60 when left out"`
	}
	levelArgs struct {
		Output string   `json:"output"`
		Value  *float64 `json:"value" jsonschema:"within its range, see list_points"`
		For    *float64 `json:"for_seconds,omitzero" jsonschema:"then back to safe; 60 when left out"`
	}
	releaseArgs struct {
		Output string `json:"output"`
	}
)

// IsOperation reports whether a name is that of a tool of the site itself.
func IsOperation(tool string) bool {
	return tool == AskAgent || slices.ContainsFunc(definitions, func(d definition) bool { return d.Name == tool })
}

// Reads reports whether a name is that of a tool of the site itself that changes nothing.
func Reads(tool string) bool {
	return slices.ContainsFunc(definitions, func(d definition) bool { return d.Name == tool && d.hints.ReadOnly })
}

// ReturnsToSafe reports, by its name alone, whether a tool can only return outputs to safe:
// admission decides on a call before it is decoded.
func ReturnsToSafe(tool string) bool {
	return tool == agents.OpStop.Tool() || tool == ReleaseOutput
}

// AskOf returns the ask of a call of the site's own tool, as far as its arguments, which it also returns, say
// it. They are not checked.
func AskOf(tool string, args Args) (ask agents.Ask, given map[string]any) {
	ask = agents.Ask{Tool: tool}
	field := "agent"
	if i := slices.IndexFunc(definitions, func(d definition) bool { return d.Name == tool }); i >= 0 {
		of := definitions[i].Of
		if field = of.Field; of.Operation != agents.OpMove {
			ask = agents.Ask{Op: of.Operation}
		}
	}
	if args == nil || args.Decode(&given) != nil {
		return ask, nil
	}
	switch names := given[field].(type) {
	case string:
		ask.Points = []string{names}
	case []any:
		for _, name := range names {
			if name, ok := name.(string); ok {
				ask.Points = append(ask.Points, name)
			}
		}
	}
	if on, ok := given["on"].(bool); ok {
		ask.Value = device.Bool(on)
	} else if v, ok := given["value"].(float64); ok {
		ask.Value = device.Number(v)
	}
	if length, ok := given["for_seconds"].(float64); ok && agents.CheckNumber("for_seconds", &length) == nil {
		ask.For = time.Duration(math.Ceil(length * float64(time.Second)))
	}
	return ask, given
}

// OfMove returns the tool that renders a move, and its arguments.
func OfMove(r agents.MoveRequest) (name string, args any) {
	switch name = (agents.Ask{Op: agents.OpMove, Value: r.Value}).Name(); name {
	case SwitchOutput:
		return name, switchArgs{r.Output, new(r.Value.Bool()), r.For}
	case SetLevel:
		return name, levelArgs{r.Output, new(r.Value.Number()), r.For}
	}
	return name, releaseArgs{r.Output}
}
