package scan

import (
	"context"
	"slices"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// seekTime bounds the search for devices that are reached by a network or by radio.
const seekTime = 12 * time.Second

// search is a search for devices that are not wired to the board, by all drivers at once.
type search struct {
	drivers []driver.Driver
	found   [][]driver.Found
	errs    []error
	seeking sync.WaitGroup
	end     context.CancelFunc

	mu      sync.Mutex
	pending []string // the drivers that have not returned
}

// seek begins a search. The caller collects it.
func (s *Scan) seek(ctx context.Context) *search {
	ctx, cancel := context.WithTimeout(ctx, seekTime)
	e := &search{drivers: s.Drivers, found: make([][]driver.Found, len(s.Drivers)), errs: make([]error, len(s.Drivers)), end: cancel}
	for _, d := range s.Drivers {
		if d.Seek != nil {
			e.pending = append(e.pending, d.Name)
		}
	}
	for i, d := range s.Drivers {
		if d.Seek != nil {
			e.seeking.Go(func() {
				e.found[i], _, e.errs[i] = device.Call(ctx, d.Seek)
				e.mu.Lock()
				defer e.mu.Unlock()
				e.pending = slices.DeleteFunc(e.pending, func(name string) bool { return name == d.Name })
			})
		}
	}
	return e
}

// collect waits for the search. Before it waits it calls waiting, if that is not nil, with the drivers that have not
// returned, if there are any.
func (e *search) collect(waiting func(drivers []string)) (all []Found, trouble []driver.Finding) {
	defer e.end()
	e.mu.Lock()
	pending := slices.Clone(e.pending)
	e.mu.Unlock()
	if len(pending) > 0 && waiting != nil {
		waiting(pending)
	}
	e.seeking.Wait()
	for i, d := range e.drivers {
		if e.errs[i] != nil {
			trouble = append(trouble, driver.Finding{Severity: driver.Note, Subject: d.Name, Says: e.errs[i].Error()})
		}
		for _, f := range e.found[i] {
			is := Found{Where: f.Where, What: f.What, Confidence: Likely, Says: f.Says}
			if f.YAML != "" {
				is.Devices = []Device{{f.Name, f.YAML}}
			}
			all = append(all, is)
		}
	}
	return all, trouble
}
