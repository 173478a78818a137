package kernel

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"agentsite/device"

	"periph.io/x/conn/v3/onewire"
)

func TestIIOUnits(t *testing.T) {
	tests := map[string]struct {
		files files
		want  map[string]any
	}{
		"bme280": {bme280, map[string]any{"temperature Cel": 25.08, "pressure Pa": 100653.0, "humidity %": 56.565}},
		"bme680 says percent": {files{"in_humidityrelative_input": "43.215000000\n", "in_resistance_input": "12345\n", "name": "bme680\n"},
			map[string]any{"humidity %": 43.215, "resistance Ohm": 12345.0}},
		"offset before scale, of the type": {files{"in_temp_raw": "1000", "in_temp_offset": "-15.5", "in_temp_scale": "7.8125"},
			map[string]any{"temperature Cel": 7.69140625}},
		"own scale before the type's": {files{"in_voltage0_raw": "10", "in_voltage0_scale": "3", "in_voltage_scale": "7", "in_voltage1_raw": "10"},
			map[string]any{"voltage0 V": 0.03, "voltage1 V": 0.07}},
		"differences have a scale of their own": {files{"in_voltage0-voltage1_raw": "-10", "in_voltage-voltage_scale": "0.125", "in_voltage_scale": "9", "in_voltage3_raw": "1"},
			map[string]any{"voltage0-1 V": -0.00125, "voltage3 V": 0.009}},
		"imu": {files{"in_accel_x_raw": "-512", "in_accel_y_raw": "0", "in_accel_z_raw": "16384", "in_accel_scale": "0.000598", "in_anglvel_z_raw": "10", "in_anglvel_scale": "0.001064724", "in_magn_x_raw": "2", "in_magn_scale": "0.15"},
			map[string]any{"accel_x m/s2": -0.306176, "accel_y m/s2": 0.0, "accel_z m/s2": 9.797632, "anglvel_z rad/s": 0.01064724, "magn_x uT": 30.0}},
		"mlx90614": {files{"in_temp_ambient_raw": "14657", "in_temp_object_raw": "14700", "in_temp_scale": "20", "in_temp_offset": "-13657.500000"},
			map[string]any{"temperature_ambient Cel": 19.99, "temperature_object Cel": 20.85}},
		"shared by all": {files{"in_voltage0_raw": "4", "scale": "2"}, map[string]any{"voltage0 V": 0.008}},
		"processed before raw": {files{"in_illuminance_input": "250", "in_illuminance_raw": "7", "in_intensity_both_raw": "70", "in_intensity_ir_raw": "12"},
			map[string]any{"illuminance lx": 250.0, "intensity_both 1": 70.0, "intensity_ir 1": 12.0}},
		"gases are percent": {files{"in_concentration_co2_raw": "415", "in_concentration_co2_scale": "0.0001", "in_concentration_voc_raw": "7", "in_concentration_voc_scale": "0.0000001", "in_massconcentration_pm2p5_input": "8.12"},
			map[string]any{"concentration_co2 [ppm]": 415.0, "concentration_voc [ppm]": 0.007, "massconcentration_pm2p5 ug/m3": 8.12}},
		"water":                   {files{"in_ph_raw": "7000", "in_ph_scale": "0.001", "in_electricalconductivity_raw": "150", "in_electricalconductivity_scale": "0.0001"}, map[string]any{"ph [pH]": 7.0, "electricalconductivity S/m": 0.015}},
		"power meter":             {files{"in_voltage1_raw": "3000", "in_voltage1_scale": "4", "in_power2_raw": "5", "in_power2_scale": "20", "in_current3_raw": "-50", "in_current3_scale": "1"}, map[string]any{"voltage1 V": 12.0, "power2 W": 0.1, "current3 A": -0.05}},
		"a current without scale": {files{"in_current_raw": "20"}, map[string]any{"current A": 0.02}},
		"a count without scale":   {files{"in_proximity_raw": "900", "in_illuminance_raw": "7"}, map[string]any{"proximity ": 900.0, "illuminance ": 7.0}},
		"distance":                {files{"in_distance_raw": "123", "in_distance_scale": "0.001"}, map[string]any{"distance m": 0.123}},
		"what is not now": {files{"in_temp_input": "1000", "in_temp_peak_raw": "9", "in_voltage0_mean_raw": "1", "in_anglvel_z_quadrature_correction_raw": "1", "in_rot_quaternion_raw": "0 0 0 1", "in_velocity_sqrt(x^2+y^2+z^2)_input": "3", "in_temp_calibbias": "1", "out_voltage0_raw": "1", "in_timestamp_raw": "3"},
			map[string]any{"temperature Cel": 1.0}},
		"humidity is cropped":       {files{"in_humidityrelative_input": "100300"}, map[string]any{"humidity %": 100.0}},
		"humidity beyond":           {files{"in_humidityrelative_input": "150000", "in_temp_input": "20000"}, map[string]any{"humidity %": nil, "temperature Cel": nil}},
		"a pressure that cannot be": {bme280.with(files{"in_pressure_input": "16000.0"}), map[string]any{"temperature Cel": nil, "pressure Pa": nil, "humidity %": nil}},
		"the limits of the chip":    {bme280.with(files{"in_pressure_input": "29.99987", "in_temp_input": "85010"}), map[string]any{"temperature Cel": 85.0, "pressure Pa": 30000.0, "humidity %": 56.565}},
		"below absolute zero":       {files{"in_temp_input": "-300000"}, map[string]any{"temperature Cel": nil}},
		"not a number":              {files{"in_temp_input": "NaN\n", "in_pressure_input": "", "in_current_raw": "9999999999999999999999"}, map[string]any{"temperature Cel": nil, "pressure Pa": nil, "current A": nil}},
		"a scale that is broken":    {files{"in_accel_x_raw": "1", "in_accel_y_raw": "1", "in_accel_x_scale": "oops", "in_accel_scale": "2"}, map[string]any{"accel_x m/s2": nil, "accel_y m/s2": 2.0}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root := in(iio0, files{"name": "chip\n"}.with(tt.files)).write(t)
			reads(t, open(t, &Selector{class: iio, Device: "iio:device0", root: root}), tt.want)
		})
	}
}

