//lint:file-ignore ST1005 these errors begin with the name of a method

package devicetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentsite/device"
)

func sample(ctx context.Context, s subject) error {
	sensor, ok := s.Device.(device.Sensor)
	if !ok {
		return skip("not a Sensor")
	}
	seen := make(map[string]bool)
	readings, err := sensor.Sample(ctx)
	if err != nil {
		return fmt.Errorf("Sample: %w", err)
	}
	for _, r := range readings {
		if seen[r.Point] {
			return fmt.Errorf("Sample returned %s twice", r.Point)
		}
		seen[r.Point] = true
		p, ok := s.Describe().Point(r.Point)
		if !ok {
			return fmt.Errorf("Sample returned %q, which is not described", r.Point)
		}
		if err := checkSampled(p, r); err != nil {
			return fmt.Errorf("Sample: %w", err)
		}
	}
	for _, p := range s.Describe().Points {
		if (p.Kind == device.KindMeasurement || p.Kind == device.KindState) && !seen[p.Name] {
			return fmt.Errorf("Sample left out %s; what cannot be read has quality %s", p.Name, device.Bad)
		}
	}
	return nil
}

func checkSampled(p device.Point, r device.Reading) error {
	switch p.Kind {
	case device.KindEvent, device.KindText, device.KindImage:
		return fmt.Errorf("%s is of kind %s, which cannot be sampled", p.Name, p.Kind)
	}
	return checkReading(p, r)
}

// checkReading holds one reading of p to the contract.
func checkReading(p device.Point, r device.Reading) error {
	switch {
	case r.At.IsZero():
		return fmt.Errorf("%s has no time", p.Name)
	case r.At.After(time.Now()):
		return fmt.Errorf("%s is from the future", p.Name)
	}
	switch r.Quality {
	case device.Bad:
		if r.Why == "" {
			return fmt.Errorf("%s has quality %s and does not say why", p.Name, r.Quality)
		}
		return nil
	case device.Good, device.Stale:
		if err := checkValue(p, r.Value); err != nil {
			return fmt.Errorf("%s = %v: %w", p.Name, r.Value, err)
		}
		return nil
	}
	return fmt.Errorf("%s has the unknown quality %q", p.Name, r.Quality)
}

func checkValue(p device.Point, v device.Value) error {
	if !v.Finite() {
		return errors.New("not a finite number")
	}
	want := device.TypeNumber
	switch p.Kind {
	case device.KindSwitch:
		want = device.TypeBool
	case device.KindState:
		want = device.TypeBool
		if len(p.Values) > 0 {
			want = device.TypeText
		}
	case device.KindEvent: // an edge, a count or a key: any of the three
		want = v.Type()
	}
	switch {
	case v.IsZero():
		return errors.New("nothing is known, so the quality is " + string(device.Bad))
	case v.Type() != want:
		return fmt.Errorf("a %s needs %s", p.Kind, want)
	case p.Kind == device.KindState && want == device.TypeText && !slices.Contains(p.Values, v.Text()):
		return fmt.Errorf("not one of %q", p.Values)
	case want == device.TypeNumber && p.Range != device.Range{} && !p.Range.Contains(v.Number()):
		return fmt.Errorf("outside %s", p.Range)
	}
	return nil
}

func sampleCancelled(_ context.Context, s subject) error {
	sensor, ok := s.Device.(device.Sensor)
	if !ok {
		return skip("not a Sensor")
	}
	return cancelled(func(ctx context.Context) error {
		_, err := sensor.Sample(ctx)
		return err
	})
}

const (
	settles = time.Minute // the longest time until a device reports all its points
	pause   = time.Second // between two samples
)

// sampleAfterDip takes the supply away between two samples. The world stays as it is,
// so that afterwards a point has a fault or the value that it had, and soon all have
// their values again.
func sampleAfterDip(ctx context.Context, s subject) error {
	sensor, ok := s.Device.(device.Sensor)
	if !ok {
		return skip("not a Sensor")
	}
	if s.dip == nil {
		return skip("no supply to take away: set Options.Dip")
	}
	before, err := settled(ctx, sensor, nil)
	if err != nil {
		return err
	}
	s.dip()
	for range 2 { // the first may be what was measured before
		if _, err := settled(ctx, sensor, before); err != nil {
			return fmt.Errorf("after its supply was away: %w", err)
		}
		time.Sleep(pause)
	}
	return nil
}

// settled samples until all points are good, and returns their values. With some given
// no good value may differ from its own.
func settled(ctx context.Context, sensor device.Sensor, want map[string]device.Value) (map[string]device.Value, error) {
	var why error
	for begun := time.Now(); time.Since(begun) < settles; time.Sleep(pause) {
		readings, err := sensor.Sample(ctx)
		if why = err; err != nil {
			continue
		}
		got := make(map[string]device.Value)
		for _, r := range readings {
			switch was, known := want[r.Point]; {
			case r.Quality != device.Good:
				why = fmt.Errorf("%s: %s", r.Point, r.Why)
			case known && was != r.Value:
				return nil, fmt.Errorf("%s = %v is called good; it is %v", r.Point, r.Value, was)
			}
			got[r.Point] = r.Value
		}
		if why == nil {
			return got, nil
		}
	}
	return nil, fmt.Errorf("its points are not good within %v: %w", settles, why)
}
