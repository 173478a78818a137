package chip

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/board/boardtest"
	"agentsite/device/devicetest"
	"agentsite/device/driver"
	"agentsite/device/testbed"

	"periph.io/x/conn/v3/physic"
)

// bench is a bus with one emulated chip, made after its datasheet and not after our
// drivers. Before one of its transfers something can happen to it.
type bench struct {
	*testbed.Bus
	transfers int
	at        int // which transfer it happens to; 0 is none
	happens   func(r []byte)
}

func onBench(address byte, chip testbed.Chip) *bench {
	b := &bench{Bus: testbed.NewBus()}
	b.Add("chip", address, chip)
	return b
}

func (b *bench) String() string { return "bench" }

func (b *bench) SetSpeed(physic.Frequency) error { return errors.New("no speed here") }

func (b *bench) Tx(addr uint16, w, r []byte) (err error) {
	b.transfers++
	if len(w) > 0 {
		err = b.Write(byte(addr), w)
	}
	if err == nil && len(r) > 0 {
		err = b.Read(byte(addr), r)
	}
	if b.transfers == b.at {
		b.happens(r)
	}
	if err != nil {
		return fmt.Errorf("sysfs-i2c: %v", syscall.ENXIO)
	}
	return nil
}

// dip takes the chip's supply away and gives it back.
func (b *bench) dip() {
	b.SetState("chip", testbed.Absent)
	b.SetState("chip", testbed.OK)
}

func (b *bench) tell(t *testing.T, world map[string]float64) {
	t.Helper()
	for what, value := range world {
		if err := b.SetInput("chip", what, value); err != nil {
			t.Fatal(err)
		}
	}
}

// measuring are emulated chips whose settings, or whose having been started, a dip of
// the supply takes away.
var measuring = []onBenchCase{
	{"bme280", 0x76, func() testbed.Chip { return testbed.NewBME280() }, map[string]float64{"temperature": 21.5, "humidity": 65, "pressure": 98765}, nil, 1, 0, nil},
	{"tmp102", 0x48, func() testbed.Chip { return testbed.NewTMP102() }, map[string]float64{"temperature": 21.5}, nil, 0, 0, nil},
	{"mcp9808", 0x18, func() testbed.Chip { return testbed.NewMCP9808() }, map[string]float64{"temperature": 21.5}, nil, 0, 0, nil},
	{"ina219", 0x40, func() testbed.Chip { return testbed.NewINA219() }, map[string]float64{"voltage": 11.98, "current": 0.2}, nil, 0, 0, nil},
	{"max17043", 0x36, func() testbed.Chip { return testbed.NewMAX17043() }, map[string]float64{"voltage": 3.7, "charge": 42.5}, nil, 0, time.Second, nil},
	{"bh1750", 0x23, func() testbed.Chip { return testbed.NewBH1750() }, map[string]float64{"illuminance": 500}, nil, 1, 0, nil},
	{"sgp30", 0x58, func() testbed.Chip { return testbed.NewSGP30() }, map[string]float64{"concentration_co2": 800, "concentration_voc": 30}, nil, 0, sgp30Asks + time.Second, nil},
	// at the channel and gain that it has after power-on, where its channel and gain do
	// not tell that its settings were lost
	{"ads1115", 0x48, func() testbed.Chip { return testbed.NewADS1115() }, map[string]float64{"in0": 1.5, "in1": 0.5}, map[string]float64{"voltage0-1": 1}, 0, 0, func(c driver.Config) {
		ads := c.(*ads1x15Config)
		ads.Channels, ads.Gain = []string{"0-1"}, "2"
	}},
}

// onBenchCase is one of them, with what the world is and what the points are then, the
// same when not written, within so much.
type onBenchCase struct {
	driver  string
	address byte
	chip    func() testbed.Chip
	world   map[string]float64
	points  map[string]float64
	within  float64
	wait    time.Duration // until it knows its place
	config  func(driver.Config)
}

// open opens the driver's device on a bench of its own.
func (m onBenchCase) open(t *testing.T) (*bench, device.Sensor) {
	t.Helper()
	b := onBench(m.address, m.chip())
	b.tell(t, m.world)
	dev := b.open(t, m.driver, m.config)
	sensor := dev.(device.Sensor)
	if m.wait > 0 {
		sensor.Sample(t.Context())
		time.Sleep(m.wait)
		sensor.Sample(t.Context())
		time.Sleep(time.Second)
	}
	return b, sensor
}

