package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

var errDisk = errors.New("input/output error")

// wrapDisk is a disk of which a test can make operations fail or wait.
type wrapDisk struct {
	disk
	open   func(name string, flag int) error
	remove func(name string) error
	sync   func()
	write  func() error
}

func (w *wrapDisk) Open(name string, flag int) (file, error) {
	if w.open != nil {
		if err := w.open(name, flag); err != nil {
			return nil, err
		}
	}
	f, err := w.disk.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return &wrapFile{f, w}, nil
}

func (w *wrapDisk) Remove(name string) error {
	if w.remove != nil {
		if err := w.remove(name); err != nil {
			return err
		}
	}
	return w.disk.Remove(name)
}

type wrapFile struct {
	file
	w *wrapDisk
}

func (f *wrapFile) Sync() error {
	if f.w.sync != nil {
		f.w.sync()
	}
	return f.file.Sync()
}

func (f *wrapFile) WriteAt(b []byte, at int64) (int, error) {
	if f.w.write != nil {
		if err := f.w.write(); err != nil {
			return 0, err
		}
	}
	return f.file.WriteAt(b, at)
}

// opened returns a history of these points on a disk.
func opened(t testing.TB, d disk, points map[string]device.Point) *History {
	t.Helper()
	h := New(points)
	if err := h.open(d, Options{}); err != nil {
		t.Fatal(err)
	}
	return h
}

// tempDisk is a folder of the test.
func tempDisk(t testing.TB) disk { return folder(filepath.Join(t.TempDir(), "h")) }

// ago is a summary of one reading.
func ago(ago time.Duration, v float64) device.Summary {
	return device.Summary{At: time.Now().Add(-ago), Min: v, Mean: v, Max: v, Last: v, Good: 1}
}

// TestImportBesideNewer: an imported file of a newer version stops no import.
func TestImportBesideNewer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	h := New(oneMeasurement)
	if err := h.Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	if n, err := h.Import("a/t", []device.Summary{ago(50*time.Hour, 1)}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	name := filepath.Join(path, "imported-0000000000000001")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[4]++
	putChecksum(b)
	os.WriteFile(name, b, 0o600)
	for restart := range 2 {
		h = New(oneMeasurement)
		if err := h.Open(path, Options{}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			n, err := h.Import("a/t", []device.Summary{ago(30*time.Hour, 2)})
			if err != nil {
				t.Errorf("restart %d: %d, %v", restart, n, err)
			}
		}
	}
}

// failing returns a history whose disk neither writes nor removes a file until it is mended.
func failing(t *testing.T) (h *History, mend func()) {
	t.Helper()
	w := &wrapDisk{disk: tempDisk(t)}
	h = opened(t, w, oneMeasurement)
	w.write = func() error { return errDisk }
	w.remove = func(string) error { return errDisk }
	return h, func() { w.write, w.remove = nil, nil }
}

// TestFileThatStays: a file that could neither be written nor removed stops nothing once the disk
// works again.
func TestFileThatStays(t *testing.T) {
	h, mend := failing(t)
	h.Record(number(1, time.Now()))
	if h.flush(false) == nil {
		t.Fatal("the disk does not fail")
	}
	mend()
	for i := range 3 {
		h.Record(number(2, time.Now()))
		if err := h.flush(i == 2); err != nil {
			t.Error(i, err)
		}
	}
}

// TestImportedFileThatStays: it stops no import either.
func TestImportedFileThatStays(t *testing.T) {
	h, mend := failing(t)
	if n, err := h.Import("a/t", []device.Summary{ago(20*time.Hour, 1)}); n != 0 || err == nil {
		t.Fatal(n, err)
	}
	mend()
	if n, err := h.Import("a/t", []device.Summary{ago(20*time.Hour, 1)}); n != 1 || err != nil {
		t.Error(n, err)
	}
}

// TestUnreadableMinutes: a file that cannot be read does not stop its tier.
func TestUnreadableMinutes(t *testing.T) {
	w := &wrapDisk{disk: tempDisk(t)}
	run := func() (err error) {
		h := opened(t, w, oneMeasurement)
		for range 3 {
			h.Record(number(1, time.Now()))
			err = errors.Join(err, h.flush(false))
		}
		return errors.Join(err, h.flush(true))
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	w.open = func(name string, flag int) error {
		if flag == os.O_RDONLY && strings.HasPrefix(name, "minutes") {
			return errDisk
		}
		return nil
	}
	for range 2 {
		if err := run(); err != nil {
			t.Error(err)
		}
	}
}

// TestUnreadableEpoch: files that could not be read at one start have their right times later.
func TestUnreadableEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDisk()
		w := &wrapDisk{disk: d}
		var at []int64
		v := 0.0
		run := func() {
			h := opened(t, w, oneMeasurement)
			for range 5 {
				v++
				h.Record(number(v, time.Now()))
				at = append(at, time.Now().UnixMilli())
				time.Sleep(time.Minute)
			}
			if err := h.flush(true); err != nil {
				t.Fatal(err)
			}
		}
		run()
		time.Sleep(10 * 24 * time.Hour)
		w.open = func(name string, flag int) error {
			if flag == os.O_RDONLY && strings.HasSuffix(name, "-0000000000000001") { // all that there is
				return fs.ErrPermission
			}
			return nil
		}
		run()
		w.open = nil
		h := opened(t, w, oneMeasurement)
		i := 0
		h.Samples("a/t", longAgo, farOff, func(wall time.Time, v float64, _ bool) bool {
			if want := at[int(v)-1]; wall.UnixMilli() != want {
				t.Errorf("reading %v is at %v, want %v", v, wall, time.UnixMilli(want))
			}
			i++
			return true
		})
		if i != len(at) {
			t.Errorf("%d readings of %d", i, len(at))
		}
	})
}

