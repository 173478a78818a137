package scan

import (
	"context"
	"sync"
	"time"

	"agentsite/device/driver"
)

// seekTime is how long devices that are reached by a network or by radio have to answer.
const seekTime = 12 * time.Second

// elsewhere asks the drivers for devices that are not wired to the board, all at once.
func (s *Scan) elsewhere(ctx context.Context) (all []Found, trouble []driver.Finding) {
	ctx, cancel := context.WithTimeout(ctx, seekTime)
	defer cancel()
	found, errs := make([][]driver.Found, len(s.Drivers)), make([]error, len(s.Drivers))
	var seeking sync.WaitGroup
	for i, d := range s.Drivers {
		if d.Seek != nil {
			seeking.Go(func() { found[i], errs[i] = d.Seek(ctx) })
		}
	}
	seeking.Wait()
	for i, d := range s.Drivers {
		if errs[i] != nil {
			trouble = append(trouble, driver.Finding{Severity: driver.Note, Subject: d.Name, Says: errs[i].Error()})
		}
		for _, f := range found[i] {
			is := Found{Where: f.Where, What: f.What, Confidence: Likely, Says: f.Says}
			if f.YAML != "" {
				is.Devices = []Device{{f.Name, f.YAML}}
			}
			all = append(all, is)
		}
	}
	return all, trouble
}
