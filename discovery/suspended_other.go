//go:build !linux

package discovery

import "time"

// Suspended returns for how long the machine has been suspended since it booted, in which
// timers and time.Since stand still; 0 where the system does not tell.
func Suspended() time.Duration { return 0 }
