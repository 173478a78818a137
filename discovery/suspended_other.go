//go:build !linux

package discovery

import "time"

// Slept is for how long the machine has been suspended since it was started, as far as
// that is known: not on this system.
func Suspended() time.Duration { return 0 }
