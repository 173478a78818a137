package agents

import "agentsite/device"

// WhyRequest asks why a point is as it is: for the holder of an output, and its history. With Value or
// For, it also asks what would come of moving the output so; nothing moves.
type WhyRequest struct {
	Point string       `json:"point" jsonschema:"one of read_points"`
	Value device.Value `json:"value,omitzero" jsonschema:"would a move to this be refused?"`
	For   *float64     `json:"for_seconds,omitzero"`
	Terms `json:"-"`
}

// Why answers OpWhy.
type Why struct {
	Reading               // the latest, without Detail
	Title   string        `json:"name,omitzero"`        // of the point, for people
	Output  *OutputDetail `json:"output,omitzero"`      // what it may do and is doing; nil of any other point, as all down to Changes
	Name    string        `json:"holder_name,omitzero"` // of the holder, for people, where the site has one
	Via     []string      `json:"via,omitzero"`         // the agents through which the holder asked, the nearest last
	Held    float64       `json:"held_seconds,omitzero"`
	// Other is the value of the request, or else another one that the point could be moved to. Refused
	// says why the caller cannot move it there now; "" where its limits allow that, and for a value or a
	// length of the request also the caller's permission.
	Other   device.Value `json:"other,omitzero"`
	Refused string       `json:"refused,omitzero"`
	Kind    string       `json:"refused_kind,omitzero"`       // of the fault
	Until   float64      `json:"refused_seconds,omitzero"`    // for how long still, if no lease is renewed; 0 if not known
	Holds   float64      `json:"would_hold_seconds,omitzero"` // at Other, if it is moved there now; 0 if that is refused, or is its safe value
	Changes []Event      `json:"changes,omitzero"`            // the last ones, newest first
	Needed  []string     `json:"required_by,omitzero"`        // outputs that leave safe only while this point is as they require
	Used    []string     `json:"used_by,omitzero"`            // hosted agents whose definition names the point, for who sees the whole site
}
