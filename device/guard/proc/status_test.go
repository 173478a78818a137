package proc

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

// TestStatusCrosses: every field of a status comes through the connection.
func TestStatusCrosses(t *testing.T) {
	var sent guard.Status
	v := reflect.ValueOf(&sent).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i).Addr().Interface().(type) {
		case *string:
			*f = v.Type().Field(i).Name
		case *guard.Effect:
			*f = guard.Confirmed
		case *bool:
			*f = true
		case *time.Duration:
			*f = time.Duration(i + 1)
		case *int64:
			*f = int64(i + 1)
		case *device.Value:
			*f = device.Number(float64(i + 1))
		default:
			t.Fatalf("%s is of a new type", v.Type().Field(i).Name)
		}
	}
	var w writer
	w.status(sent)
	r := reader{b: w.b}
	if got := r.status(); got != sent || r.end() != nil {
		t.Errorf("%+v, %v, want %+v", got, r.end(), sent)
	}
}

// TestLimitsRun: what is left of an output's limits runs while it is away from safe, without a message.
func TestLimitsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		if err := r.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.on(t, time.Minute)
		before, _ := r.StatusOf(relayName)
		time.Sleep(10 * time.Second)
		after, _ := r.StatusOf(relayName)
		if before.MaxOn <= 10*time.Second || before.MaxOn-after.MaxOn != 10*time.Second || before.Spare-after.Spare != 10*time.Second {
			t.Errorf("%v, then %v", before.MaxOn, after.MaxOn)
		}
	})
}
