package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestEveryByteCounts(t *testing.T) {
	folder, segment := writeTestSegment(t)
	for _, file := range []string{segment, filepath.Join(folder, anchorFile)} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			for _, flip := range []byte{0x01, 0x80, 0xFF} {
				b[i] ^= flip
				if err := os.WriteFile(file, b, 0o600); err != nil {
					t.Fatal(err)
				}
				b[i] ^= flip
				if _, err := Read(folder, none); !errors.Is(err, ErrDamaged) {
					t.Fatalf("byte %d of %s, changed by %#x: %v", i, filepath.Base(file), flip, err)
				}
				if _, err := Open(folder); !errors.Is(err, ErrDamaged) {
					t.Fatalf("byte %d of %s, changed by %#x: it opens: %v", i, filepath.Base(file), flip, err)
				}
			}
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if report, err := Read(folder, none); err != nil || report.Last != 10 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestCut(t *testing.T) {
	folder, segment := writeTestSegment(t)
	b, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	noted, err := os.ReadFile(filepath.Join(folder, anchorFile))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(b) {
		for _, tail := range [][]byte{nil, make([]byte, 30), make([]byte, len(b)-n), make([]byte, 4096)} {
			cut := append(append([]byte(nil), b[:n]...), tail...)
			if bytes.HasPrefix(cut, b) {
				continue // what was cut were zeros, and nothing is missing
			}
			if err := errors.Join(os.WriteFile(segment, cut, 0o600), os.WriteFile(filepath.Join(folder, anchorFile), noted, 0o600)); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(folder, none); !errors.Is(err, ErrDamaged) {
				t.Fatalf("cut at %d, anchored: %v", n, err)
			}
			os.Remove(filepath.Join(folder, anchorFile))
			before := entries(t, folder)
			j := open(t, folder)
			if err := j.Note("on it goes"); err != nil {
				t.Fatal(err)
			}
			j.crash()
			if after := entries(t, folder); len(after) <= len(before) || after[len(after)-1].Says != "on it goes" {
				t.Fatalf("cut at %d, %d zeros: %d entries, then %d", n, len(tail), len(before), len(after))
			}
		}
	}
}

func TestCutAtASegment(t *testing.T) {
	folder, first := writeTestSegment(t)
	j := open(t, folder)
	if err := j.begin(); err != nil {
		t.Fatal(err)
	}
	j.crash()
	second := j.file.Name()
	header, err := os.ReadFile(second)
	if err != nil || second == first {
		t.Fatal(second, err)
	}
	for n := range header {
		for _, tail := range []int{0, len(header) - n, 4096} {
			if err := os.WriteFile(second, append(bytes.Clone(header[:n]), make([]byte, tail)...), 0o600); err != nil {
				t.Fatal(err)
			}
			j := open(t, folder)
			if _, _, err := j.Begin(call(fmt.Sprint(n, tail))); err != nil {
				t.Fatalf("cut at %d, %d zeros: %v", n, tail, err)
			}
			j.crash()
			if report, err := Read(folder, none); err != nil || report.Segments != 2 {
				t.Fatalf("cut at %d, %d zeros: %+v, %v", n, tail, report, err)
			}
		}
	}
	if err := os.WriteFile(second, []byte(magic+"something else, and no zeros"+strings.Repeat("x", headerSize)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder); !errors.Is(err, ErrDamaged) {
		t.Errorf("another header: %v", err)
	}
}

func TestOpensLater(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "journal")
	elsewhere := filepath.Join(t.TempDir(), "disk")
	if err := os.Symlink(elsewhere, folder); err != nil {
		if runtime.GOOS != "windows" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED: this user may not make a symbolic link: %v", err)
	}
	j := open(t, folder)
	if _, _, err := j.Begin(call("a")); err == nil {
		t.Error("a call begins without its intent")
	}
	finish(t, j) // with nothing to write, nothing is missing
	j = open(t, folder)
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, replay, err := j.Begin(call("a")); err != nil || replay != nil {
		t.Errorf("it does not go on: %v", err)
	}
	finish(t, j)
	if all := entries(t, folder); len(all) != 1 || all[0].Kind != Intent {
		t.Errorf("%+v", all)
	}
}

func TestDiskFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		j := open(t, folder)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- j.Run(ctx) }()
		well := j.file
		unwritable, err := os.Open(well.Name())
		if err != nil {
			t.Fatal(err)
		}
		j.file = unwritable
		if _, _, err := j.Begin(call("a")); err == nil {
			t.Error("a call begins without its intent")
		}
		j.mu.Lock() // as while a write takes long; nothing holds these up
		for range maxWaiting + 5 {
			j.Add(call(""), Outcome{})
		}
		j.Deny("token", "switch_output", "denied")
		j.mu.Unlock()
		time.Sleep(flushEvery * 3 / 2) // and not at the moment at which Run tries again
		if len(entries(t, folder)) != 0 {
			t.Error("something was written")
		}
		j.mu.Lock()
		j.file = well
		j.mu.Unlock()
		unwritable.Close()
		if ticket, replay, err := j.Begin(call("a")); err != nil || replay != nil || ticket.seq != 1 {
			t.Errorf("it does not go on: %v", err)
		}
		time.Sleep(flushEvery)
		synctest.Wait()
		kinds := map[Kind]int{}
		var lost string
		for _, e := range entries(t, folder) {
			kinds[e.Kind]++
			lost += e.Says
		}
		if kinds[Intent] != 1 || kinds[Done] != maxWaiting || kinds[Denied] != 1 || kinds[Event] != 1 || !strings.HasPrefix(lost, "5 calls") {
			t.Errorf("%v, %q", kinds, lost)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
