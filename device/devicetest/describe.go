//lint:file-ignore ST1005 these errors begin with the name of a method

package devicetest

import (
	"context"
	"fmt"
	"reflect"

	"agentsite/device"
)

func describeValid(_ context.Context, s subject) error {
	return s.Describe().Validate()
}

// describeConstant compares descriptions from before and after the device was
// used, in every way that could change one.
func describeConstant(ctx context.Context, s subject) error {
	first := s.Describe()
	unchanged := func(after string) error {
		if again := s.Describe(); !reflect.DeepEqual(first, again) {
			return fmt.Errorf("Describe after %s:\n got %+v\nwant %+v", after, again, first)
		}
		return nil
	}
	if err := unchanged("Describe"); err != nil {
		return err
	}
	if sensor, ok := s.Device.(device.Sensor); ok {
		sensor.Sample(ctx) // another rule tests the result
		if err := unchanged("Sample"); err != nil {
			return err
		}
	}
	if actuator, ok := s.Device.(device.Actuator); ok {
		for _, p := range s.points(device.Kind.Output) {
			actuator.Apply(ctx, p.Name, away(p))
		}
		if err := unchanged("Apply"); err != nil {
			return err
		}
	}
	s.Close()
	return unchanged("Close")
}

// describeVerbs asks for the interface without which a described point is of no
// use.
func describeVerbs(_ context.Context, s subject) error {
	_, sensor := s.Device.(device.Sensor)
	_, actuator := s.Device.(device.Actuator)
	_, watcher := s.Device.(device.Watcher)
	_, display := s.Device.(device.Display)
	_, camera := s.Device.(device.Camera)
	for _, p := range s.Describe().Points {
		var has bool
		var want string
		switch p.Kind {
		case device.KindMeasurement, device.KindState:
			has, want = sensor || watcher, "Sensor or a Watcher"
		case device.KindSwitch, device.KindLevel:
			has, want = actuator, "Actuator"
		case device.KindEvent:
			has, want = watcher, "Watcher"
		case device.KindText:
			has, want = display, "Display"
		case device.KindImage:
			has, want = camera, "Camera"
		}
		if !has {
			return fmt.Errorf("%s is described as %s, but the device is no %s", p.Name, p.Kind, want)
		}
	}
	return nil
}
