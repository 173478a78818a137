package beacon

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/devicetest"
	"agentsite/device/driver"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// air is a radio that hears what a test sends.
type air struct {
	mu  sync.Mutex
	all []listener
	err error // what hear returns at once
	cut chan error
}

func (a *air) hear(ctx context.Context, l listener) error {
	a.mu.Lock()
	if a.err != nil {
		defer a.mu.Unlock()
		return a.err
	}
	cut := make(chan error)
	a.all, a.cut = append(a.all, l), cut
	a.mu.Unlock()
	l.started()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.all = nil
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-cut:
		return err
	}
}

// send has all listeners hear an advertisement.
func (a *air) send(ad *advert) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.all {
		l.heard(ad)
	}
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// advertises makes an advertisement of a format's data.
func advertises(t testing.TB, from string, id uint16, data string) *advert {
	t.Helper()
	at, err := parseAddress(from)
	if err != nil {
		t.Fatal(err)
	}
	ad := &advert{from: at}
	if id == ruuviMaker {
		ad.maker = []block{{id, unhex(t, data)}}
	} else {
		ad.service = []block{{id, unhex(t, data)}}
	}
	return ad
}

// watching is a device that is open and watched.
type watching struct {
	device.Device
	mu   sync.Mutex
	all  []device.Reading
	last map[string]device.Reading
}

// open opens a device and watches it until the test ends.
func open(t *testing.T, a *air, driverName string, set func(driver.Config)) *watching {
	t.Helper()
	d, _ := driver.Find(drivers(a), driverName)
	c := d.Config()
	set(c)
	dev, err := driver.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	w := &watching{Device: dev, last: make(map[string]device.Reading)}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		dev.(device.Watcher).Watch(ctx, func(r device.Reading) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.all = append(w.all, r)
			w.last[r.Point] = r
		})
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
		dev.Close()
	})
	synctest.Wait()
	return w
}

func (w *watching) point(name string) device.Reading {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[name]
}

// count returns how many readings of a point were emitted.
func (w *watching) count(name string) (n int) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.all {
		if r.Point == name {
			n++
		}
	}
	return n
}

func (w *watching) expect(t *testing.T, point string, quality device.Quality, value device.Value) {
	t.Helper()
	if r := w.point(point); r.Quality != quality || r.Value != value {
		t.Errorf("%s is %v, %s (%s); want %v, %s", point, r.Value, r.Quality, r.Why, value, quality)
	}
}

const someone = "A4:C1:38:8D:18:B2"

func thermometer(c driver.Config) {
	b := c.(*bthomeConfig)
	b.Address, b.Inputs = someone, []string{"temperature", "humidity", "button", "window"}
}

func TestConformance(t *testing.T) {
	for name, set := range map[string]func(driver.Config){
		"bthome": thermometer,
		"pvvx":   func(c driver.Config) { c.(*pvvxConfig).Address = someone },
		"ruuvi":  func(c driver.Config) { c.(*ruuviConfig).Address = someone },
	} {
		t.Run(name, func(t *testing.T) {
			devicetest.Options{FakeClock: true}.Run(t, func(t *testing.T) device.Device {
				a := new(air)
				d, _ := driver.Find(drivers(a), name)
				c := d.Config()
				set(c)
				dev, err := driver.Open(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				a.send(advertises(t, someone, bthomeService, "4002C40903BF133A012D01"))
				return dev
			})
		})
	}
}

// TestFreshness: a value is good from its advertisement until lost_after, and has the time at which it was heard.
func TestFreshness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := new(air)
		w := open(t, a, "bthome", func(c driver.Config) {
			thermometer(c)
			c.(*bthomeConfig).LostAfter = time.Minute
		})
		w.expect(t, "temperature", device.Bad, device.Value{})
		heard := time.Now()
		ad := advertises(t, someone, bthomeService, "4002C40903BF13")
		a.send(ad)
		w.expect(t, "temperature", device.Good, device.Number(25))
		w.expect(t, "humidity", device.Good, device.Number(50.55))
		if at := w.point("temperature").At; !at.Equal(heard) {
			t.Errorf("heard at %v, want %v", at, heard)
		}
		w.expect(t, "window", device.Bad, device.Value{}) // it is heard, and does not say that
		for range 30 {                                    // heard again and again, it stays good, and is emitted rarely
			time.Sleep(2 * time.Second)
			a.send(ad)
		}
		if n := w.count("temperature"); n < 6 || n > 9 {
			t.Errorf("%d readings in a minute", n)
		}
		time.Sleep(59 * time.Second)
		w.expect(t, "temperature", device.Good, device.Number(25))
		time.Sleep(time.Second)
		w.expect(t, "temperature", device.Bad, device.Value{})
		w.expect(t, "humidity", device.Bad, device.Value{})
		a.send(ad)
		w.expect(t, "temperature", device.Good, device.Number(25))
	})
}

