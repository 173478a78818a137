package history

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

var (
	longAgo = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	farOff  = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// values returns the raw readings that a history has of a point.
func values(h *History, address string) (all []float64) {
	h.Samples(address, longAgo, farOff, func(_ time.Time, v float64, _ bool) bool {
		all = append(all, v)
		return true
	})
	return all
}

// total returns the sum of the readings in the steps of a tier.
func total(h *History, address string, finest int) (n int) {
	for _, s := range h.steps(address, []int64{longAgo.UnixMilli(), farOff.UnixMilli()}, finest) {
		n += s.Count
	}
	return n
}

// TestPowerCut ends the power at each operation in turn. Earlier writes are there, and nothing else
// is wrong.
func TestPowerCut(t *testing.T) {
	for seed := range workload(100, 5000) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 7))
			d, n := newMemDisk(), 0.0
			var all []float64 // recorded, and not known to be lost
			sure := 0         // of them
			for range 3 + rng.IntN(4) {
				h := New(map[string]device.Point{"a/t": {Kind: device.KindMeasurement}})
				if err := h.open(d, Options{}); err != nil {
					t.Fatal(err)
				}
				got := values(h, "a/t")
				if len(got) < sure || !slices.Equal(got[:sure], all[:sure]) {
					t.Fatalf("seed %d: %d readings, want %d", seed, len(got), sure)
				}
				rest := all[sure:]
				for _, v := range got[sure:] {
					i := slices.Index(rest, v)
					if i < 0 {
						t.Fatalf("seed %d: the reading %v was not recorded after the ones before", seed, v)
					}
					rest = rest[i+1:]
				}
				for tier := range imported {
					if c := total(h, "a/t", tier); c < sure || c > len(all) {
						t.Fatalf("seed %d: %d readings in %s, want %d to %d", seed, c, tierNames[tier], sure, len(all))
					}
				}
				all, sure = got, len(got)
				d.left = 1 + rng.IntN(300)
				for !d.dead {
					for range 1 + rng.IntN(20) {
						h.Record(device.Reading{Point: "a/t", Value: device.Number(n), Quality: device.Good, At: time.Now()})
						all = append(all, n)
						n++
						time.Sleep(time.Second)
					}
					if h.flush(rng.IntN(30) == 0) == nil {
						sure = len(all)
					}
				}
				d = d.crash(rng)
			}
		})
	}
}

// TestFlippedByte changes each byte of a history in turn. Only its block is lost.
func TestFlippedByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDisk()
		h := New(map[string]device.Point{"a/t": {Kind: device.KindMeasurement}, "b/s": {Kind: device.KindState}})
		if err := h.open(d, Options{}); err != nil {
			t.Fatal(err)
		}
		const blocks, each = 5, 4
		for i := range blocks * each {
			h.Record(device.Reading{Point: "a/t", Value: device.Number(float64(i)), Quality: device.Good, At: time.Now()})
			h.Record(device.Reading{Point: "b/s", Value: device.Bool(i%2 == 0), Quality: device.Good, At: time.Now()})
			time.Sleep(time.Second)
			if i%each == each-1 {
				if err := h.flush(i == blocks*each-1); err != nil {
					t.Fatal(err)
				}
			}
		}
		for name, f := range d.files {
			written := len(bytes.TrimRight(f.data, "\x00"))
			for at := range min(written+9, len(f.data)) {
				for _, flip := range []byte{1, 0x80, 0xff} {
					damaged := newMemDisk()
					for name, f := range d.files {
						damaged.files[name] = &memFile{data: slices.Clone(f.data)}
					}
					b := slices.Clone(f.data)
					b[at] ^= flip
					damaged.files[name] = &memFile{data: b, synced: b}
					h := New(map[string]device.Point{"a/t": {Kind: device.KindMeasurement}, "b/s": {Kind: device.KindState}})
					if err := h.open(damaged, Options{}); err != nil {
						t.Fatal(err)
					}
					got := values(h, "a/t")
					want := blocks * each
					if name[:3] == "raw" && at < written {
						want -= each
					}
					if len(got) != want || !slices.IsSorted(got) {
						t.Fatalf("byte %d of %s, changed by %#x: %v", at, name, flip, got)
					}
					for i, v := range got {
						if block := i / each; i%each > 0 && v != got[i-1]+1 || v != float64(int(v)) || block > blocks {
							t.Fatalf("byte %d of %s, changed by %#x: %v", at, name, flip, got)
						}
					}
					h.Record(device.Reading{Point: "a/t", Value: device.Number(1000), Quality: device.Good, At: time.Now()})
					if err := h.flush(true); err != nil || len(values(h, "a/t")) != want+1 {
						t.Fatalf("byte %d of %s, changed by %#x: it does not go on: %v", at, name, flip, err)
					}
				}
			}
		}
	})
}

