package host

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// supplyTree has the files of a Raspberry Pi whose contents a test changes.
type supplyTree struct {
	*testing.T
	root string
}

func (t supplyTree) write(path, text string) {
	t.Helper()
	file := filepath.Join(t.root, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const (
	wordFile  = "sys/devices/platform/soc/soc:firmware/get_throttled"
	alarmFile = "sys/class/hwmon/hwmon0/in0_lcrit_alarm"
)

// TestSupply: under-voltage is told once, however often it comes and goes, and its end once it has not come for long.
func TestSupply(t *testing.T) {
	tree := supplyTree{t, t.TempDir()}
	tree.write(wordFile, "0\n")
	tree.write("sys/class/hwmon/hwmon0/name", "rpi_volt\n")
	tree.write(alarmFile, "0\n")
	files := openSupply(tree.root)
	if len(files) != 2 {
		t.Fatal(len(files))
	}
	var s supply
	now := time.Now()
	var told []bool
	look := func(after time.Duration) {
		if now = now.Add(after); s.look(files, now) {
			told = append(told, s.weak)
		}
	}
	expect := func(what string, want ...bool) {
		t.Helper()
		if !slices.Equal(told, want) {
			t.Errorf("%s: %v instead of %v", what, told, want)
		}
		told = nil
	}
	look(0)
	expect("enough")
	for range 100 { // it flickers, as with a motor
		tree.write(alarmFile, "1\n")
		look(2 * time.Second)
		tree.write(alarmFile, "0\n")
		look(time.Minute)
	}
	expect("too weak", true)
	look(supplyQuiet)
	expect("enough again", false)
	tree.write(wordFile, "50000\n") // since the start, for the kernel without rpi_volt
	look(time.Minute)
	expect("once since the start", true)
	look(supplyQuiet)
	look(supplyQuiet)
	expect("not again", false)
	tree.write(wordFile, "nonsense")
	tree.write(alarmFile, "")
	look(time.Hour)
	expect("nothing is known")
	tree.write(wordFile, "50005\n")
	look(time.Hour)
	expect("at this moment", true)
}

// TestWatchSupply: it ends with its context, and at once on a machine that cannot tell.
func TestWatchSupply(t *testing.T) {
	WatchSupply(t.Context(), t.TempDir(), nil)
	tree := supplyTree{t, t.TempDir()}
	tree.write(wordFile, "50005\n")
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan bool, 1)
	ended := make(chan struct{})
	go func() { defer close(ended); WatchSupply(ctx, tree.root, func(weak bool) { told <- weak }) }()
	if !<-told {
		t.Error("it is not too weak")
	}
	cancel()
	<-ended
}
