package ops

import (
	"strings"
	"testing"

	"agentsite/transport/owner"
)

// TestClockFindings: doctor says when a running site does not know the time, and whether
// it does not believe its machine.
func TestClockFindings(t *testing.T) {
	if all := clockFindings(owner.Access{Sure: true}); all != nil {
		t.Error(all)
	}
	said := make(map[string]bool)
	for _, a := range []owner.Access{{}, {LastKnown: true}, {Off: 1e6}, {Off: -1e6}} {
		all := clockFindings(a)
		if len(all) != 1 || !strings.Contains(all[0].Do, "agentsite clock --set") {
			t.Fatal(all)
		}
		said[all[0].Says] = true
	}
	if len(said) != 3 {
		t.Error(said)
	}
}
