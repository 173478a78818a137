//go:build !linux

package mdns

import (
	"context"
	"time"
)

// networkEvents returns a channel that receives after the interfaces or their addresses may
// have changed. It is closed when ctx ends or the events fail.
func networkEvents(ctx context.Context) (<-chan struct{}, error) {
	events := make(chan struct{})
	go func() {
		defer close(events)
		every := time.NewTicker(5 * time.Second)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			select {
			case <-ctx.Done():
				return
			case events <- struct{}{}:
			}
		}
	}()
	return events, nil
}

// addressState returns the state of IPv6 duplicate address detection, before whose end an
// address cannot be used.
func addressState() string { return "" }
