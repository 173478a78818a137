package op

import (
	"agentsite/agents"
	"agentsite/device"
)

// Tool is an operation on points or on the site, by the name under which permissions, the journal,
// approvals and models know it.
type Tool struct {
	Name        string
	Description string       // for models
	Of          *Operation   // which it renders
	Value       device.Value // of OpMove: one of those that it takes; none for a release
	// Points are those of an offer that it can name, and Whole is whether an offer has it. A tool
	// with neither is there for whoever may read.
	Points func(*agents.Offer) *[]string
	Whole  func(*agents.Offer) *bool
}

// The tools.
var (
	ListPoints = whole(Points, func(o *agents.Offer) *bool { return &o.Points },
		"Sensors and outputs: kind, unit, range; of outputs the safe value, max_seconds away from it, other limits "+
			"and who confirms a move.")
	ReadPoints = points(Read, device.Value{}, func(o *agents.Offer) *[]string { return &o.Read },
		"The latest readings. Quality: good, stale (too old) or fault (see why).")
	ReadHistory = points(History, device.Value{}, func(o *agents.Offer) *[]string { return &o.History },
		"How a measurement went, in steps; what changed of any other point. Times: RFC 3339.")
	ExplainPoint = Tool{Name: agents.OpWhy.Tool(), Of: Why,
		Description: "Why a point is so: who holds an output, since when, what forbids a change, its last changes."}
	SwitchOutput = points(Move, device.Bool(false),
		func(o *agents.Offer) *[]string { return &o.Switch },
		"Switch an output for a time. Call again to keep it so, within the owner's limits.")
	SetLevel = points(Move, device.Number(0), func(o *agents.Offer) *[]string { return &o.Level },
		"Set an output for a time. Call again to keep it so, within the owner's limits.")
	ReleaseOutput = points(Move, device.Value{}, func(o *agents.Offer) *[]string { return &o.Release },
		"Return an output to safe now. Always allowed.")
	EmergencyStop = whole(Stop, func(o *agents.Offer) *bool { return &o.Stop },
		"Send every output to safe until the owner resets it in person. For when something goes wrong.")
	ShowText = points(Show, device.Value{}, func(o *agents.Offer) *[]string { return &o.Show },
		"Show a text on a display.")
	CaptureImage = points(Capture, device.Value{},
		func(o *agents.Offer) *[]string { return &o.Capture },
		"Take a picture.")
	SiteStatus = whole(Status, func(o *agents.Offer) *bool { return &o.Status },
		"What is wrong with devices; outputs away from safe, for how long, or that cannot move yet; the emergency stop.")
)

// Tools are all, in the order in which they are listed.
var Tools = []Tool{
	ListPoints, ReadPoints, ReadHistory, ExplainPoint, SwitchOutput, SetLevel, ReleaseOutput, EmergencyStop, ShowText,
	CaptureImage, SiteStatus,
}

func points(o *Operation, v device.Value, of func(*agents.Offer) *[]string, says string) Tool {
	name := agents.Ask{Op: o.Operation, Value: v}.Name()
	return Tool{Name: name, Description: says, Of: o, Value: v, Points: of}
}

func whole(o *Operation, of func(*agents.Offer) *bool, says string) Tool {
	return Tool{Name: o.Tool(), Description: says, Of: o, Whole: of}
}
