package rule

import (
	"os"
	"sync"
	"time"
)

// zone is the time zone of the machine as a file has it. Go reads it once for a process.
type zone struct {
	file string

	mu     sync.Mutex
	looked time.Time
	is     os.FileInfo    // of the file that was read
	loc    *time.Location // nil where that failed
}

var machineZone = zone{file: "/etc/localtime"}

// Local is time.Time.Local with the zone that the machine has now: a change of it is seen within a
// second. The environment's TZ stays as it was when the program started.
func Local(t time.Time) time.Time {
	if _, set := os.LookupEnv("TZ"); set {
		return t.Local()
	}
	return machineZone.local(t)
}

func (z *zone) local(t time.Time) time.Time {
	z.mu.Lock()
	defer z.mu.Unlock()
	if passed := time.Since(z.looked); passed < 0 || passed >= time.Second {
		z.looked = time.Now()
		if is, err := os.Stat(z.file); err == nil && (z.is == nil || !os.SameFile(is, z.is) || !is.ModTime().Equal(z.is.ModTime())) {
			z.is, z.loc = is, nil
			if data, err := os.ReadFile(z.file); err == nil {
				z.loc, _ = time.LoadLocationFromTZData("Local", data)
			}
		}
	}
	if z.loc == nil {
		return t.Local()
	}
	return t.In(z.loc)
}
