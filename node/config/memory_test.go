package config

import (
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
)

// TestParseMemory: many texts at a time take the memory of one.
func TestParseMemory(t *testing.T) {
	text := []byte("x: [" + strings.Repeat("a,", 32<<10) + "]")
	peak := func(n int) (most uint64) {
		runtime.GC()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			var all sync.WaitGroup
			for range n {
				all.Go(func() {
					if _, err := Parse("", text, nil); err == nil {
						t.Error("it is no configuration")
					}
				})
			}
			all.Wait()
		}()
		heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for {
			metrics.Read(heap)
			most = max(most, heap[0].Value.Uint64())
			select {
			case <-ended:
				return most
			default:
				runtime.GC()
			}
		}
	}
	if most := peak(16); most > 64<<20 { // one takes 14 MiB
		t.Errorf("16 texts at a time take %d MiB", most>>20)
	}
}
