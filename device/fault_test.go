package device

import (
	"errors"
	"fmt"
	"testing"
)

// says is an error of a room that knows no devices.
type says string

func (s says) Error() string     { return "no" }
func (s says) FaultKind() string { return string(s) }

func TestAsFault(t *testing.T) {
	ours := Faultf(Busy, "later")
	for _, tt := range []struct {
		err  error
		kind FaultKind
		msg  string
	}{
		{ours, Busy, "later"}, {fmt.Errorf("x: %w", ours), Busy, "later"},
		{says("offline"), Offline, "no"}, {fmt.Errorf("x: %w", says("offline")), Offline, "x: no"},
		{says(""), Internal, "no"}, {errors.New("what"), Internal, "what"},
	} {
		if f := AsFault(tt.err); f.Kind != tt.kind || f.Msg != tt.msg {
			t.Errorf("%v is %s: %s, want %s: %s", tt.err, f.Kind, f.Msg, tt.kind, tt.msg)
		}
	}
}