// TestEveryIIOType reads one channel of each type of the ABI's table.
func TestEveryIIOType(t *testing.T) {
	all := files{"name": "chip"}
	for typ := range iioTypes {
		all["in_"+typ+"0_raw"], all["in_"+typ+"0_scale"] = "1", "1"
	}
	dev := open(t, &Selector{class: iio, Name: "chip", root: in(iio0, all).write(t)})
	if err := dev.Describe().Validate(); err != nil {
		t.Error(err)
	}
	if got := sample(t, dev); len(got) != len(iioTypes) {
		t.Errorf("%d points of %d types", len(got), len(iioTypes))
	}
	for typ, iio := range iioTypes {
		if iio.unit == "" || iio.times == 0 || iio.per == 0 || iio.doc == "" {
			t.Errorf("%s: %+v", typ, iio)
		}
	}
}

func TestPointsInOrder(t *testing.T) {
	dev := open(t, &Selector{class: iio, Name: "ads1015", root: in(iio0, ads1015).write(t)})
	var names []string
	for _, p := range dev.Describe().Points {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "voltage0 voltage0-1 voltage2 voltage10" {
		t.Error(got)
	}
	if p, _ := dev.Describe().Point("voltage2"); p.Description != `voltage, "soil"` {
		t.Error(p.Description)
	}
}

func TestWhichDevice(t *testing.T) {
	two := files{}
	for i, place := range []string{"1-0076", "1-0077"} {
		real := "sys/devices/i2c-1/" + place + fmt.Sprintf("/iio:device%d", i)
		two = two.with(in(real+"/", bme280), files{fmt.Sprintf("sys/bus/iio/devices/iio:device%d", i): "->../../../../" + real})
		real = "sys/devices/i2c-1/" + place
		two = two.with(in(fmt.Sprintf("sys/class/hwmon/hwmon%d/", i), lm75), files{fmt.Sprintf("sys/class/hwmon/hwmon%d/device", i): "->../../../../" + real})
	}
	two["sys/devices/i2c-1/1-0077/iio:device1/in_temp_input"] = "1000\n"
	two["sys/class/hwmon/hwmon1/temp1_input"] = "2000\n"
	root := two.write(t)
	_, err := (&Selector{class: iio, Name: "bme280", root: root}).Open(t.Context())
	faulted(t, err, device.Invalid, "1-0076, 1-0077")
	_, err = (&Selector{class: hwmon, Name: "lm75", root: root}).Open(t.Context())
	faulted(t, err, device.Invalid, "1-0076, 1-0077")
	for _, c := range []*Selector{{class: iio, Name: "bme280", At: "1-0077"}, {class: iio, At: "1-0077"}, {class: iio, Bind: &Bind{"i2c-1", 0x77, "bme280"}}, {class: iio, Device: "iio:device1"}} {
		c.root = root
		if r := sample(t, open(t, c))["temperature"]; r.Value != device.Number(1) {
			t.Errorf("%+v: %v", c, r.Value)
		}
	}
	if r := sample(t, open(t, &Selector{class: hwmon, Name: "lm75", At: "1-0077", root: root}))["temperature1"]; r.Value != device.Number(2) {
		t.Error(r.Value)
	}
}

func TestBindLine(t *testing.T) {
	const line = "echo bme280 0x76 > /sys/bus/i2c/devices/i2c-1/new_device"
	c := &Selector{class: iio, Name: "bme280", Bind: &Bind{"i2c-1", 0x76, "bme280"}, root: in(iio0, files{"name": "other"}).write(t)}
	_, err := c.Open(t.Context())
	offline(t, err, line)
	h := &Selector{class: hwmon, Bind: &Bind{"i2c-0", 0x09, "lm75"}, root: c.root}
	_, err = h.Open(t.Context())
	offline(t, err, "echo lm75 0x09 > /sys/bus/i2c/devices/i2c-0/new_device")
	_, err = (&Selector{class: iio, Name: "bme280", root: c.root}).Open(t.Context())
	offline(t, err, "it has other")
	for _, b := range []Bind{{"i2c-1; reboot", 0x76, "bme280"}, {"i2c-1", 0x78, "bme280"}, {"i2c-1", 2, "bme280"}, {"i2c-1", 0x76, "a b"}, {"i2c-1", 0x76, "$(reboot)"}, {"i2c-1", 0x76, "x\n"}, {"", 0x76, "x"}, {"i2c-1", 0x76, ""}} {
		faulted(t, (&Selector{class: iio, Bind: &b}).Validate(), device.Invalid, "bind")
	}
}

func TestMistakes(t *testing.T) {
	for _, v := range []interface{ Validate() error }{
		&Selector{class: iio}, &Selector{class: iio, Device: "iio:device0/../.."}, &Selector{class: iio, Name: "../x"}, &Selector{class: iio, Name: "a\nb"}, &Selector{class: iio, Name: strings.Repeat("x", 99)}, &Selector{class: iio, Name: "x", At: "a/b"}, &Selector{class: hwmon}, &Selector{class: hwmon, Device: "hwmon"},
		&W1{ID: "29-0316a2795c1f"}, &W1{ID: "28-xyz"}, &Thermal{}, &Thermal{Zone: ".."}, &LED{}, &LED{Name: "../x"},
		&Input{}, &Input{Name: "a", Device: "/dev/input/event0"}, &Input{Device: "/dev/mem"}, &Input{Device: "/dev/input/../mem"},
	} {
		faulted(t, v.Validate(), device.Invalid, "")
	}
}

func TestHwmon(t *testing.T) {
	tests := map[string]struct {
		files files
		want  map[string]any
	}{
		"lm75": {lm75, map[string]any{"temperature1 Cel": 21.5, "temperature1_max_alarm ": false}},
		"every kind": {files{"temp1_input": "-5125", "in0_input": "3312", "in10_input": "1", "fan1_input": "1200", "curr1_input": "-250", "power1_input": "1500000", "energy1_input": "3600000000", "humidity1_input": "45600", "intrusion0_alarm": "1", "intrusion0_beep": "1"},
			map[string]any{"temperature1 Cel": -5.125, "voltage0 V": 3.312, "voltage10 V": 0.001, "fan1 /min": 1200.0, "current1 A": -0.25, "power1 W": 1.5, "energy1 J": 3600.0, "humidity1 %": 45.6, "intrusion0_alarm ": true}},
		"alarms":              {files{"temp1_input": "1000", "temp1_crit_alarm": "1", "temp1_emergency_alarm": "0", "in0_lcrit_alarm": "2", "fan1_fault": "1", "fan1_input": "0"}, map[string]any{"temperature1 Cel": 1.0, "temperature1_crit_alarm ": true, "temperature1_emerg_alarm ": false, "voltage0_lcrit_alarm ": nil, "fan1_fault ": true, "fan1 /min": nil}},
		"a broken sensor":     {files{"temp1_input": "127000", "temp1_fault": "1", "temp2_input": "20000", "temp2_fault": "0"}, map[string]any{"temperature1 Cel": nil, "temperature1_fault ": true, "temperature2 Cel": 20.0, "temperature2_fault ": false}},
		"the average only":    {files{"power1_average": "2000000", "power2_average": "1", "power2_input": "3000000"}, map[string]any{"power1 W": 2.0, "power2 W": 3.0}},
		"limits are not read": {files{"temp1_input": "0", "temp1_max": "1", "temp1_crit_hyst": "1", "pwm1": "128", "pwm1_enable": "1", "temp1_offset": "0", "in0_min": "1"}, map[string]any{"temperature1 Cel": 0.0}},
		"not believed":        {files{"temp1_input": "-400000", "in0_input": "inf", "humidity1_input": "-30000"}, map[string]any{"temperature1 Cel": nil, "voltage0 V": nil, "humidity1 %": nil}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root := in("sys/class/hwmon/hwmon7/", tt.files.with(files{"name": "chip"})).write(t)
			dev := open(t, &Selector{class: hwmon, Name: "chip", root: root})
			reads(t, dev, tt.want)
			if err := dev.Describe().Validate(); err != nil {
				t.Error(err)
			}
		})
	}
	root := in("sys/class/hwmon/hwmon0/", lm75.with(files{"temp1_label": "air\x07 \"inlet\"\n"})).write(t)
	if p, _ := open(t, &Selector{class: hwmon, Name: "lm75", root: root}).Describe().Point("temperature1"); p.Description != `temperature, "air inlet"` {
		t.Error(p.Description)
	}
}

