package config

import (
	"runtime"
	"strings"
	"testing"
)

// TestParseOne: a text waits until another is parsed, which may take much memory.
func TestParseOne(t *testing.T) {
	parsing.Lock()
	done := make(chan error, 1)
	go func() {
		_, err := Parse("", []byte("x: ["+strings.Repeat("a,", 1000)+"]"), nil)
		done <- err
	}()
	for stacks := make([]byte, 1<<20); ; {
		all := string(stacks[:runtime.Stack(stacks, true)])
		waits := false
		for _, one := range strings.Split(all, "\n\n") {
			waits = waits || strings.Contains(one, "config.Parse(") && strings.Contains(one, "sync.(*Mutex).")
		}
		if waits {
			break
		}
		select {
		case <-done:
			t.Fatal("it was parsed beside another")
		default:
			runtime.Gosched()
		}
	}
	parsing.Unlock()
	if <-done == nil {
		t.Error("it is no configuration")
	}
}
