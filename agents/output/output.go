// Package output has the figures that answers tell of an output: what is left of its limits.
package output

// Allowance is what is left of a limit on an output's time away from safe.
type Allowance struct {
	Left    float64 `json:"left_seconds"` // from now on, while it is away from safe; otherwise if it leaves it now
	Of      float64 `json:"of_seconds"`
	Within  float64 `json:"in_seconds,omitzero"`      // of a duty: in any time so long
	Assumed float64 `json:"assumed_seconds,omitzero"` // of a duty: what counts as used because it is before a start
}
