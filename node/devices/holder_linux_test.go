package devices

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestPlantedPID: a process is signalled only if it has the lock file open, whatever the file says.
func TestPlantedPID(t *testing.T) {
	for name, holds := range map[string]bool{"stranger": false, "guard": true} {
		path := filepath.Join(t.TempDir(), "guard.lock")
		lock, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		cmd := exec.Command("cat") // until its input ends
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if holds {
			cmd.ExtraFiles = []*os.File{lock}
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(lock, "%-10d\n", cmd.Process.Pid)
		ctx, cancel := context.WithCancel(t.Context())
		tries := 0
		f := GuardFiles{OpenLock: func() (*os.File, error) { return os.OpenFile(path, os.O_RDWR, 0) }, TryLock: func(*os.File) error {
			if tries++; tries == 3 { // behind the first signal
				cancel()
			}
			return errors.New("held")
		}}
		if _, err := f.lock(ctx, true); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if holds {
			late := time.AfterFunc(10*time.Second, func() { in.Close() })
			if err := cmd.Wait(); err == nil {
				t.Error("the guard got no signal")
			}
			late.Stop()
			continue
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the %s ended with %v", name, err)
		}
	}
}
