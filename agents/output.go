package agents

import "agentsite/device"

// The words of Output.Effect.
const (
	EffectAwaited   = "not confirmed" // yet
	EffectConfirmed = "confirmed"
	EffectFailed    = "failed"
)

// Output answers OpMove: the state of an output, and its next change.
type Output struct {
	Output string       `json:"output"`
	Value  device.Value `json:"value"`
	Goal   device.Value `json:"going_to,omitzero"` // on a ramp
	Safe   device.Value `json:"safe"`
	State  int64        `json:"state,omitzero"` // as in OutputDetail
	Left   float64      `json:"seconds_left,omitzero"`
	// Effect says whether the output had the effect that its owner expects of it, on this move or its last one;
	// "" where none is expected, and after a reset.
	Effect string `json:"effect,omitzero"`
}

// Answer is Output under the name by which it is embedded: the embedded field must not hide Output.Output.
type Answer = Output

// Aged is a value, and how long ago the output had it.
type Aged struct {
	Value device.Value `json:"value"`
	Age   float64      `json:"age_seconds"`
}

// Proof has the values of an output after an emergency stop: the one it was asked for, the last one written, and
// the last one read back after that write. An output that cannot be read back has no Measured.
type Proof struct {
	Answer
	Asked    device.Value `json:"asked,omitzero"`
	Set      Aged         `json:"set,omitzero"`
	Measured Aged         `json:"measured,omitzero"`
}

// Allowance holds a limit on an output's time away from safe, and the remaining time.
type Allowance struct {
	Left    float64 `json:"left_seconds"` // from now on, while it is away from safe; otherwise if it leaves it now
	Of      float64 `json:"of_seconds"`
	Within  float64 `json:"in_seconds,omitzero"`      // of a duty: in any time so long
	Assumed float64 `json:"assumed_seconds,omitzero"` // of a duty: what counts as used because it is before a start
}
