//go:build !linux

package discovery

import "time"

// Suspended returns how long the machine has been suspended since it booted, or 0 if the system
// does not tell. During suspension, timers and time.Since stand still.
func Suspended() time.Duration { return 0 }
