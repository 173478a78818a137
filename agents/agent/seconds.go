package agent

import "time"

// maxSeconds bounds a length that a site sent: some thirty years.
const maxSeconds = 1e9

// Seconds returns a length in seconds, as a site sends it, as a Duration: 0 for one below 0 and for
// NaN, and at most maxSeconds.
func Seconds(n float64) time.Duration {
	if !(n > 0) {
		return 0
	}
	return time.Duration(min(n, maxSeconds) * float64(time.Second))
}
