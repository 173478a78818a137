package agents

import (
	"testing"

	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// TestOutputState: the answers about an output have its state in the same words and order, and an
// answer without limits has only that.
func TestOutputState(t *testing.T) {
	on, off := device.Bool(true), device.Bool(false)
	state := OutputState{Goal: on, Holder: "ann", Left: 1, Rest: 2, Needs: "n", Fault: "f", Why: "w"}
	detail := OutputDetail{Safe: off, Max: 3, Limits: "l", Confirm: "owner", OutputState: state, State: 4, Others: true}
	const is = `"going_to":true,"held_by":"ann","seconds_left":1,"rest_seconds":2,"needs":"n","fault":"f","returned_because":"w"`
	for want, v := range map[string]any{
		`{"output":"a/b","value":false,` + is + `}`:                                              OutputStatus{"a/b", off, state},
		`{"output":"a/b","value":null}`:                                                          OutputStatus{Output: "a/b"},
		`{"safe":false,"max_seconds":3,"limits":"l","confirm":"owner",` + is + `,"state":4}`:     detail,
		`{` + is + `,"state":4}`:                                                                 detail.Doing(),
		`{"output":"a/b","value":false,"going_to":true,"safe":false,"state":4,"seconds_left":1}`: Output{Output: "a/b", Value: off, Goal: on, Safe: off, State: 4, Left: 1},
		`{}`: OutputDetail{},
	} {
		if got, err := json.Marshal(v); err != nil || string(got) != want {
			t.Errorf("%s, want %s: %v", got, want, err)
		}
	}
}
