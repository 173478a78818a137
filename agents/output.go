package agents

import "agentsite/device"

// Output answers OpMove: the state of an output, and its next change.
type Output struct {
	Output string       `json:"output"`
	Value  device.Value `json:"value"`
	Goal   device.Value `json:"going_to,omitzero"` // on a ramp
	Safe   device.Value `json:"safe"`
	State  int64        `json:"state,omitzero"` // as in OutputDetail
	Left   float64      `json:"seconds_left,omitzero"`
}

// Answer is Output under the name by which it is embedded: the embedded field must not hide Output.Output.
type Answer = Output

// Aged is a value, and how long ago the output had it.
type Aged struct {
	Value device.Value `json:"value"`
	Age   float64      `json:"age_seconds"`
}

// Proof is an output after an emergency stop: what was asked of it, what was written last, and what was read
// back since then. An output that cannot be read back has no Measured.
type Proof struct {
	Answer
	Asked    device.Value `json:"asked,omitzero"`
	Set      Aged         `json:"set,omitzero"`
	Measured Aged         `json:"measured,omitzero"`
}

// Allowance is what is left of a limit on an output's time away from safe.
type Allowance struct {
	Left    float64 `json:"left_seconds"` // from now on, while it is away from safe; otherwise if it leaves it now
	Of      float64 `json:"of_seconds"`
	Within  float64 `json:"in_seconds,omitzero"`      // of a duty: in any time so long
	Assumed float64 `json:"assumed_seconds,omitzero"` // of a duty: what counts as used because it is before a start
}
