package ops

import (
	"context"
	"os"
)

// PrepareApp creates the configuration of an app of Home Assistant if there is none, of first and the sensors that it
// finds, and adds sensors later as Prepare does. It returns the completed steps.
func PrepareApp(ctx context.Context, o PrepareOptions, first string) (did []string, err error) {
	if err := os.MkdirAll(string(o.Folder), 0o700); err != nil {
		return nil, err
	}
	return addSensors(ctx, o, first)
}
