package sim

import (
	"bytes"
	"context"
	"image/png"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// TestTheHeaterIsFelt does what a new user tries first: heater on for five seconds.
func TestTheHeaterIsFelt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := openModel(t, Config{Model: "greenhouse", Seed: 1, Speed: 1})
		before := read(t, dev, "temperature").Number()
		set(t, dev, "heater", device.Bool(true))
		time.Sleep(5 * time.Second)
		after := read(t, dev, "temperature").Number()
		if after < before+0.5 {
			t.Errorf("5 s of heating: from %v to %v °C, want half a degree", before, after)
		}
		set(t, dev, "heater", device.Bool(false))
		time.Sleep(10 * time.Minute)
		if cooled := read(t, dev, "temperature").Number(); cooled > before+0.5 {
			t.Errorf("10 min later it still has %v °C, %v before", cooled, before)
		}
	})
}

func TestSpeed(t *testing.T) {
	warmed := func(t *testing.T, speed float64, d time.Duration) (temperature float64) {
		synctest.Test(t, func(t *testing.T) {
			dev := openModel(t, Config{Model: "greenhouse", Seed: 1, Speed: speed})
			set(t, dev, "heater", device.Bool(true))
			time.Sleep(d)
			temperature = read(t, dev, "temperature").Number()
		})
		return temperature
	}
	if slow, fast := warmed(t, 1, time.Minute), warmed(t, 60, time.Second); slow != fast {
		t.Errorf("a minute gives %v °C, a second at speed 60 %v °C", slow, fast)
	}
}

// TestTheSameSeedIsTheSameDay repeats a day of moves and readings.
func TestTheSameSeedIsTheSameDay(t *testing.T) {
	run := func(seed uint64) (all []device.Value) {
		synctest.Test(t, func(t *testing.T) {
			dev := openModel(t, Config{Model: "greenhouse", Seed: seed, Speed: 1})
			for i := range 48 {
				set(t, dev, "pump", device.Bool(i%7 == 0))
				set(t, dev, "vent", device.Number(float64(i)))
				time.Sleep(30 * time.Minute)
				readings, err := dev.(device.Sensor).Sample(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range readings {
					all = append(all, r.Value)
				}
			}
		})
		return all
	}
	if !slices.Equal(run(3), run(3)) {
		t.Error("two runs of one seed differ")
	}
	if slices.Equal(run(3), run(4)) {
		t.Error("two seeds give the same noise")
	}
}

func TestTheButtonIsPressedNowAndThen(t *testing.T) {
	for _, speed := range []float64{1, 60, maxSpeed} {
		synctest.Test(t, func(t *testing.T) {
			dev := openModel(t, Config{Model: "greenhouse", Seed: 5, Speed: speed})
			hour := time.Duration(float64(time.Hour) / speed)
			edges := watchFor(t, dev, hour, func() { time.Sleep(hour) })
			if n := len(edges); n != 30 { // 15 periods of 4 minutes
				t.Fatalf("speed %v: %d edges in an hour, want 30", speed, n)
			}
			for i, r := range edges {
				if r.Value != device.Bool(i%2 == 0) {
					t.Errorf("speed %v: edge %d is %v", speed, i, r.Value)
				}
				gap := time.Duration(float64(r.At.Sub(edges[max(i-2, 0)].At)) * speed)
				if i >= 2 && (gap < 115*time.Second || gap > 365*time.Second) {
					t.Errorf("speed %v: press %d came %v after the last", speed, i/2, gap)
				}
			}
		})
	}
}

func TestAPressIsSeenByAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := openModel(t, Config{Model: "greenhouse", Seed: 5, Speed: 1})
		const presses = 3
		seen := make(chan []device.Reading, 2)
		for range cap(seen) {
			go func() {
				const long = presses * pressEvery * time.Second
				seen <- watchFor(t, dev, long, func() { time.Sleep(long) })
			}()
		}
		one, other := <-seen, <-seen
		if len(one) != 2*presses || !slices.Equal(one, other) {
			t.Errorf("of %d presses one watcher saw %v, the other %v", presses, one, other)
		}
	})
}

func TestShow(t *testing.T) {
	g := openModel(t, Config{Model: "greenhouse", Speed: 1}).(*Greenhouse)
	full := strings.Repeat("ü", 64)
	if err := g.Show(t.Context(), "message", full); err != nil || g.message != full {
		t.Errorf("64 characters: %v, shows %q", err, g.message)
	}
	err := g.Show(t.Context(), "message", full+"!")
	if err == nil || device.AsFault(err).Kind != device.Invalid || g.message != full {
		t.Errorf("65 characters: %v, shows %q", err, g.message)
	}
}

func TestPicture(t *testing.T) {
	dark := newRoom()
	dark.time = 0
	lit := dark
	lit.lamp = true
	warm := lit
	warm.temperature = 40
	var shades []uint32
	for _, r := range []room{dark, lit, warm} {
		data, err := picture(r)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 1024 {
			t.Errorf("a picture has %d bytes", len(data))
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if b := img.Bounds(); b.Dx() != pictureWidth || b.Dy() != pictureHeight {
			t.Errorf("a picture of %v", b)
		}
		_, air, _, _ := img.At(40, 30).RGBA()
		_, mercury, _, _ := img.At(5, 20).RGBA()
		shades = append(shades, air, mercury)
	}
	if shades[0] >= shades[2] {
		t.Error("the lamp does not brighten the picture")
	}
	if shades[3] <= shades[5] {
		t.Error("the thermometer does not rise")
	}
}

// watchFor collects what Watch emits until meanwhile returns.
func watchFor(t *testing.T, dev device.Device, limit time.Duration, meanwhile func()) (all []device.Reading) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	done := make(chan error, 1)
	go func() {
		done <- dev.(device.Watcher).Watch(ctx, func(r device.Reading) { all = append(all, r) })
	}()
	meanwhile()
	cancel()
	if err := <-done; err != context.Canceled {
		t.Errorf("Watch: %v", err)
	}
	return all
}

func openModel(t *testing.T, c Config) device.Device {
	t.Helper()
	dev, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

func openError(t *testing.T, c *Config) error {
	_, err := driver.Open(t.Context(), c)
	return err
}

func set(t *testing.T, dev device.Device, point string, v device.Value) {
	t.Helper()
	if err := dev.(device.Actuator).Apply(t.Context(), point, v); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dev device.Device, point string) device.Value {
	t.Helper()
	readings, err := dev.(device.Sensor).Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readings {
		if r.Point == point {
			return r.Value
		}
	}
	t.Fatalf("no %s among %v", point, readings)
	return device.Value{}
}

func parse(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
