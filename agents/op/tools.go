package op

import (
	"agentsite/agents"
	"agentsite/device"
)

// Tool is an operation on points or on the site, by the name under which permissions, the journal,
// approvals and models know it.
type Tool struct {
	Name        string
	Description string // for models
	Op          agents.Operation
	Value       device.Value // of OpMove: one of those that it takes; none for a release
	Field       string       // the argument that names its points; "" of an operation on a whole site
	// Points are those of an offer that it can name, and Whole is whether an offer has it. A tool
	// with neither is there for whoever may read.
	Points func(*agents.Offer) *[]string
	Whole  func(*agents.Offer) *bool
}

// The tools.
var (
	ListPoints = whole(agents.OpPoints, func(o *agents.Offer) *bool { return &o.Points },
		"Sensors and outputs: kind, unit, range; of outputs the safe value, max_seconds away from it, other limits "+
			"and who confirms a move.")
	ReadPoints = points(agents.OpRead, device.Value{}, "points", func(o *agents.Offer) *[]string { return &o.Read },
		"The latest readings. Quality: good, stale (too old) or fault (see why).")
	ReadHistory = points(agents.OpHistory, device.Value{}, "point", func(o *agents.Offer) *[]string { return &o.History },
		"How a measurement went, in steps; what changed of any other point. Times: RFC 3339.")
	ExplainPoint = Tool{Name: agents.OpWhy.Tool(), Op: agents.OpWhy, Field: "point",
		Description: "Why a point is so: who holds an output, since when, what forbids a change, its last changes."}
	SwitchOutput = points(agents.OpMove, device.Bool(false), "output",
		func(o *agents.Offer) *[]string { return &o.Switch },
		"Switch an output for a time. Call again to keep it so, within the owner's limits.")
	SetLevel = points(agents.OpMove, device.Number(0), "output", func(o *agents.Offer) *[]string { return &o.Level },
		"Set an output for a time. Call again to keep it so, within the owner's limits.")
	ReleaseOutput = points(agents.OpMove, device.Value{}, "output", func(o *agents.Offer) *[]string { return &o.Release },
		"Return an output to safe now. Always allowed.")
	EmergencyStop = whole(agents.OpStop, func(o *agents.Offer) *bool { return &o.Stop },
		"Send every output to safe until the owner resets it in person. For when something goes wrong.")
	ShowText = points(agents.OpShow, device.Value{}, "display", func(o *agents.Offer) *[]string { return &o.Show },
		"Show a text on a display.")
	CaptureImage = points(agents.OpCapture, device.Value{}, "camera",
		func(o *agents.Offer) *[]string { return &o.Capture },
		"Take a picture.")
	SiteStatus = whole(agents.OpStatus, func(o *agents.Offer) *bool { return &o.Status },
		"What is wrong with devices; outputs away from safe, for how long, or that cannot move yet; the emergency stop.")
)

// Tools are all, in the order in which they are listed.
var Tools = []Tool{
	ListPoints, ReadPoints, ReadHistory, ExplainPoint, SwitchOutput, SetLevel, ReleaseOutput, EmergencyStop, ShowText,
	CaptureImage, SiteStatus,
}

func points(o agents.Operation, v device.Value, field string, of func(*agents.Offer) *[]string, says string) Tool {
	return Tool{Name: agents.Ask{Op: o, Value: v}.Name(), Description: says, Op: o, Value: v, Field: field, Points: of}
}

func whole(o agents.Operation, of func(*agents.Offer) *bool, says string) Tool {
	return Tool{Name: o.Tool(), Description: says, Op: o, Whole: of}
}
