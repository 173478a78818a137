package gpio

import (
	"time"

	"agentsite/device"
	"agentsite/device/board"
)

// outputLine is a line that is requested when it is first driven, with that value, and
// again after its chip was unplugged.
type outputLine struct {
	board   *board.Board
	pin     board.Pin
	options board.OutputOptions
	line    *board.Line // nil before
	on      bool        // as it was driven last
}

func (d *outputLine) set(on bool) error {
	d.on = on
	if d.line == nil {
		o := d.options
		o.Initial = on
		line, err := d.board.Output(d.pin, o)
		d.line = line
		return err
	}
	err := d.line.Set(on)
	if board.Unplugged(err) {
		d.release()
		return d.set(on)
	}
	return err
}

// get reads the line back.
func (d *outputLine) get() (bool, error) {
	if d.line == nil {
		return false, device.Faultf(device.Offline, "%s is not driven", d.pin)
	}
	return d.line.Get()
}

// check fails where the line does not have the level that it was driven to.
func (d *outputLine) check() error {
	got, err := d.get()
	if err == nil && got != d.on {
		err = device.Faultf(device.Offline, "%s is driven %v but reads %v; check for a short circuit, or for another driver of the line", d.pin, device.Bool(d.on), device.Bool(got))
	}
	return err
}

func (d *outputLine) release() error {
	if d.line == nil {
		return nil
	}
	err := d.line.Close()
	d.line = nil
	return err
}

// pulsedLine is an output that is on for a part of the time.
type pulsedLine struct {
	outputLine
	period time.Duration
	train  *board.PulseTrain // nil while the level is constant
}

// set makes pulses of that length, none for 0, and no pauses for the whole period.
func (p *pulsedLine) set(on time.Duration) error {
	p.halt()
	if on <= 0 || on >= p.period {
		return p.outputLine.set(on > 0)
	}
	if p.line == nil {
		if err := p.outputLine.set(false); err != nil {
			return err
		}
	}
	t, err := p.board.Pulse(p.line, on, p.period)
	if board.Unplugged(err) {
		p.outputLine.release()
	}
	p.train = t
	return err
}

// halt ends the pulses and tries to leave the line off; the next operation on the line
// reports a failure.
func (p *pulsedLine) halt() {
	if p.train == nil {
		return
	}
	err := p.train.Stop()
	p.train = nil
	if board.Unplugged(err) {
		p.outputLine.release()
	}
}

// err returns why the pulses ended, or why a constant level is not as driven.
func (p *pulsedLine) err() error {
	if p.train != nil {
		return p.train.Err()
	}
	return p.check()
}

func (p *pulsedLine) read(now device.Value) (device.Value, error) {
	if now.IsZero() {
		return now, device.Faultf(device.Offline, "the state of %s is unknown: it was not driven yet, or a write failed", p.pin)
	}
	return now, p.err()
}

func (p *pulsedLine) release() error {
	p.halt()
	return p.outputLine.release()
}
