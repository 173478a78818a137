package sim

import (
	"context"
	"math"
	"sync"
	"time"

	"agentsite/device"
)

func describeGreenhouse() device.Description {
	percent := device.Range{Max: 100}
	return device.Description{Model: "simulated greenhouse", Points: []device.Point{
		{Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel", Description: "of the air"},
		{Name: "humidity", Kind: device.KindMeasurement, Unit: "%", Description: "relative humidity of the air", Range: percent},
		{Name: "soil_moisture", Kind: device.KindMeasurement, Unit: "%", Description: "water in the soil, of what it can hold", Range: percent},
		{Name: "light", Kind: device.KindMeasurement, Unit: "lx", Description: "of the sun and the lamp"},
		{Name: "heater", Kind: device.KindSwitch, Description: "warms and dries the air", Safe: device.Bool(false)},
		{Name: "vent", Kind: device.KindLevel, Unit: "%", Description: "lets the outside air in; 0 is closed", Range: percent, Safe: device.Number(0)},
		{Name: "pump", Kind: device.KindSwitch, Description: "waters the soil", Safe: device.Bool(false)},
		{Name: "lamp", Kind: device.KindSwitch, Description: "lights the plants", Safe: device.Bool(false)},
		{Name: "button", Kind: device.KindEvent, Description: "pressed every few minutes"},
		{Name: "message", Kind: device.KindText, Description: "a display of 64 characters"},
		{Name: "camera", Kind: device.KindImage, Description: "a small picture of the greenhouse"},
	}}
}

// Greenhouse is a simulated greenhouse. The air reacts to the heater and the vent within a minute.
// The soil reacts to the pump within two minutes and to the sun within hours.
type Greenhouse struct {
	clock clock
	seed  uint64 // of the button's presses

	mu      sync.Mutex // guards the fields below
	room    room
	past    float64 // simulated time of room
	noise   noise
	outputs outputs
	message string
}

func openGreenhouse(c *Config) (device.Device, error) {
	o, err := newOutputs(describeGreenhouse().Points, c.OutputsFile)
	if err != nil {
		return nil, err
	}
	return &Greenhouse{clock: startClock(c.Speed), seed: c.Seed, room: newRoom(), noise: newNoise(c.Seed), outputs: o}, nil
}

// Describe is constant.
func (g *Greenhouse) Describe() device.Description { return describeGreenhouse() }

// catchUp computes the room up to now. It is called with mu held, before each read or move.
func (g *Greenhouse) catchUp() {
	now := g.clock.now()
	g.room.advance(now - g.past)
	g.past = now
}

// wire copies the outputs' values to the room. It is called with mu held.
func (g *Greenhouse) wire() {
	g.room.heater = g.outputs.get("heater").Bool()
	g.room.pump = g.outputs.get("pump").Bool()
	g.room.lamp = g.outputs.get("lamp").Bool()
	g.room.vent = g.outputs.get("vent").Number() / 100
}

// Sample reads the sensors, with a resolution of 0.01 °C, 0.1 % and 1 lx, and reads the
// outputs back.
func (g *Greenhouse) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catchUp()
	now := time.Now()
	light := g.room.light()
	return append([]device.Reading{
		measured("temperature", g.noise.read(g.room.temperature, 0.02, 100), now),
		measured("humidity", g.noise.within(0, 100, g.room.humidity(), 0.1, 10), now),
		measured("soil_moisture", g.noise.within(0, 100, g.room.soil, 0.1, 10), now),
		measured("light", g.noise.within(0, math.MaxUint16, light, light/500, 1), now),
	}, g.outputs.readings(now)...), nil
}

func measured(point string, n float64, at time.Time) device.Reading {
	return device.Reading{Point: point, Value: device.Number(n), Quality: device.Good, At: at}
}

// Apply switches the heater, the pump or the lamp, or moves the vent. With an
// outputs file it returns once the file has the value.
func (g *Greenhouse) Apply(ctx context.Context, point string, v device.Value) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catchUp()
	defer g.wire()
	return g.outputs.apply(point, v)
}

// Close brings all outputs to safe. Later calls of Apply are refused.
func (g *Greenhouse) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catchUp()
	defer g.wire()
	return g.outputs.close()
}
