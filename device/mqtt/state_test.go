package mqtt

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// unconnected returns a device of Zigbee2MQTT without a broker, and what gives it messages.
func unconnected(t *testing.T) (d *dev, say func(topic, payload string, kept bool)) {
	r, err := (&fakeBroker{ln: nowhere{}}).config().resolve()
	if err != nil {
		t.Fatal(err)
	}
	d = newDevice(r, 0)
	d.broker = new(broker)
	d.found()
	return d, func(topic, payload string, kept bool) { d.take("zigbee2mqtt/"+topic, []byte(payload), kept) }
}

// TestBelieved: what is read of a device, message by message.
func TestBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, say := unconnected(t)
		power := func(step string, want float64) { // 0 for none
			t.Helper()
			r := reading(t, d, "power")
			if (r.Quality == device.Good) != (want != 0) || want != 0 && r.Value != device.Number(want) {
				t.Errorf("%s: %v", step, r)
			}
		}
		say("plug", `{"power":12}`, false)
		power("nothing is known of the bridge", 0)
		say("bridge/state", `{"state":"online"}`, true)
		power("the bridge is there", 12)
		time.Sleep(freshFor + time.Second)
		power("an hour later", 0)
		say("plug", `{"power":13}`, false)
		power("a new one", 13)
		say("plug", `{"power":14}`, true)
		power("a kept one, which is no newer", 13)
		say("plug/availability", `{"state":"online"}`, true)
		time.Sleep(24 * time.Hour)
		power("a day later, with an availability", 13)
		d.lost("there is no broker")
		power("lost", 0)
		d.found()
		say("plug", `{"power":15}`, true)
		power("found, and nothing is known of the bridge", 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.isThere(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a command does not wait for what the broker has kept: %v", err)
		}
		say("bridge/state", `{"state":"online"}`, true)
		power("a kept one", 0)
		say("plug/availability", `{"state":"online"}`, true)
		power("a kept one of a device that is there", 15)
		if age := time.Since(reading(t, d, "power").At); age != 0 {
			t.Errorf("it is %v old", age)
		}
		say("plug/availability", `{"state":"offline"}`, false)
		power("away", 0)
		say("plug/availability", `{"state":"online"}`, false)
		power("back, and it has said nothing", 0)
		say("plug", `{"power":16}`, false)
		power("at last", 16)
		say("bridge/state", `{"state":"offline"}`, false)
		power("the bridge is away", 0)
	})
}

// TestSilentOutput: an output away from safe that does not answer is a fault within seconds; one at safe is not.
func TestSilentOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, say := unconnected(t)
		say("bridge/state", `{"state":"online"}`, true)
		good := func(want bool) {
			t.Helper()
			if r := reading(t, d, "relay"); (r.Quality == device.Good) != want {
				t.Error(r)
			}
		}
		for range 2 {
			say("plug", `{"state":"OFF"}`, false)
			for range 20 {
				good(true)
				time.Sleep(time.Second)
			}
			say("plug", `{"state":"ON"}`, false)
			for time.Since(d.states[0].at) <= silentFor {
				good(true)
				time.Sleep(time.Second)
			}
			good(false)
		}
	})
}
