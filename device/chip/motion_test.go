package chip

import (
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"

	"agentsite/device"

	"periph.io/x/conn/v3/i2c"
)

// fakeMPU is an MPU6050 or MPU9250 that measures these raw values.
func fakeMPU(id byte, raw ...int16) *registers {
	b := &registers{addr: 0x68}
	b.mem[mpuID] = id
	for i, n := range raw {
		binary.BigEndian.PutUint16(b.mem[mpuData+2*i:], uint16(n))
	}
	return b
}

func TestMPU(t *testing.T) {
	for name, m := range map[string]mpuModel{"mpu6050": mpu6050, "mpu6500": mpu6500, "mpu9250": mpu9250} {
		// 16384 is 1 g, 131 is 1 degree in a second (RM-MPU-6000A-00, 4.17 and 4.19)
		bus := fakeMPU(m.id, 0, -8192, 16384, int16(m.slope*4), 131*2, -131*3, 0)
		want := map[string]float64{"accel_x": 0, "accel_y": -gravity / 2, "accel_z": gravity, "temperature": float64(int16(m.slope*4))/m.slope + m.at0,
			"gyro_x": 2 * 131 * 250.0 / 32768, "gyro_y": -3 * 131 * 250.0 / 32768, "gyro_z": 0}
		dev := open(t, name, bus)
		if bus.mem[mpuPower] != 0x01 || bus.mem[0x1A] != 3 {
			t.Errorf("power %#x, filter %d", bus.mem[mpuPower], bus.mem[0x1A])
		}
		recovers(t, dev, bus, want)
		copy(bus.mem[mpuFilter:], []byte{0, 0, 0}) // it lost its supply
		fails(t, dev, device.Offline)
		wants(t, dev, want)
		if dev.Close(); bus.mem[mpuPower] != 0x40 {
			t.Errorf("closed: power %#x", bus.mem[mpuPower])
		}
		_, err := config(t, name, fakeMPU(0x19)).Open(t.Context())
		faulted(t, err, device.Invalid, "its id is 0x19")
		conforms(t, name, func() i2c.Bus { return fakeMPU(m.id) })
	}
}

func TestMPUAtItsEnd(t *testing.T) {
	bus := fakeMPU(0x71, 32767, -32768, 32766, 0, 0, 0, -32768)
	c := onBus(t, "mpu9250", bus, func(c *mpuConfig) { c.Accel, c.Gyro = 16, 2000 })
	dev := opened(t, c)
	if bus.mem[0x1B] != 0x18 || bus.mem[0x1C] != 0x18 {
		t.Errorf("ranges %#x and %#x", bus.mem[0x1B], bus.mem[0x1C])
	}
	reads(t, dev, map[string]string{"accel_x": "", "accel_y": "", "accel_z": device.Number(device.Tidy(float64(32766) / 32768 * (16 * gravity))).String(), "temperature": "21", "gyro_x": "0", "gyro_y": "0", "gyro_z": ""})
	mistakes(t, "mpu9250", map[string]func(*mpuConfig){
		"2, 4, 8 or 16":      func(c *mpuConfig) { c.Accel = 3 },
		"250, 500":           func(c *mpuConfig) { c.Gyro = 0 },
		"address: this chip": func(c *mpuConfig) { c.Address = 0x67 },
	})
}

// fakeADXL345 measures these raw values.
func fakeADXL345(raw ...int16) *registers {
	b := &registers{addr: 0x53}
	b.mem[adxl345ID] = adxl345Is
	for i, n := range raw {
		binary.LittleEndian.PutUint16(b.mem[adxl345Format+1+2*i:], uint16(n))
	}
	return b
}

func TestADXL345(t *testing.T) {
	bus := fakeADXL345(0, -128, 256)
	dev := open(t, "adxl345", bus)
	if bus.mem[adxl345Power] != 0x08 || bus.mem[adxl345Format] != 0x08 {
		t.Errorf("power %#x, format %#x", bus.mem[adxl345Power], bus.mem[adxl345Format])
	}
	want := map[string]float64{"accel_x": 0, "accel_y": -gravity / 2, "accel_z": gravity}
	recovers(t, dev, bus, want)
	bus.mem[adxl345Format], bus.mem[adxl345Power] = 0, 0
	fails(t, dev, device.Offline)
	wants(t, dev, want)
	if dev.Close(); bus.mem[adxl345Power] != 0 {
		t.Error("closed, it still measures")
	}
	_, err := config(t, "adxl345", &registers{addr: 0x53}).Open(t.Context())
	faulted(t, err, device.Invalid, "no ADXL345: its id is 0x00")
	_, err = config(t, "adxl345", &registers{broken: errors.New("sysfs-i2c: connection timed out")}).Open(t.Context())
	faulted(t, err, device.Offline, "stuck")
	bus = fakeADXL345(4095, -4096, 4094)
	dev = opened(t, onBus(t, "adxl345", bus, func(c *adxl345Config) { c.Accel = 16 }))
	if bus.mem[adxl345Format] != 0x0B {
		t.Errorf("format %#x", bus.mem[adxl345Format])
	}
	reads(t, dev, map[string]string{"accel_x": "", "accel_y": "", "accel_z": device.Number(device.Tidy(float64(4094) / 4096 * (16 * gravity))).String()})
	mistakes(t, "adxl345", map[string]func(*adxl345Config){"2, 4, 8 or 16": func(c *adxl345Config) { c.Accel = 32 }})
	conforms(t, "adxl345", func() i2c.Bus { return fakeADXL345() })
}

// FuzzMotion is the chips that measure motion.
func FuzzMotion(f *testing.F) {
	f.Add([]byte{0x7F, 0xFF, 0x80, 0x00, 0xFF})
	f.Fuzz(func(t *testing.T, seed []byte) {
		synctest.Test(t, func(t *testing.T) { // the chips' waits take no time
			mpu, adxl := fakeMPU(0x71), fakeADXL345()
			copy(mpu.mem[mpuData:mpuData+14], seed)
			copy(adxl.mem[adxl345Format+1:adxl345Format+7], seed)
			believable(t, open(t, "mpu9250", mpu))
			believable(t, open(t, "adxl345", adxl))
		})
	})
}
