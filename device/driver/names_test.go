package driver

import (
	"slices"
	"testing"

	"agentsite/device"
)

// TestNames: what the other side calls its points becomes names that a configuration takes, none of them twice.
func TestNames(t *testing.T) {
	var n Names
	var got []string
	for _, said := range []string{"Temp", "temp", "temp-2", "☃", "☃", "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwx1"} {
		got = append(got, n.New(said, "point"))
	}
	want := []string{"temp", "temp-2", "temp-2-2", "point", "point-2", "abcdefghijklmnopqrstuvwx", "abcdefghijklmnopqrstuv-2"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for range 100 {
		if name := n.New("abcdefghijklmnopqrstuvwxyz", ""); device.CheckName(name) != nil || slices.Contains(got, name) {
			t.Errorf("%q", name)
		} else {
			got = append(got, name)
		}
	}
}
