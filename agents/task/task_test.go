package task

import "testing"

// TestStates: an ended task stays so, a task in any other state can fail and be canceled, and only
// a working task can wait.
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
