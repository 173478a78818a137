package sim

import (
	"context"
	"sync"
	"time"

	"agentsite/device"
)

func describeRelay() device.Description {
	return device.Description{Model: "simulated relay", Points: []device.Point{
		{Name: "relay", Kind: device.KindSwitch, Description: "switches nothing", Safe: device.Bool(false)},
	}}
}

func describeDimmer() device.Description {
	return device.Description{Model: "simulated dimmer", Points: []device.Point{
		{Name: "level", Kind: device.KindLevel, Unit: "%", Description: "dims nothing", Range: device.Range{Max: 100}, Safe: device.Number(0)},
	}}
}

// relay is a relay or a dimmer: outputs with nothing behind them.
type relay struct {
	desc device.Description

	mu      sync.Mutex
	outputs outputs
}

func openRelay(c *Config) (device.Device, error)  { return newRelay(c, describeRelay()) }
func openDimmer(c *Config) (device.Device, error) { return newRelay(c, describeDimmer()) }

func newRelay(c *Config, desc device.Description) (device.Device, error) {
	o, err := newOutputs(desc.Points, c.OutputsFile)
	if err != nil {
		return nil, err
	}
	return &relay{desc: desc, outputs: o}, nil
}

func (r *relay) Describe() device.Description { return r.desc }

// Sample reads the outputs back.
func (r *relay) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outputs.readings(time.Now()), nil
}

// Apply sets the output. With an outputs file it returns once the file has the
// value.
func (r *relay) Apply(ctx context.Context, point string, v device.Value) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outputs.apply(point, v)
}

// Close brings the output to safe. Later calls of Apply are refused.
func (r *relay) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outputs.close()
}
