package gpio

import (
	"slices"
	"testing"

	"agentsite/device/board"
)

func TestHolds(t *testing.T) {
	for name, tt := range map[string]struct {
		config board.PowerOnLeveler
		want   []board.PowerOnLevel
	}{
		"off":                    {&Switch{Pin: "GPIO17"}, []board.PowerOnLevel{{Pin: "GPIO17"}}},
		"active low":             {&Switch{Pin: "GPIO17", ActiveLow: true}, []board.PowerOnLevel{{Pin: "GPIO17", High: true}}},
		"on is safe, active low": {&Switch{Pin: "GPIO17", Safe: true, ActiveLow: true}, []board.PowerOnLevel{{Pin: "GPIO17"}}},
		"open drain, released":   {&Switch{Pin: "GPIO17", Safe: true, Drive: board.OpenDrain}, []board.PowerOnLevel{{Pin: "GPIO17", High: true, Open: true}}},
		"open drain, driven":     {&Switch{Pin: "GPIO17", Drive: board.OpenDrain}, []board.PowerOnLevel{{Pin: "GPIO17"}}},
		"open source, released":  {&Switch{Pin: "GPIO17", Drive: board.OpenSource}, []board.PowerOnLevel{{Pin: "GPIO17", Open: true}}},
		"a dimmer that is on":    {&Dimmer{Pin: "GPIO17", Safe: 100}, []board.PowerOnLevel{{Pin: "GPIO17", High: true}}},
		"a servo has no pulses":  {&Servo{Pin: "GPIO17", Safe: 90}, []board.PowerOnLevel{{Pin: "GPIO17"}}},
		"a motor's two":          {&Motor{Forward: "GPIO5", Backward: "GPIO6", ActiveLow: true}, []board.PowerOnLevel{{Pin: "GPIO5", High: true}, {Pin: "GPIO6", High: true}}},
	} {
		if got := tt.config.PowerOnLevels(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
