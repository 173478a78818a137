package agents

import "agentsite/device"

// Operation is what can be asked of a site. The set is closed: protocols render it, and
// none adds to it.
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
)

// Effect returns what an operation does at most.
func (o Operation) Effect() Effect {
	switch o {
	case OpOwn, OpMove, OpShow:
		return Acts
	case OpStop:
		return Returns
	}
	return Reads
}

// The tools that render operations. Permissions, the journal and approvals name an
// operation by its tool: OpMove has three, by its value.
const (
	ListPoints    = "list_points"
	ReadPoints    = "read_points"
	ReadHistory   = "read_history"
	SwitchOutput  = "switch_output"
	SetLevel      = "set_level"
	ReleaseOutput = "release_output"
	EmergencyStop = "emergency_stop"
	ShowText      = "show_text"
	CaptureImage  = "capture_image"
	SiteStatus    = "site_status"
)

var toolNames = [...]string{
	OpPoints: ListPoints, OpRead: ReadPoints, OpWatch: ReadPoints, OpHistory: ReadHistory, OpStop: EmergencyStop,
	OpShow: ShowText, OpCapture: CaptureImage, OpStatus: SiteStatus,
}

// moveTool names the tool that moves an output to v.
func moveTool(v device.Value) string {
	switch v.Type() {
	case device.TypeBool:
		return SwitchOutput
	case device.TypeNone:
		return ReleaseOutput
	}
	return SetLevel
}

// ReturnsToSafe reports, by its name alone, whether a tool can only return outputs to safe:
// admission decides on a call before it is decoded.
func ReturnsToSafe(tool string) bool { return tool == EmergencyStop || tool == ReleaseOutput }

// Offer is what a principal may ask of a site: the points that it may name in each
// operation. It is not changed once it is made.
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
}
