package mqtt

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/mqtt/packet"
)

// applyFor is apply for a command that is not confirmed.
func applyFor(t *testing.T, d *dev, v bool, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	return d.Apply(ctx, "relay", device.Bool(v))
}

// TestDenied: a command that the broker refuses to take has failed, and is not one whose outcome is unknown.
func TestDenied(t *testing.T) {
	p := newPlug(t)
	d := open(t, p.config())
	until(t, "off", good(t, d, "relay", device.Bool(false)))
	p.do(func() { p.denied, p.fakeBroker.device = 0x87, nil })
	err := applyFor(t, d, true, 10*time.Second)
	if kindOf(err) != device.Offline || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	p.do(func() { p.denied, p.fakeBroker.device = 0, p.command })
}

// TestKeptConfirmsNothing: what the broker had kept is not the effect of a command, although it comes after it.
func TestKeptConfirmsNothing(t *testing.T) {
	p := newPlug(t)
	d := open(t, p.config())
	until(t, "off", good(t, d, "relay", device.Bool(false)))
	p.do(func() {
		p.fakeBroker.device = func(b *fakeBroker, _, _ string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			for c := range b.clients {
				c.say(packet.AppendPublish(nil, c.version, 0, "zigbee2mqtt/plug", []byte(`{"state":"ON"}`), true))
			}
		}
	})
	if err := applyFor(t, d, true, 300*time.Millisecond); kindOf(err) != device.UnknownOutcome {
		t.Error(err)
	}
	p.do(func() { p.fakeBroker.device = p.command })
}

// TestBrokenOff: the end of the connection ends a command at once, with an outcome that is not known.
func TestBrokenOff(t *testing.T) {
	p := newPlug(t)
	d := open(t, p.config())
	until(t, "off", good(t, d, "relay", device.Bool(false)))
	p.do(func() {
		p.fakeBroker.device = func(b *fakeBroker, topic, _ string) {
			if topic == "zigbee2mqtt/plug/set" {
				b.kill()
			}
		}
	})
	err := applyFor(t, d, true, 10*time.Second)
	if kindOf(err) != device.UnknownOutcome || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	p.do(func() { p.fakeBroker.device = p.command })
}

// TestNotHeldAfterOff: an output that was told to go off is not told again to be on, although it has not said that it
// followed.
func TestNotHeldAfterOff(t *testing.T) {
	p := newPlug(t)
	c := p.config()
	o := c.Outputs["relay"]
	o.On, o.Hold = `{"state":"ON","on_time":{seconds}}`, 6*time.Second
	c.Outputs["relay"] = o
	d := open(t, c)
	if err := apply(t, d, "relay", device.Bool(true)); err != nil {
		t.Fatal(err)
	}
	p.do(func() { p.fakeBroker.device = nil })
	if err := applyFor(t, d, false, 300*time.Millisecond); kindOf(err) != device.UnknownOutcome {
		t.Error(err)
	}
	d.mu.Lock()
	d.states[d.index("relay")].sentAt = time.Now().Add(-3 * time.Second)
	d.mu.Unlock()
	reading(t, d, "relay")
	p.do(func() { p.fakeBroker.device = p.command })
	if err := applyFor(t, d, false, 10*time.Second); err != nil { // after all that was sent before
		t.Error(err)
	}
	if n := p.sent(`zigbee2mqtt/plug/set {"state":"ON","on_time":6}`); n != 1 {
		t.Errorf("it was told %d times to be on", n)
	}
}

// TestSafeAlways: a return to safe is sent also to a device that is away, and at Close; a closed device sends nothing.
func TestSafeAlways(t *testing.T) {
	p := newPlug(t)
	d := open(t, p.config())
	p.publish("zigbee2mqtt/plug/availability", `{"state":"offline"}`, true)
	until(t, "away", bad(t, d, "relay", "away"))
	const off = `zigbee2mqtt/plug/set {"state":"OFF"}`
	if err := apply(t, d, "relay", device.Bool(false)); p.sent(off) != 1 {
		t.Errorf("safe is sent %d times: %v", p.sent(off), err)
	}
	d.Close()
	if p.sent(off) != 2 {
		t.Errorf("at Close safe is sent %d times", p.sent(off)-1)
	}
	err := apply(t, d, "relay", device.Bool(false))
	if kindOf(err) != device.Offline || d.Close() != nil || p.sent(off) != 2 {
		t.Errorf("a closed device is used: %v", err)
	}
}