// TestRadioLost: while nothing can be heard all points are faults at once, whatever was heard before.
func TestRadioLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &air{err: device.Faultf(device.Offline, "no adapter")}
		w := open(t, a, "bthome", thermometer)
		w.expect(t, "temperature", device.Bad, device.Value{})
		a.mu.Lock()
		a.err = nil
		a.mu.Unlock()
		time.Sleep(2 * time.Second)
		a.send(advertises(t, someone, bthomeService, "4002C409"))
		w.expect(t, "temperature", device.Good, device.Number(25))
		a.cut <- device.Faultf(device.Offline, "BlueZ was restarted")
		w.expect(t, "temperature", device.Bad, device.Value{})
		time.Sleep(2 * time.Minute)
		a.send(advertises(t, someone, bthomeService, "40022A0A"))
		w.expect(t, "temperature", device.Good, device.Number(26.02))
	})
}

// TestOthers: what somebody else sends, or sends with another address in it, is not this device's.
func TestOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := new(air)
		w := open(t, a, "pvvx", func(c driver.Config) { c.(*pvvxConfig).Address = someone })
		a.send(advertises(t, "A4:C1:38:00:00:01", environmental, "010000"+"38C1A4"+"CA09BF13"+"B00B"+"64"+"01"+"00"))
		a.send(advertises(t, someone, environmental, "010000"+"38C1A4"+"CA09BF13"+"B00B"+"64"+"01"+"00"))
		w.expect(t, "temperature", device.Bad, device.Value{})
		a.send(advertises(t, someone, environmental, "B2188D"+"38C1A4"+"CA09BF13"+"B00B"+"64"+"01"+"00"))
		w.expect(t, "temperature", device.Good, device.Number(25.06))
		w.expect(t, "voltage", device.Good, device.Number(2.992))
		// 130 % is a fault of its point, and of no other.
		a.send(advertises(t, someone, environmental, "B2188D"+"38C1A4"+"CA09C832"+"B00B"+"64"+"02"+"00"))
		w.expect(t, "humidity", device.Bad, device.Value{})
		w.expect(t, "temperature", device.Good, device.Number(25.06))
	})
}

// TestEvents: a press that is sent three times happened once.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := new(air)
		w := open(t, a, "bthome", thermometer)
		for range 3 {
			a.send(advertises(t, someone, bthomeService, "4400073A01"))
			time.Sleep(100 * time.Millisecond)
		}
		w.expect(t, "button", device.Good, device.Text("press"))
		if n := w.count("button"); n != 1 {
			t.Errorf("%d presses", n)
		}
		a.send(advertises(t, someone, bthomeService, "4400083A02"))
		w.expect(t, "button", device.Good, device.Text("double_press"))
		a.send(advertises(t, someone, bthomeService, "4400093A00")) // none
		if n := w.count("button"); n != 2 {
			t.Errorf("%d presses", n)
		}
		time.Sleep(24 * time.Hour) // an event does not go stale
		w.expect(t, "button", device.Good, device.Text("double_press"))
	})
}

// seal encrypts a BTHome payload.
func seal(key cipher.Block, from address, info byte, counter uint32, plain []byte) []byte {
	var nonce [ccmNonce]byte
	copy(nonce[:], from[:])
	nonce[6], nonce[7], nonce[8] = 0xD2, 0xFC, info
	binary.LittleEndian.PutUint32(nonce[9:], counter)
	// The cipher's stream is its own inverse; the check value of a message is that which opens it.
	text := make([]byte, len(plain))
	openCCM(key, &nonce, text, append(append([]byte{}, plain...), 0, 0, 0, 0))
	var mac, first, stream [16]byte
	mac[0] = 0x09
	copy(mac[1:], nonce[:])
	mac[15] = byte(len(plain))
	key.Encrypt(mac[:], mac[:])
	for i, b := range plain {
		mac[i%16] ^= b
		if i%16 == 15 || i == len(plain)-1 {
			key.Encrypt(mac[:], mac[:])
		}
	}
	first[0] = 1
	copy(first[1:], nonce[:])
	key.Encrypt(stream[:], first[:])
	out := append([]byte{info}, text...)
	out = binary.LittleEndian.AppendUint32(out, counter)
	for i := range 4 {
		out = append(out, mac[i]^stream[i])
	}
	return out
}

const someKey = "231d39c1d7cc1ab1aee224cd096db932"

