package task

import "testing"

// TestStates: what has ended stays so, each other state can fail and be canceled, and a task can
// wait only while it is worked on.
func TestStates(t *testing.T) {
	all := []State{Submitted, Working, InputRequired, AuthRequired, Completed, Failed, Rejected, Canceled}
	for _, from := range all {
		for _, to := range all {
			may := from.Before(to)
			switch {
			case from.Ended() && may:
				t.Errorf("%s goes on to %s", from, to)
			case !from.Ended() && (to == Failed || to == Canceled) && !may:
				t.Errorf("%s cannot end as %s", from, to)
			case (to == InputRequired || to == AuthRequired) && may != (from == Working):
				t.Errorf("%s to %s: %v", from, to, may)
			case to == Submitted && may:
				t.Errorf("%s begins anew", from)
			}
		}
	}
}