// TestMinutesLost: lost minutes are made again from the raw readings, however many there are.
func TestMinutesLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDisk()
		points := map[string]device.Point{}
		for i := range 30 {
			points[fmt.Sprintf("a/t%d", i)] = device.Point{Kind: device.KindMeasurement}
		}
		h := opened(t, d, points)
		n, h0 := 0, time.Now()
		for m := range 3 * 24 * 60 {
			for p := range points {
				h.Record(device.Reading{Point: p, Value: device.Number(float64(m*7919%1000) / 10), Quality: device.Good, At: time.Now()})
			}
			n++
			time.Sleep(time.Minute)
			if err := h.flush(false); err != nil {
				t.Fatal(err)
			}
		}
		h.flush(true)
		byMinute := func() int {
			all, err := h.Query(Query{Address: "a/t1", From: h0, To: h0.Add(24 * time.Hour), Step: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		before := byMinute()
		for name := range d.files {
			if strings.HasPrefix(name, "minutes") {
				delete(d.files, name)
			}
		}
		h = opened(t, d, points)
		if got := byMinute(); got != before || total(h, "a/t1", raw) != n {
			t.Errorf("%d minutes of the first day, %d before; %d readings in raw of %d", got, before, total(h, "a/t1", raw), n)
		}
	})
}

// TestRawLost: lost raw readings are found in minutes and hours, also after new ones.
func TestRawLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDisk()
		h := opened(t, d, oneMeasurement)
		for range 100 {
			h.Record(number(1, time.Now()))
			time.Sleep(time.Minute)
		}
		h.flush(true)
		for name := range d.files {
			if strings.HasPrefix(name, "raw") {
				delete(d.files, name)
			}
		}
		h = opened(t, d, oneMeasurement)
		h.Record(number(1, time.Now()))
		h.flush(true)
		for tier := range imported {
			if got := total(h, "a/t", tier); got != 101 {
				t.Errorf("%s: %d readings, want 101", tierNames[tier], got)
			}
		}
	})
}

// TestImportedAndClockAhead: a clock that is not believed makes nothing too old.
func TestImportedAndClockAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDisk()
		h := opened(t, d, oneMeasurement)
		for years := 8; years > 0; years -= 2 {
			if n, err := h.Import("a/t", []device.Summary{ago(time.Duration(years)*365*day, 1)}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		h.Record(number(1, time.Now()))
		if err := h.flush(true); err != nil {
			t.Fatal(err)
		}
		if got := total(h, "a/t", hours); got != 5 {
			t.Fatal(got)
		}
		ahead := 9 * 365 * day
		time.Sleep(ahead) // the system's clock of the next start is wrong by that
		known := false
		h = New(oneMeasurement)
		if err := h.open(d, Options{Now: func() (time.Time, bool) { return time.Now().Add(-ahead), known }}); err != nil {
			t.Fatal(err)
		}
		h.Record(number(1, time.Now()))
		if err := h.flush(false); err != nil {
			t.Fatal(err)
		}
		known = true
		h.Record(number(1, time.Now()))
		if err := h.flush(false); err != nil {
			t.Fatal(err)
		}
		if got := total(h, "a/t", hours); got != 7 {
			t.Errorf("%d readings are left of 7", got)
		}
	})
}

// TestDamagedWhileOpen: a block that is damaged after its file was loaded is left out, by each query.
func TestDamagedWhileOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDisk()
		h := opened(t, d, oneMeasurement)
		for range 2 {
			h.Record(number(1, time.Now()))
			time.Sleep(time.Minute)
			if err := h.flush(false); err != nil {
				t.Fatal(err)
			}
		}
		k := h.tiers[raw].segments[0].refs[0]
		d.files["raw-0000000000000001"].data[k.at+headSize] ^= 0xff
		for range 2 {
			if got := values(h, "a/t"); len(got) != 1 {
				t.Errorf("%v", got)
			}
		}
	})
}

// TestImportedDamaged: each byte of a file of imports in turn is another: at most one import is lost.
func TestImportedDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Each byte of an imported file flipped: Open, Query and a further Import go on.
		d := newMemDisk()
		h := opened(t, d, oneMeasurement)
		for i := range 3 {
			if n, err := h.Import("a/t", []device.Summary{ago(time.Duration(90-i*10)*time.Hour, 1)}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		for name, f := range d.files {
			for at := range f.data[:min(400, len(f.data))] { // the file of the run is empty
				d2 := newMemDisk()
				b := append([]byte(nil), f.data...)
				b[at] ^= 0xff
				d2.files[name] = &memFile{data: b, synced: b}
				h := opened(t, d2, oneMeasurement)
				had := total(h, "a/t", hours)
				if had < 2 {
					t.Errorf("byte %d: %d left", at, had)
				}
				if n, err := h.Import("a/t", []device.Summary{ago(20*time.Hour, 1)}); n != 1 || err != nil {
					t.Error(at, n, err)
				}
				if got := total(h, "a/t", hours); got != had+1 {
					t.Errorf("byte %d: %d, want %d", at, got, had+1)
				}
				h = New(oneMeasurement)
				h.open(d2, Options{})
				if got := total(h, "a/t", hours); got != had+1 {
					t.Errorf("byte %d: after a restart %d, want %d", at, got, had+1)
				}
			}
		}
	})
}
