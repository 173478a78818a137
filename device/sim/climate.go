package sim

import (
	"context"
	"sync"
	"time"

	"agentsite/device"
)

func describeClimate() device.Description {
	return device.Description{Model: "simulated climate sensor", Points: []device.Point{
		{Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel", Description: "of the air outside"},
		{Name: "humidity", Kind: device.KindMeasurement, Unit: "%", Description: "relative humidity of the air outside", Range: device.Range{Max: 100}},
		{Name: "pressure", Kind: device.KindMeasurement, Unit: "Pa", Description: "of the air, not reduced to sea level"},
	}}
}

// climate is a weather sensor similar to a BME280. It has no outputs.
type climate struct {
	clock clock

	mu    sync.Mutex
	noise noise
}

func openClimate(c *Config) (device.Device, error) {
	return &climate{clock: startClock(c.Speed), noise: newNoise(c.Seed)}, nil
}

func (c *climate) Describe() device.Description { return describeClimate() }

// Sample reads with a resolution of 0.01 °C, 0.1 % and 1 Pa.
func (c *climate) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	w := weatherAt(opening + c.clock.now())
	return []device.Reading{
		measured("temperature", c.noise.read(w.temperature, 0.02, 100), now),
		measured("humidity", c.noise.within(0, 100, humidity(w.temperature, w.vapour), 0.1, 10), now),
		measured("pressure", c.noise.read(w.pressure, 1.5, 1), now),
	}, nil
}

func (c *climate) Close() error { return nil }
