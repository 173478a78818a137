package agents

import "agentsite/device"

// Operation is a kind of request to a site. The set is closed: protocols render it, and none adds
// to it.
type Operation uint8

const (
	OpOwn     Operation = iota // calls a tool of an agent's own, which Ask.Tool names
	OpPoints                   // lists the points
	OpRead                     // reads points
	OpWatch                    // reads points as they change
	OpHistory                  // reads how a measurement went
	OpMove                     // moves an output; without a value, it releases the output
	OpStop                     // sends every output to safe until an owner resets it
	OpShow                     // shows a text on a display
	OpCapture                  // takes a picture
	OpStatus                   // tells what is wrong and which outputs are away from safe
	OpWhy                      // explains why a point is as it is
	OpAsk                      // asks a hosted agent for a task; Ask.Points has the agent's name
)

// Effect returns the strongest effect of an operation.
func (o Operation) Effect() Effect {
	switch o {
	case OpPoints, OpRead, OpWatch, OpHistory, OpCapture, OpStatus, OpWhy:
		return Reads
	case OpStop:
		return Returns
	}
	return Acts
}

// Permissions, the journal and approvals name an operation by the tool that renders it. OpWhy needs
// only the permission to read the point.
var toolNames = [...]string{
	OpPoints: "list_points", OpRead: "read_points", OpWatch: "read_points", OpWhy: "explain_point", OpHistory: "read_history", OpStop: "emergency_stop",
	OpShow: "show_text", OpCapture: "capture_image", OpStatus: "site_status", OpAsk: "ask_agent", // OpOwn and OpMove have others
}

// Tool returns the name of the tool that renders an operation; "" for OpOwn and OpMove, see
// Ask.Name.
func (o Operation) Tool() string { return toolNames[o] }

// moveTool names the tool that moves an output to v.
func moveTool(v device.Value) string {
	switch v.Type() {
	case device.TypeBool:
		return "switch_output"
	case device.TypeNone:
		return "release_output"
	}
	return "set_level"
}

// Offer lists the operations that a principal may request of a site, and the points that it may
// name in each. It is immutable.
type Offer struct {
	Points, Status, Stop bool     // about the site as a whole
	Read                 []string // in the order of the configuration, as all that follow
	History              []string
	Switch, Level        []string // outputs that it may move, of either kind
	Release              []string
	Show                 []string
	Capture              []string

	Descriptions map[string]string      // of points, by address, where their owner gave one
	Sites        map[Operation][]string // of a group: which sites OpPoints, OpStatus and OpStop can name
	// Wishes are the further tools that a program which signed in may ask an owner for, with the points of
	// each that it may read.
	Wishes map[string][]string
}
