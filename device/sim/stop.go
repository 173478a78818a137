package sim

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"agentsite/device"
)

const (
	stopButtonModel = "stop-button"
	stopLook        = 10 * time.Millisecond
)

// Stops returns the point of the model stop-button that causes an emergency stop.
func (c *Config) Stops() string {
	if c.Model == stopButtonModel {
		return "pressed"
	}
	return ""
}

func describeStopButton() device.Description {
	return device.Description{Model: "simulated emergency stop", Points: []device.Point{
		{Name: "pressed", Kind: device.KindState, Description: "true while pressed"},
	}}
}

func openStopButton(c *Config) (device.Device, error) { return stopButton{c.PressedFile}, nil }

// stopButton is pressed while its file exists. Without a file name it is never pressed.
type stopButton struct{ file string }

func (stopButton) Describe() device.Description { return describeStopButton() }
func (stopButton) Close() error                 { return nil }

func (b stopButton) pressed() bool {
	if b.file == "" {
		return false
	}
	_, err := os.Lstat(b.file)
	return !errors.Is(err, fs.ErrNotExist)
}

// Sample reports whether the file exists.
func (b stopButton) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return []device.Reading{b.reading(b.pressed())}, nil
}

// Watch checks for the file a hundred times a second. While the button is pressed it emits
// a reading each time, because polling can miss a short release.
func (b stopButton) Watch(ctx context.Context, emit func(device.Reading)) error {
	if b.file == "" {
		<-ctx.Done()
		return ctx.Err()
	}
	for before := b.pressed(); ; {
		if err := device.Sleep(ctx, stopLook); err != nil {
			return err
		}
		if now := b.pressed(); now || before {
			before = now
			emit(b.reading(now))
		}
	}
}

func (stopButton) reading(pressed bool) device.Reading {
	return device.Reading{Point: "pressed", Value: device.Bool(pressed), Quality: device.Good, At: time.Now()}
}
