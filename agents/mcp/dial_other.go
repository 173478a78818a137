//go:build !linux

package mcp

import (
	"context"
	"errors"
	"io"
)

func dialChild(context.Context, *Agent) (io.ReadWriteCloser, error) {
	return nil, errors.New("children run on Linux only")
}

// Supervise fails: children run on Linux only.
func Supervise(string, []string) error { return errors.New("children run on Linux only") }
