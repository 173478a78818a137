//go:build !linux

package alarm

import "context"

// New returns Go: the system has no other timer.
func New(context.Context) AfterFunc { return Go }
