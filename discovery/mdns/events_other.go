//go:build !linux

package mdns

import (
	"context"
	"time"
)

// changes has a value now and then, until ctx ends, and is closed then: here nobody
// says when the interfaces change.
func networkEvents(ctx context.Context) (<-chan struct{}, error) {
	news := make(chan struct{})
	go func() {
		defer close(news)
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
			case news <- struct{}{}:
			}
		}
	}()
	return news, nil
}

func addressState() string { return "" }
