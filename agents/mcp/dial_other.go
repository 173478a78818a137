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
