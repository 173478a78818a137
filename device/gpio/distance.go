package gpio

import (
	"context"
	"errors"
	"math"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// Distance is the YAML of the driver "hc-sr04": an ultrasonic sensor with a trigger and an echo. It
// is best effort. The echo lasts as long as the sound travels, 58 µs for each centimetre, and a
// busy board sees its edges late. The kernel timestamps the edges in its interrupt, so that only
// delays of the kernel count.
type Distance struct {
	Trigger     board.Pin `json:"trigger" jsonschema:"the line of the sensor's Trig"`
	Echo        board.Pin `json:"echo" jsonschema:"the line of the sensor's Echo; its 5 V have to be divided to 3.3 V"`
	Temperature float64   `json:"temperature,omitempty" jsonschema:"of the air, in degrees Celsius, which the speed of sound depends on"`

	board *board.Board
}

const (
	distanceNear  = 0.02
	distanceFar   = 4.0
	distancePulse = 10 * time.Microsecond  // on the trigger, at least
	distanceEcho  = 250 * time.Millisecond // some hold their echo for 200 ms when there is none
	distanceSkew  = time.Millisecond       // between two clocks of the kernel
)

// Validate finds mistakes without hardware.
func (c *Distance) Validate() error {
	switch {
	case c.Trigger == c.Echo:
		return device.Faultf(device.Invalid, "echo: %s is the line of trigger; the sensor has two", c.Echo)
	case !(c.Temperature >= -40 && c.Temperature <= 85):
		return device.Faultf(device.Invalid, "temperature: %v is not -40 to 85 degrees Celsius", device.Number(c.Temperature))
	}
	return nil
}

// Describe needs no hardware.
func (c *Distance) Describe() device.Description {
	return device.Description{Model: "HC-SR04 on " + string(c.Trigger) + " and " + string(c.Echo), Points: []device.Point{{
		Name: "distance", Kind: device.KindMeasurement, Unit: "m", Description: "distance to what is before the sensor",
		Range: device.Range{Min: distanceNear, Max: distanceFar},
	}}}
}

// Resources returns both lines.
func (c *Distance) Resources() []driver.Resource {
	return []driver.Resource{c.Trigger.Resource(), c.Echo.Resource()}
}

// Open finds the lines. The first sample requests them.
func (c *Distance) Open(context.Context) (device.Device, error) {
	if err := c.board.CheckFree(c.Trigger, c.Echo); err != nil {
		return nil, err
	}
	return &distance{
		desc: c.Describe(), mu: device.NewMutex(), speed: 331.3 * math.Sqrt(1+c.Temperature/273.15),
		trigger: outputLine{board: c.board, pin: c.Trigger}, echo: newInputLines(c.board, board.InputOptions{Edges: true}, c.Echo),
	}, nil
}

type distance struct {
	desc  device.Description
	speed float64 // of sound, in m/s

	mu      device.Mutex // guards the fields below
	trigger outputLine
	echo    *inputLines
}

func (d *distance) Describe() device.Description { return d.desc }

// Sample sends one sound and waits for its echo, a quarter of a second at most. Where
// there is nothing within reach the reading is Bad.
func (d *distance) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := d.mu.LockContext(ctx); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	length, err := d.ping(ctx)
	if err != nil {
		return nil, err
	}
	r := device.Reading{Point: d.desc.Points[0].Name, Quality: device.Good, At: time.Now()}
	metres := math.Round(length.Seconds()*d.speed/2*1000) / 1000
	switch {
	case length == 0:
		r.Quality, r.Why = device.Bad, "its echo does not end: nothing is within reach"
	case !d.desc.Points[0].Range.Contains(metres):
		r.Quality, r.Why = device.Bad, "it reads "+device.Number(metres).String()+" m, and can measure only "+d.desc.Points[0].Range.String()+" m"
	default:
		r.Value = device.Number(metres)
	}
	return []device.Reading{r}, nil
}

// ping returns the length of the echo, 0 where it did not end in time.
func (d *distance) ping(ctx context.Context) (time.Duration, error) {
	line, err := d.echo.use(ctx)
	if err != nil {
		return 0, err
	}
	if !line.ReportsEdges() {
		return 0, device.Faultf(device.Invalid, "the chip with %s reports no changes; choose a line of the board itself", d.echo.pins[0])
	}
	early, err := line.Get()
	if err != nil {
		d.echo.drop(line, err)
		return 0, err
	}
	if early {
		return 0, device.Faultf(device.Offline, "%s: its echo is on before the sound was sent; check that line and the supply", d.desc.Model)
	}
	sent := time.Now()
	if err := d.send(); err != nil {
		return 0, err
	}
	return d.receive(ctx, line, sent)
}

// send sends one sound.
func (d *distance) send() error {
	if err := d.trigger.set(true); err != nil {
		return err
	}
	time.Sleep(distancePulse)
	return d.trigger.set(false)
}

// receive measures the echo of a sound by the kernel's time of its edges.
func (d *distance) receive(ctx context.Context, line *board.Line, sent time.Time) (time.Duration, error) {
	waiting, cancel := context.WithTimeout(ctx, distanceEcho)
	defer cancel()
	var begun, ended, lost bool
	var from, length time.Duration
	err := line.Watch(waiting, sent.Add(-distanceSkew), func(e board.Edge) {
		lost = lost || e.Lost
		switch {
		case e.Active && !begun:
			begun, from = true, e.Clock
		case !e.Active && begun && !ended:
			ended, length = true, e.Clock-from
			cancel()
		}
	})
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case waiting.Err() == nil:
		d.echo.drop(line, err)
		return 0, err
	case lost:
		return 0, device.Faultf(device.Offline, "%s: its echo flickers; check its supply and keep its wires short", d.desc.Model)
	case !begun:
		return 0, device.Faultf(device.Offline, "%s does not answer; check its supply of 5 V, and that Trig and Echo are not exchanged", d.desc.Model)
	}
	return length, nil
}

// Close releases the lines, with the trigger low.
func (d *distance) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.trigger.release(), d.echo.close())
}
