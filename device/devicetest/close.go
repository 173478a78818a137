//lint:file-ignore ST1005 these errors begin with the name of a method

package devicetest

import (
	"context"
	"fmt"
	"math"

	"agentsite/device"
)

func closeTwice(_ context.Context, s subject) error {
	for _, which := range []string{"first", "second"} {
		if err := s.Close(); err != nil {
			return fmt.Errorf("the %s Close: %w", which, err)
		}
	}
	return nil
}

// closeSafe looks at the hardware after Close, and again after an Apply that
// came too late: a closed device moves nothing.
func closeSafe(ctx context.Context, s subject) error {
	actuator, ok := s.Device.(device.Actuator)
	if !ok {
		return skip("not an Actuator")
	}
	if s.level == nil {
		return skip("no witness at the hardware: set Options.Level")
	}
	outputs := s.points(device.Kind.Output)
	for _, p := range outputs {
		if err := actuator.Apply(ctx, p.Name, away(p)); err != nil {
			return fmt.Errorf("Apply(%s, %v): %w", p.Name, away(p), err)
		}
		if got := s.level(p.Name); !same(p, got, away(p)) {
			return fmt.Errorf("%s is %v at the hardware after Apply of %v", p.Name, got, away(p))
		}
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("Close: %w", err)
	}
	if err := atSafe(s, outputs); err != nil {
		return fmt.Errorf("after Close: %w", err)
	}
	for _, p := range outputs {
		actuator.Apply(ctx, p.Name, away(p))
	}
	if err := atSafe(s, outputs); err != nil {
		return fmt.Errorf("after an Apply that followed Close: %w", err)
	}
	return nil
}

func atSafe(s subject, outputs []device.Point) error {
	for _, p := range outputs {
		if got := s.level(p.Name); !same(p, got, p.Safe) {
			return fmt.Errorf("%s is %v at the hardware, want its safe value %v", p.Name, got, p.Safe)
		}
	}
	return nil
}

// same allows a witness of a level the steps of its hardware: a hundredth of the range.
func same(p device.Point, a, b device.Value) bool {
	return a.Type() == b.Type() && math.Abs(a.Number()-b.Number()) <= (p.Range.Max-p.Range.Min)/100
}
