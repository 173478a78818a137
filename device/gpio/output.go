package gpio

import (
	"time"

	"agentsite/device"
	"agentsite/device/board"
)

// driven is a line that is taken when it is first driven, with that value, and
// anew after its chip has been away.
type driven struct {
	board   *board.Board
	pin     board.Pin
	options board.OutputOptions
	line    *board.Line // nil before
	on      bool        // as it was driven last
}

func (d *driven) set(on bool) error {
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
func (d *driven) get() (bool, error) {
	if d.line == nil {
		return false, device.Faultf(device.Offline, "%s is not driven", d.pin)
	}
	return d.line.Get()
}

// follows reports a line that is not where it was driven to.
func (d *driven) follows() error {
	got, err := d.get()
	if err == nil && got != d.on {
		err = device.Faultf(device.Offline, "%s is driven %v and reads %v; look for a short, or for something stronger that drives it", d.pin, device.Bool(d.on), device.Bool(got))
	}
	return err
}

func (d *driven) release() error {
	if d.line == nil {
		return nil
	}
	err := d.line.Close()
	d.line = nil
	return err
}

// pulsed is a line that is on for a part of the time.
type pulsed struct {
	driven
	period time.Duration
	train  *board.PulseTrain // nil while the line keeps still
}

// set makes pulses of that length, none for 0, and no pauses for the whole period.
func (p *pulsed) set(on time.Duration) error {
	p.halt()
	if on <= 0 || on >= p.period {
		return p.driven.set(on > 0)
	}
	if p.line == nil {
		if err := p.driven.set(false); err != nil {
			return err
		}
	}
	t, err := p.board.Pulse(p.line, on, p.period)
	if board.Unplugged(err) {
		p.driven.release()
	}
	p.train = t
	return err
}

// halt ends the pulses, with the line off as far as it obeys: what comes next shows
// whether it does.
func (p *pulsed) halt() {
	if p.train == nil {
		return
	}
	err := p.train.Stop()
	p.train = nil
	if board.Unplugged(err) {
		p.driven.release()
	}
}

// broken is why the pulses have ended, or the line that keeps still does not follow.
func (p *pulsed) broken() error {
	if p.train != nil {
		return p.train.Err()
	}
	return p.follows()
}

func (p *pulsed) read(now device.Value) (device.Value, error) {
	if now.IsZero() {
		return now, device.Faultf(device.Offline, "nobody knows what %s does: it was not driven yet, or did not obey", p.pin)
	}
	return now, p.broken()
}

func (p *pulsed) release() error {
	p.halt()
	return p.driven.release()
}