// open is the driver's device's Config on a board whose first bus is the bench.
func (b *bench) open(t *testing.T, name string, change func(driver.Config)) device.Device {
	t.Helper()
	d, ok := driver.Find(Drivers(boardtest.I2C(b)), name)
	if !ok {
		t.Fatalf("there is no driver %s", name)
	}
	c := d.Config()
	if change != nil {
		change(c)
	}
	dev, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// TestDip takes each chip's supply away between two samples, and after each of the
// transfers of one.
func TestDip(t *testing.T) {
	for _, m := range measuring {
		t.Run(m.driver, func(t *testing.T) {
			var b *bench
			devicetest.Options{FakeClock: true, Dip: func() { b.dip() }}.Run(t, func(t *testing.T) device.Device {
				var sensor device.Sensor
				b, sensor = m.open(t)
				return sensor.(device.Device)
			})
			m.atEach(t, func(b *bench, _ []byte) { b.dip() })
		})
	}
}

// TestNoise holds the data line, low or high, during each of the transfers of a sample.
func TestNoise(t *testing.T) {
	for _, held := range []byte{0x00, 0xFF} {
		for _, m := range measuring {
			t.Run(fmt.Sprintf("%s/%#02x", m.driver, held), func(t *testing.T) {
				m.atEach(t, func(_ *bench, r []byte) {
					for i := range r {
						r[i] = held
					}
				})
			})
		}
	}
}

// atEach lets something happen at the first, the second, … transfer of a sample. A
// value that is called good then is the world's, and soon all are good again.
func (m onBenchCase) atEach(t *testing.T, happens func(b *bench, r []byte)) {
	synctest.Test(t, func(t *testing.T) {
		for at := 1; ; at++ {
			b, sensor := m.open(t)
			b.at, b.happens = b.transfers+at, func(r []byte) { happens(b, r) }
			m.truth(t, sensor, at)
			if b.transfers < b.at {
				if at == 1 {
					t.Error("a sample is no transfer")
				}
				return
			}
			well := false
			for try := 0; try < 60 && !well; try++ {
				time.Sleep(time.Second)
				well = m.truth(t, sensor, at)
			}
			if !well {
				t.Errorf("after transfer %d it is never well again", at)
			}
		}
	})
}

// truth takes a sample and reports whether all its points are good.
func (m onBenchCase) truth(t *testing.T, sensor device.Sensor, at int) (well bool) {
	t.Helper()
	points := m.points
	if points == nil {
		points = m.world
	}
	readings, err := sensor.Sample(t.Context())
	well = err == nil
	for _, r := range readings {
		want, known := points[r.Point]
		if r.Quality != device.Good {
			well = false
		} else if n := r.Value.Number(); known && math.Abs(n-want) > m.within+1e-9 {
			t.Errorf("at transfer %d: %s = %v is called good; it is %v", at, r.Point, r.Value, want)
		}
	}
	return well
}

// TestLimits tells the emulated chips the ends of their ranges.
func TestLimits(t *testing.T) {
	for name, ends := range map[string][]map[string]float64{
		"bme280":   {{"temperature": -40, "pressure": 30000, "humidity": 0}, {"temperature": 85, "pressure": 110000, "humidity": 100}, {"temperature": 85, "pressure": 30000, "humidity": 50}},
		"tmp102":   {{"temperature": -55}, {"temperature": 127.9375}},
		"mcp9808":  {{"temperature": -40}, {"temperature": 125}},
		"max17043": {{"voltage": 2.5, "charge": 0}, {"voltage": 4.2, "charge": 100}, {"voltage": 5.1, "charge": 50}},
		"ina219":   {{"voltage": 0, "current": 0}, {"voltage": 26, "current": 3.19}, {"voltage": 26.1, "current": -3.19}},
	} {
		synctest.Test(t, func(t *testing.T) {
			i := slices.IndexFunc(measuring, func(m onBenchCase) bool { return m.driver == name })
			b, sensor := measuring[i].open(t)
			for _, world := range ends {
				b.tell(t, world)
				readings, err := sensor.Sample(t.Context())
				if err != nil {
					t.Fatal(name, err)
				}
				for _, r := range readings {
					if want, known := world[r.Point]; r.Quality != device.Good || known && math.Abs(r.Value.Number()-want) > 0.2 {
						t.Errorf("%s told %v: %s = %v (%s)", name, world, r.Point, r.Value, r.Why)
					}
				}
			}
		})
	}
}

// TestBME280Humidity holds the compensation to the datasheet's other formula, the one
// in floating point, for factory values with every sign.
func TestBME280Humidity(t *testing.T) {
	for _, trim := range [][6]int64{
		{75, 362, 0, 313, 50, 30}, {75, 362, 0, -50, 50, 30}, {75, 362, 0, 313, -50, 30}, {75, 362, 0, 300, -300, -30},
		{75, 370, 0, 500, 100, -128}, {0, 333, 255, -1, -1, 127},
	} {
		synctest.Test(t, func(t *testing.T) {
			for _, world := range []map[string]float64{
				{"temperature": 21.5, "humidity": 65, "pressure": 101325},
				{"temperature": -20, "humidity": 30, "pressure": 98765},
				{"temperature": 60, "humidity": 80, "pressure": 65000},
			} {
				b := onBench(0x76, testbed.NewBME280Of(trim))
				b.tell(t, world)
				readings, err := b.open(t, "bme280", nil).(device.Sensor).Sample(t.Context())
				if err != nil {
					t.Fatal(trim, err)
				}
				for _, r := range readings {
					if d := r.Value.Number() - world[r.Point]; r.Quality != device.Good || d > 1 || d < -1 || r.Point == "humidity" && (d > 0.2 || d < -0.2) {
						t.Errorf("%v: %s = %v (%s), told %v", trim, r.Point, r.Value, r.Why, world[r.Point])
					}
				}
			}
		})
	}
}
