package rule

import "time"

// How a Machine is run, on a site or in a trial over the past.
const (
	// PerSecond bounds the evaluations of a Machine for readings in a second. Later readings are
	// told together when the second is over. Bursts of readings are not delayed: a timer for each
	// rule would be one more wake-up.
	PerSecond = 10
	// MaxRounds bounds how often a Machine is asked in a row whether there is more to do. If there
	// still is, it is asked again after RoundsPause.
	MaxRounds   = 4
	RoundsPause = time.Second
)

// NextLook returns after how long a Machine has to be asked again whose Step returned next; 0 for
// not before something is told. A rule that goes by the time of day looks each full minute whether
// the clock was set; all rules do so in the same moment.
func (m *Machine) NextLook(now time.Time, next time.Duration) time.Duration {
	if !m.UsesClock() {
		return next
	}
	minute := now.Truncate(time.Minute).Add(time.Minute + 10*time.Millisecond)
	if left := minute.Sub(now); next == 0 || left < next {
		return left
	}
	return next
}
