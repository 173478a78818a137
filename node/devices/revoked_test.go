package devices

import (
	"context"
	"slices"
	"testing"

	"agentsite/device/guard"
)

type heldOutputs struct {
	status   []guard.Status
	released chan string
}

func (h heldOutputs) Status() []guard.Status { return h.status }
func (h heldOutputs) Release(_ context.Context, output string) (guard.Status, error) {
	h.released <- output
	return guard.Status{}, nil
}

// TestReleaseRevoked: outputs whose holder has lost the permission are released, the others
// stay.
func TestReleaseRevoked(t *testing.T) {
	h := heldOutputs{[]guard.Status{{Output: "a/x", Holder: "ann"}, {Output: "b/x", Holder: "bob"}, {Output: "c/x"}, {Output: "d/x", Holder: "bob"}}, make(chan string)}
	noted := make(chan string, 2)
	ReleaseRevoked(t.Context(), h, func(holder, output string) bool { return holder != "bob" || output == "e/x" }, func(output string) { noted <- output })
	released := []string{<-h.released, <-h.released}
	if slices.Sort(released); !slices.Equal(released, []string{"b/x", "d/x"}) {
		t.Error(released)
	}
	notes := []string{<-noted, <-noted}
	if slices.Sort(notes); !slices.Equal(notes, released) {
		t.Error(notes)
	}
}