// TestNewerVersion leaves blocks of a version that it does not know where they are.
func TestNewerVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.reading()
		w.restart(true)
		before := map[string][]byte{}
		for name, f := range w.disk.files {
			if strings.HasPrefix(name, runFile) {
				continue
			}
			b := slices.Clone(f.data)
			b[4]++
			putChecksum(b)
			w.disk.files[name], before[name] = &memFile{data: b, synced: b}, b
		}
		w.ref = newReference()
		w.open()
		w.reading()
		w.restart(true)
		w.check()
		for name, b := range before {
			if f := w.disk.files[name]; f == nil || !slices.Equal(f.data, b) {
				t.Errorf("%s was changed", name)
			}
		}
	})
}

// TestDiskFails: on a full and on a read-only disk the history goes on in memory, within
// bounds, and is written when that is possible again.
func TestDiskFails(t *testing.T) {
	for name, fail := range map[string]func(d *memDisk, on bool){
		"read-only": func(d *memDisk, on bool) {
			if d.fail = nil; on {
				d.fail = errors.New("read-only file system")
			}
		},
		"full": func(d *memDisk, on bool) {
			if d.room = 0; on {
				d.room = 1000
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 5)
				for range 20 {
					w.reading()
					time.Sleep(time.Second)
				}
				if err := w.h.flush(false); err != nil {
					t.Fatal(err)
				}
				fail(w.disk, true)
				for range 50 {
					w.reading()
					time.Sleep(time.Minute)
					if w.h.flush(false) == nil && name == "read-only" {
						t.Fatal("it was written")
					}
				}
				w.check()
				fail(w.disk, false)
				if err := w.h.flush(false); err != nil {
					t.Fatal(err)
				}
				w.check()
				w.restart(false)
				w.check()
				fail(w.disk, true)
				for range 1000 {
					for range 30 {
						w.reading()
					}
					time.Sleep(time.Minute)
					w.h.flush(false)
				}
				for i := range w.h.tiers {
					if tier := &w.h.tiers[i]; tier.waiting > maxUnwritten {
						t.Errorf("%d bytes wait", tier.waiting)
					}
				}
				fail(w.disk, false)
				if err := w.h.flush(false); err != nil {
					t.Fatal(err)
				}
				if got, all := len(values(w.h, "a/t")), len(w.ref.points["a/t"]); got < 1000 || got > all {
					t.Errorf("%d of %d readings are left", got, all)
				}
			})
		})
	}
}

const childFolder = "AGENTSITE_HISTORY_CHILD"

// recordForever is the program that TestKill ends: it records numbers, and prints how many are
// written.
func recordForever(path string) error {
	h := New(oneMeasurement)
	if err := h.Open(path, Options{}); err != nil {
		return err
	}
	n := 0
	if all := values(h, "a/t"); len(all) > 0 {
		n = int(all[len(all)-1]) + 1
	}
	for {
		for range 1 + rand.IntN(50) {
			h.Record(device.Reading{Point: "a/t", Value: device.Number(float64(n)), Quality: device.Good, At: time.Now()})
			n++
		}
		if err := h.flush(rand.IntN(20) == 0); err != nil {
			return err
		}
		fmt.Println("written", n)
	}
}

// TestKill kills a process that writes, again and again. All writes that it reported are there.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	sure := 0
	for range workload(15, 500) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), childFolder+"="+path)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for left := rand.IntN(20); left >= 0 && lines.Scan(); left-- {
			if n, err := strconv.Atoi(lines.Text()[len("written "):]); err == nil {
				sure = n
			}
		}
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		cmd.Process.Kill()
		for lines.Scan() {
			if n, err := strconv.Atoi(lines.Text()[len("written "):]); err == nil {
				sure = n
			}
		}
		io.Copy(io.Discard, out)
		cmd.Wait()
		cancel()
		h := New(map[string]device.Point{"a/t": {Kind: device.KindMeasurement}})
		if err := h.Open(path, Options{}); err != nil {
			t.Fatal(err)
		}
		got := values(h, "a/t")
		if len(got) < sure {
			t.Fatalf("%d readings are left of %d", len(got), sure)
		}
		for i, v := range got {
			if v != float64(i) {
				t.Fatalf("reading %d is %v", i, v)
			}
		}
		for tier := range imported {
			if n := total(h, "a/t", tier); n != len(got) {
				t.Fatalf("%d readings in %s, want %d", n, tierNames[tier], len(got))
			}
		}
	}
	if sure == 0 {
		t.Error("nothing was ever written")
	}
}
