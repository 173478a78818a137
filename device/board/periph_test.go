package board

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"periph.io/x/conn/v3/gpio"

	"agentsite/device"
)

// TestPeriphPin: a data line that is driven, listened to and driven again, as chips
// do with it, has no level in between that nobody asked for.
func TestPeriphPin(t *testing.T) {
	chip := FakeHeader()
	p := FakeLines(chip).PeriphPin("GPIO17")
	if p.Read() != gpio.Low || p.WaitForEdge(0) || chip.Driven(17) {
		t.Error("it was taken before In or Out")
	}
	for _, err := range []error{p.Out(gpio.High), p.In(gpio.PullUp, gpio.NoEdge), p.Out(gpio.High), p.Out(gpio.Low), p.In(gpio.Float, gpio.NoEdge)} {
		if err != nil {
			t.Error(err)
		}
	}
	if got := levels(chip, 17); got != "10" {
		t.Errorf("the pin went %q", got)
	}
	p.Out(gpio.High)
	if p.Read() != gpio.High || !chip.Driven(17) {
		t.Error("reading an output has changed it")
	}
	chip.Fail(17, syscall.EIO)
	if p.Read() != gpio.Low {
		t.Error("what cannot be read is not low")
	}
	faulted(t, p.Out(gpio.Low), device.Offline, "does not answer")
	chip.Fail(17, nil)
	faulted(t, p.Err(), device.Offline, "does not answer")
	if err := p.Err(); err != nil {
		t.Error("reported twice:", err)
	}
	chip.Unplug()
	faulted(t, p.Out(gpio.Low), device.Offline, "plug it in again")
	chip.Plug()
	if err := p.Out(gpio.High); err != nil || !chip.Level(17) {
		t.Error(err)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if chip.Driven(17) || p.PWM(gpio.DutyHalf, 0) == nil {
		t.Error("driven after Close, or by PWM")
	}
}

func TestPeriphEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chip := FakeHeader()
		chip.Drive(17, true)
		p := FakeLines(chip).PeriphPin("GPIO17")
		if err := p.In(gpio.PullUp, gpio.FallingEdge); err != nil {
			t.Fatal(err)
		}
		chip.Drive(17, false) // before anybody waits
		if !p.WaitForEdge(time.Second) {
			t.Error("an edge was lost")
		}
		chip.Drive(17, true)
		begun := time.Now()
		if p.WaitForEdge(time.Second) || time.Since(begun) != time.Second {
			t.Errorf("a rising edge was taken for a falling one, after %v", time.Since(begun))
		}
		if err := p.Err(); err != nil {
			t.Error(err)
		}
		time.AfterFunc(time.Minute, func() { chip.Drive(17, false) })
		if !p.WaitForEdge(-1) {
			t.Error("no edge")
		}
		time.AfterFunc(time.Minute, func() { p.Close() })
		if p.WaitForEdge(-1) {
			t.Error("an edge after Close")
		}
	})
}