// TestReplay: with a key, only genuine advertisements with a growing counter count.
func TestReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "it.key")
	if err := os.WriteFile(file, []byte(someKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		a := new(air)
		w := open(t, a, "bthome", func(c driver.Config) {
			thermometer(c)
			c.(*bthomeConfig).KeyFile = driver.File(file)
			c.(*bthomeConfig).LostAfter = time.Minute
		})
		key, _ := aes.NewCipher(unhex(t, someKey))
		wrong, _ := aes.NewCipher(unhex(t, "814aac74c4f17b6c1581e1ab87816b99"))
		from, _ := parseAddress(someone)
		sends := func(key cipher.Block, counter uint32, plain string) {
			a.send(&advert{from: from, service: []block{{bthomeService, seal(key, from, 0x41, counter, unhex(t, plain))}}})
		}
		a.send(advertises(t, someone, bthomeService, "4002C409")) // not encrypted
		w.expect(t, "temperature", device.Bad, device.Value{})
		sends(wrong, 1000, "02C409")
		w.expect(t, "temperature", device.Bad, device.Value{})
		sends(key, 1000, "02C40903BF13")
		w.expect(t, "temperature", device.Good, device.Number(25))
		sends(key, 5, "022A0A") // a recording
		sends(wrong, 1001, "022A0A")
		a.send(advertises(t, someone, bthomeService, "40022A0A"))
		w.expect(t, "temperature", device.Good, device.Number(25))
		for range 7 { // the same again and again is no sign of life
			time.Sleep(10 * time.Second)
			sends(key, 1000, "02C40903BF13")
		}
		w.expect(t, "temperature", device.Bad, device.Value{})
		sends(key, 3, "02C409") // nor is an old one while it is lost
		w.expect(t, "temperature", device.Bad, device.Value{})
		sends(key, 1001, "022A0A")
		w.expect(t, "temperature", device.Good, device.Number(26.02))
	})
}

// TestFlood: one address that sends all the time costs a bounded number of readings, and its events are bounded.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := new(air)
		w := open(t, a, "bthome", thermometer)
		for i := range 10_000 {
			a.send(advertises(t, someone, bthomeService, fmt.Sprintf("4000%02X02%04X3A01", i%256, i)))
		}
		if n := w.count("temperature"); n > maxRate+2 {
			t.Errorf("%d readings in a moment", n)
		}
		if n := w.count("button"); n > maxRate {
			t.Errorf("%d events in a moment", n)
		}
		for i := range 2000 { // other devices cost nothing
			ad := advertises(t, fmt.Sprintf("C0:00:00:00:%02X:%02X", i/256, i%256), bthomeService, "4002C409")
			if allocs := testing.AllocsPerRun(1, func() { a.send(ad) }); allocs > 0 {
				t.Fatalf("%v allocations", allocs)
			}
		}
		time.Sleep(time.Second)
		a.send(advertises(t, someone, bthomeService, "40022A0A"))
		w.expect(t, "temperature", device.Good, device.Number(26.02))
	})
}

// TestOneScan: devices share a scan, which ends with the last of them.
func TestOneScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := new(air)
		all := drivers(a)
		var open []device.Device
		for i := range 10 {
			c := all[i%3].Config()
			at := fmt.Sprintf("C0:00:00:00:00:%02X", i)
			switch c := c.(type) {
			case *bthomeConfig:
				c.Address, c.Inputs = at, []string{"temperature"}
			case *pvvxConfig:
				c.Address = at
			case *ruuviConfig:
				c.Address = at
			}
			dev, err := driver.Open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, dev)
		}
		synctest.Wait()
		scans := func() (n, wanted int) {
			a.mu.Lock()
			defer a.mu.Unlock()
			for _, l := range a.all {
				wanted = len(l.only())
			}
			return len(a.all), wanted
		}
		if n, wanted := scans(); n != 1 || wanted != 10 {
			t.Errorf("%d scans for %d devices", n, wanted)
		}
		for _, dev := range open {
			dev.Close()
		}
		synctest.Wait()
		if n, _ := scans(); n != 0 {
			t.Errorf("%d scans without a device", n)
		}
	})
}

func TestMistakes(t *testing.T) {
	for _, c := range []driver.Config{
		&bthomeConfig{common: common{Address: someone, LostAfter: time.Minute}},
		&bthomeConfig{common: common{Address: someone, LostAfter: time.Minute}, Inputs: []string{"warmth"}},
		&bthomeConfig{common: common{Address: someone, LostAfter: time.Minute}, Inputs: []string{"temperature-1"}},
		&bthomeConfig{common: common{Address: someone, LostAfter: time.Minute}, Inputs: []string{"humidity", "humidity"}},
		&bthomeConfig{common: common{Address: someone}, Inputs: []string{"humidity"}},
		&pvvxConfig{common{Address: "A4C1388D18B2", LostAfter: time.Minute}},
		&pvvxConfig{common{Address: "00:00:00:00:00:00", LostAfter: time.Minute}},
		&ruuviConfig{common: common{Address: someone, LostAfter: time.Minute}, Model: "pro"},
	} {
		err := c.(driver.Validator).Validate()
		if f, ok := errors.AsType[*device.Fault](err); !ok || f.Kind != device.Invalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
