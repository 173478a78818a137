//lint:file-ignore ST1005 these errors begin with the name of a method

package devicetest

import (
	"context"
	"fmt"
	"math"

	"agentsite/device"
)

// apply moves every output away from safe and back. Where the device reads it back, that
// is exactly what was applied: the guard treats anything else as a change from outside.
func apply(ctx context.Context, s subject) error {
	actuator, ok := s.Device.(device.Actuator)
	if !ok {
		return skip("not an Actuator")
	}
	for _, p := range s.points(device.Kind.Output) {
		odd := away(p)
		if p.Kind == device.KindLevel { // no hardware's steps meet it
			odd = device.Number(p.Range.Min + (p.Range.Max-p.Range.Min)/math.Pi)
		}
		for _, v := range []device.Value{p.Safe, away(p), away(p), odd, p.Safe} {
			if err := actuator.Apply(ctx, p.Name, v); err != nil {
				return fmt.Errorf("Apply(%s, %v): %w", p.Name, v, err)
			}
			if err := readsBack(ctx, s, p, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// readsBack reports a Sample that contradicts the value just applied.
func readsBack(ctx context.Context, s subject, p device.Point, want device.Value) error {
	sensor, ok := s.Device.(device.Sensor)
	if !ok {
		return nil
	}
	readings, err := sensor.Sample(ctx)
	if err != nil {
		return fmt.Errorf("Sample after Apply(%s, %v): %w", p.Name, want, err)
	}
	for _, r := range readings {
		if r.Point == p.Name && r.Value != want {
			return fmt.Errorf("%s reads %v after Apply of %v", p.Name, r.Value, want)
		}
	}
	return nil
}

// away is the value of an output that is farthest from safe.
func away(p device.Point) device.Value {
	if p.Kind == device.KindSwitch {
		return device.Bool(!p.Safe.Bool())
	}
	if p.Safe.Number()-p.Range.Min > p.Range.Max-p.Safe.Number() {
		return device.Number(p.Range.Min)
	}
	return device.Number(p.Range.Max)
}

func applyUnknownPoint(ctx context.Context, s subject) error {
	actuator, ok := s.Device.(device.Actuator)
	if !ok {
		return skip("not an Actuator")
	}
	names := []string{nowhere, ""}
	for _, p := range s.points(func(k device.Kind) bool { return !k.Output() }) {
		names = append(names, p.Name)
	}
	for _, name := range names {
		for _, v := range []device.Value{device.Bool(false), device.Number(0)} {
			if actuator.Apply(ctx, name, v) == nil {
				return fmt.Errorf("Apply(%q, %v) was accepted, but that is not an output", name, v)
			}
		}
	}
	return nil
}

func applyWrongValue(ctx context.Context, s subject) error {
	actuator, ok := s.Device.(device.Actuator)
	if !ok {
		return skip("not an Actuator")
	}
	for _, p := range s.points(device.Kind.Output) {
		for _, v := range wrong(p) {
			if actuator.Apply(ctx, p.Name, v) == nil {
				return fmt.Errorf("Apply(%s, %v), a value of type %q, was accepted by a %s", p.Name, v, v.Type(), p.Kind)
			}
		}
	}
	return nil
}

// wrong lists values that an output must refuse.
func wrong(p device.Point) []device.Value {
	if p.Kind == device.KindSwitch {
		return []device.Value{{}, device.Number(0), device.Number(1), device.Text("on")}
	}
	return []device.Value{
		{}, device.Bool(false), device.Bool(true), device.Text("1"),
		device.Number(math.NaN()), device.Number(math.Inf(1)), device.Number(math.Inf(-1)),
		device.Number(math.Nextafter(p.Range.Max, math.Inf(1))),
		device.Number(math.Nextafter(p.Range.Min, math.Inf(-1))),
	}
}

func applyCancelled(_ context.Context, s subject) error {
	actuator, ok := s.Device.(device.Actuator)
	outputs := s.points(device.Kind.Output)
	if !ok || len(outputs) == 0 {
		return skip("no output")
	}
	return cancelled(func(ctx context.Context) error {
		return actuator.Apply(ctx, outputs[0].Name, outputs[0].Safe)
	})
}