// w1Slave returns the file of a thermometer whose scratchpad begins with these bytes.
func w1Slave(scratch string, crcRight bool, milli int) string {
	b, err := hex.DecodeString(scratch)
	if err != nil {
		panic(err)
	}
	crc, verdict := onewire.CalcCRC(b), "YES"
	if !crcRight {
		verdict = "NO"
		crc ^= 1
	}
	var line strings.Builder
	for _, c := range append(b, crc) {
		fmt.Fprintf(&line, "%02x ", c)
	}
	return fmt.Sprintf("%s: crc=%02x %s\n%st=%d\n", line.String(), crc, verdict, line.String(), milli)
}

func TestW1(t *testing.T) {
	// The DS18B20's scratchpad after power-on; its CRC is known from many logs.
	if crc := onewire.CalcCRC([]byte{0x50, 0x05, 0x4b, 0x46, 0x7f, 0xff, 0x0c, 0x10}); crc != 0x1c {
		t.Errorf("the CRC is %02x, want 1c", crc)
	}
	tests := map[string]struct {
		file, content string
		want          any
	}{
		"well":               {"w1_slave", w1Slave("5e014b467fff0210", true, 21875), 21.875},
		"frost":              {"w1_slave", w1Slave("5efe4b467fff0210", true, -26125), -26.125},
		"wrong crc":          {"w1_slave", w1Slave("5e014b467fff0210", false, 21875), nil},
		"YES but wrong crc":  {"w1_slave", "5e 01 4b 46 7f ff 02 10 00 : crc=00 YES\n5e 01 4b 46 7f ff 02 10 00 t=21875\n", nil},
		"power-on":           {"w1_slave", w1Slave("50054b467fff0c10", true, 85000), nil},
		"really 85":          {"w1_slave", w1Slave("50054b467fff1010", true, 85000), 85.0},
		"shorted to ground":  {"w1_slave", w1Slave("0000000000000000", true, 0), nil},
		"no conversion":      {"w1_slave", "", nil},
		"truncated":          {"w1_slave", "5e 01 4b 46 7f ff 02", nil},
		"one line":           {"w1_slave", strings.SplitAfter(w1Slave("5e014b467fff0210", true, 21875), "\n")[0], nil},
		"supply too weak":    {"w1_slave", w1Slave("ff074b467fff0c10", true, 127937), nil},
		"the short file":     {"temperature", "21875\n", 21.875},
		"the short file, 85": {"temperature", "85000\n", nil},
		"the short file, -":  {"temperature", "", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root := in(w1a, files{tt.file: tt.content}).with(files{"sys/bus/w1/devices/w1_bus_master1/name": "x", "sys/bus/w1/devices/01-000012345678/name": "x"}).write(t)
			reads(t, open(t, &W1{root: root}), map[string]any{"temperature Cel": tt.want})
		})
	}
	root := in(w1a, files{"temperature": "1000"}).with(in("sys/bus/w1/devices/10-0316a2795c1f/", files{"temperature": "2000"})).write(t)
	_, err := (&W1{root: root}).Open(t.Context())
	faulted(t, err, device.Invalid, "28-0316a2795c1f")
	dev := open(t, &W1{ID: "10-0316a2795c1f", root: root})
	reads(t, dev, map[string]any{"temperature Cel": 2.0})
	if dev.Describe().Model != "DS18S20" {
		t.Error(dev.Describe().Model)
	}
}

