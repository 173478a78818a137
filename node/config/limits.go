package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
)

// Duty limits the time away from safe in any window: 20m/1h.
type Duty struct{ Away, Window time.Duration }

func (d *Duty) UnmarshalText(text []byte) error {
	away, window, ok := strings.Cut(string(text), "/")
	if !ok {
		return errors.New("takes a time in a period, such as 20m/1h, not " + strconv.Quote(clip(string(text))))
	}
	var err error
	if d.Away, err = parseDuration(away); err != nil {
		return fmt.Errorf("before the slash %w", err)
	}
	if d.Window, err = parseDuration(window); err != nil {
		return fmt.Errorf("after the slash %w", err)
	}
	if d.Away == 0 {
		return errors.New("leaves no time away from safe; write a time in a period, such as 20m/1h")
	}
	return nil
}

// Rate limits the moves in any window: 20/1h.
type Rate struct {
	Moves  int
	Window time.Duration
}

func (r *Rate) UnmarshalText(text []byte) error {
	moves, window, ok := strings.Cut(string(text), "/")
	n, err := strconv.ParseUint(moves, 10, 31)
	if !ok || err != nil {
		return errors.New("takes a number in a period, such as 20/1h, not " + strconv.Quote(clip(string(text))))
	}
	if n == 0 {
		return errors.New("permits no move; write a number in a period, such as 20/1h")
	}
	r.Moves = int(n)
	if r.Window, err = parseDuration(window); err != nil {
		return fmt.Errorf("after the slash %w", err)
	}
	return nil
}

// Slew limits the speed of a level: 45/s, in the level's own unit.
type Slew struct{ PerSecond float64 }

func (s *Slew) UnmarshalText(text []byte) error {
	amount, per, _ := strings.Cut(string(text), "/")
	unit, ok := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour}[per]
	n, err := parseNumber(amount)
	if !ok || err != nil {
		return errors.New("takes a speed per s, m or h, such as 45/s, not " + strconv.Quote(clip(string(text))))
	}
	s.PerSecond = n / unit.Seconds()
	if !(s.PerSecond > 0) || math.IsInf(s.PerSecond, 0) {
		return errors.New("takes a speed above 0, such as 45/s, not " + clip(string(text)))
	}
	return nil
}

// Interlock is a group of outputs of which at most one is away from safe.
type Interlock struct {
	Group group         `json:"group" jsonschema:"the name of the group, the same at each of its outputs"`
	Gap   time.Duration `json:"gap,omitempty" jsonschema:"how long all the others have to have been safe before one leaves"`
}

type group string

func (g *group) UnmarshalText(text []byte) error {
	*g = group(text)
	return device.CheckName(string(text))
}

// Requirement is a condition on a point for an output to be away from safe.
type Requirement struct {
	Point  address       `json:"point" jsonschema:"a sensor's point, as device/point"`
	Within *device.Range `json:"within,omitempty" jsonschema:"what a measurement has to be, such as 20..100"`
	Is     state         `json:"is,omitempty" jsonschema:"what a state has to be: on, off or one of its words"`
	MaxAge time.Duration `json:"max_age,omitempty" jsonschema:"how old its last reading may be; three times the sensor's every when not written"`
}

// confirmer names the role that approves a move.
type confirmer string

func (c *confirmer) UnmarshalText(text []byte) error {
	*c = confirmer(text)
	if *c != "owner" {
		return fmt.Errorf("takes the word owner, not %q; without confirm no approval is needed", clip(string(text)))
	}
	return nil
}

type address string

func (a *address) UnmarshalText(text []byte) error {
	*a = address(text)
	if name, point, ok := device.SplitAddress(string(text)); !ok || device.CheckName(name) != nil || device.CheckName(point) != nil {
		return fmt.Errorf("takes a device and its point, such as tank/level, not %q", clip(string(text)))
	}
	return nil
}

// state is a value of a state: on, off or a word.
type state string

func (s *state) UnmarshalText(text []byte) error {
	*s = state(text)
	if len(text) == 0 {
		return errors.New("takes on, off or a word")
	}
	return nil
}

// Value returns the state as a reading of the point.
func (s state) Value() device.Value {
	if on, ok := parseBool(string(s)); ok {
		return device.Bool(on)
	}
	if s == "" {
		return device.Value{}
	}
	return device.Text(string(s))
}
