package host

import (
	"os"
	"testing"
	"time"
)

// TestUnloaded: a file that tells changes for ever, as one of a driver that was unloaded, takes no processor.
func TestUnloaded(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	read.Close() // from now on poll(2) returns POLLERR at once
	wait, end := waiter(t.Context(), []*os.File{write})
	defer end()
	start := time.Now()
	if wait(time.Minute); time.Since(start) < supplyPause {
		t.Error("the next look is at once")
	}
}
