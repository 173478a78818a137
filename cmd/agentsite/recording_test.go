package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/site"
	"agentsite/device"
	"agentsite/node/config"
)

// recordingSite is the configuration of the recordings.
func recordingSite(t testing.TB) *config.Site {
	const text = `site: { name: house }
devices:
  climate: { driver: bme280, every: 10m }
  hall: { driver: motion, pin: GPIO25, every: 10m }
  pump: { driver: relay, pin: GPIO17, safe: off }
`
	cfg, err := site.CheckText("a.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestRecording: a value is read again until the next row of its point, one that cannot be read and an event
// are there once, and a beginning in between has what was then.
func TestRecording(t *testing.T) {
	file := filepath.Join(t.TempDir(), "day.csv")
	const text = "time,point,value\n2025-01-10 00:00,climate/temperature,1\n2025-01-10 00:00,hall/moving,off\n" +
		"2025-01-10 00:05,hall/motion,motion\n2025-01-10 00:07,pump/relay,on\n" +
		"2025-01-10 00:25,climate/temperature,\n2025-01-10 00:45,climate/temperature,2\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := readRecording(file, recordingSite(t), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2025, 1, 10, 0, 0, 0, 0, time.UTC)
	if r.Rows != 6 || !r.From.Equal(start) || !r.To.Equal(start.Add(45*time.Minute)) {
		t.Errorf("%d rows from %v to %v", r.Rows, r.From, r.To)
	}
	names := []string{"climate/temperature", "hall/moving", "hall/motion", "pump/relay", "elsewhere/x"}
	read := func(from time.Time) (all []string) {
		r.Readings(names, from, start.Add(time.Hour), func(i int, at time.Time, v device.Value, _ time.Duration) bool {
			name := names[i][strings.Index(names[i], "/")+1:]
			all = append(all, strings.TrimSpace(at.Format("04 ")+name+" "+v.String()))
			return true
		})
		return all
	}
	want := []string{
		"00 temperature 1", "00 moving off", "05 motion motion", "07 relay on", "10 temperature 1", "10 moving off",
		"20 temperature 1", "20 moving off", "25 temperature -", "30 moving off", "40 moving off", "45 temperature 2",
		"50 moving off", "55 temperature 2",
	}
	if got := read(start); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	want = []string{"22 temperature 1", "22 moving off", "22 relay on", "25 temperature -"}
	if got := read(start.Add(22 * time.Minute)); !slices.Equal(got[:4], want) {
		t.Errorf("from 00:22: %q\nwant %q", got[:4], want)
	}
}

// FuzzRecording: a file is a recording or a mistake of one line, and its readings are in the order of time.
func FuzzRecording(f *testing.F) {
	const export = "time,point,min,mean,max,last,held_by\n2025-01-10T00:00:00Z,climate/temperature,1,2,3,2.5,\n"
	for _, text := range []string{
		"time,point,value\n2025-01-10 00:00,climate/temperature,1\n2025-01-10T00:00:00Z,hall/moving,off\n",
		export + "2025-01-10T00:01:00Z,hall/moving,,,,on,\n",
		"time;point;value\n1700000000;climate/temperature;1,5\n", "time,point,value\n2025-01-10,a/b,1\n",
	} {
		f.Add(text)
	}
	cfg, dir := recordingSite(f), f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(dir, "x.csv")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := readRecording(file, cfg, time.UTC)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		last, n := r.From, 0
		names := []string{"climate/temperature", "hall/moving", "hall/motion", "pump/relay"}
		r.Readings(names, r.From, r.To, func(_ int, at time.Time, v device.Value, _ time.Duration) bool {
			if n++; at.Before(last) || !v.Finite() {
				t.Fatalf("%v at %v after %v", v, at, last)
			}
			last = at
			return n < 1000
		})
	})
}

// endless reads the same byte for ever.
type endless byte

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e)
	}
	return len(b), nil
}

// TestEndlessRecord: a file whose record does not end is refused after some of it.
func TestEndlessRecord(t *testing.T) {
	for _, e := range []io.Reader{endless('x'), io.MultiReader(strings.NewReader("time,value\n1,\""), endless('\n'))} {
		im := importer{file: "x.csv", as: map[string]string{"": "a/b"}, points: make(map[string]*importedPoint)}
		err := im.eachRow(io.LimitReader(e, 4<<20), func(cells) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "128 kB") {
			t.Error(err)
		}
	}
}

// TestChanges: a replay has each row once, of all points in the order of time, and no outputs; an empty cell is a
// fault.
func TestChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "day.csv")
	const text = "time,point,value\n2025-01-10 00:00,climate/temperature,1\n2025-01-10 00:25,climate/temperature,\n" +
		"2025-01-10 00:00,hall/moving,on\n2025-01-10 00:05,hall/motion,on\n2025-01-10 00:06,hall/motion,\n" +
		"2025-01-10 00:07,pump/relay,on\n2025-01-10 00:30,hall/moving,off\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := readRecording(file, recordingSite(t), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	all, left := r.Changes()
	var got []string
	for _, c := range all {
		got = append(got, strings.Join([]string{c.At.Format("04"), c.Point, c.Value.String()}, " "))
		isEvent := c.Point == "hall/motion"
		if (c.Fault != "") != c.Value.IsZero() || isEvent && c.Value != device.Bool(true) {
			t.Errorf("%+v", c)
		}
	}
	want := []string{
		"00 climate/temperature 1", "00 hall/moving on", "05 hall/motion on", "25 climate/temperature -",
		"30 hall/moving off",
	}
	if !slices.Equal(got, want) || left != 2 {
		t.Errorf("%q, %d left out\nwant %q", got, left, want)
	}
}
