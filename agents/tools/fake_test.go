package tools_test

import (
	"context"
	"errors"
	"sync"

	"agentsite/device"
)

// fake is a device that a test bends.
type fake struct {
	only
	mu    sync.Mutex // holds for fails, which the guard's goroutine meets
	fails error
	image device.Image
	shown string
}

func (f *fake) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = err
}

func (f *fake) Apply(context.Context, string, device.Value) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fails
}

func (f *fake) Show(_ context.Context, point, text string) error {
	f.shown = point + ": " + text
	return f.fails
}

func (f *fake) Capture(context.Context, string) (device.Image, error) { return f.image, f.fails }

var errLoose = errors.New("a wire is loose")