func TestThermal(t *testing.T) {
	root := in("sys/class/thermal/thermal_zone0/", files{"type": "cpu-thermal", "temp": "-274000"}).
		with(in("sys/class/thermal/thermal_zone1/", files{"type": "gpu", "temp": "48312"})).write(t)
	reads(t, open(t, &Thermal{Zone: "gpu", root: root}), map[string]any{"temperature Cel": 48.312})
	reads(t, open(t, &Thermal{Zone: "cpu-thermal", root: root}), map[string]any{"temperature Cel": nil})
	_, err := (&Thermal{Zone: "soc", root: root}).Open(t.Context())
	offline(t, err, "cpu-thermal, gpu")
}

// TestABusThatDoesNotAnswer: files that cannot be read.
func TestABusThatDoesNotAnswer(t *testing.T) {
	root := in(iio0, bme280).write(t)
	dev := open(t, &Selector{class: iio, Name: "bme280", root: root})
	spoil(t, root, iio0+"in_temp_input")
	reads(t, dev, map[string]any{"temperature Cel": nil, "pressure Pa": 100653.0, "humidity %": 56.565})
	spoil(t, root, iio0+"in_pressure_input")
	spoil(t, root, iio0+"in_humidityrelative_input")
	reads(t, dev, map[string]any{"temperature Cel": nil, "pressure Pa": nil, "humidity %": nil})
	if r := sample(t, dev)["temperature"]; !strings.Contains(r.Why, "in_temp_input") {
		t.Errorf("%q does not name the file", r.Why)
	}
	setFile(t, root, iio0+"name", strings.Repeat("x", 1<<20+1))
	_, err := dev.(device.Sensor).Sample(t.Context())
	offline(t, err, "bme280")
}
