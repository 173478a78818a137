package beacon

import (
	"crypto/aes"
	"crypto/cipher"
	"maps"
	"testing"

	"agentsite/device"
)

// recorded are advertisements of public documents.
var recorded = []struct {
	from   string
	id     uint16
	data   string
	key    string
	values map[string]float64 // of numbers and states; nothing for a value that is not available
	lacks  []string
	event  string
}{
	// https://bthome.io/format: the example, one of each size, and binary sensors.
	{from: someone, id: bthomeService, data: "4002C40903BF13", values: map[string]float64{"temperature": 25, "humidity": 50.55}},
	{from: someone, id: bthomeService, data: "400161", values: map[string]float64{"battery": 97}},
	{from: someone, id: bthomeService, data: "4004138A01", values: map[string]float64{"pressure": 100883}},
	{from: someone, id: bthomeService, data: "4005138A14", values: map[string]float64{"illuminance": 13460.67}},
	{from: someone, id: bthomeService, data: "40065E1F", values: map[string]float64{"mass": 80.3}},
	{from: someone, id: bthomeService, data: "40073E1D", values: map[string]float64{"mass": 33.9559248}}, // 74.86 lb
	{from: someone, id: bthomeService, data: "4008CA06", values: map[string]float64{"dew_point": 17.38}},
	{from: someone, id: bthomeService, data: "400A138A14", values: map[string]float64{"energy": 1346.067}},
	{from: someone, id: bthomeService, data: "400B021B00", values: map[string]float64{"power": 69.14}},
	{from: someone, id: bthomeService, data: "400C020C", values: map[string]float64{"voltage": 3.074}},
	{from: someone, id: bthomeService, data: "400D120C0E021C", values: map[string]float64{"pm2_5": 3090, "pm10": 7170}},
	{from: someone, id: bthomeService, data: "4012E204", values: map[string]float64{"co2": 1250}},
	{from: someone, id: bthomeService, data: "40133301", values: map[string]float64{"tvoc": 307}},
	{from: someone, id: bthomeService, data: "4014020C", values: map[string]float64{"moisture": 30.74}},
	{from: someone, id: bthomeService, data: "403E2A2C0960", values: map[string]float64{"count": 1611213866}},
	{from: someone, id: bthomeService, data: "403F020C", values: map[string]float64{"rotation": 307.4}},
	{from: someone, id: bthomeService, data: "40400C00", values: map[string]float64{"distance": 0.012}},
	{from: someone, id: bthomeService, data: "40414E00", values: map[string]float64{"distance": 7.8}},
	{from: someone, id: bthomeService, data: "4045 1101", values: map[string]float64{"temperature": 27.3}},
	{from: someone, id: bthomeService, data: "4057EA", values: map[string]float64{"temperature": -22}},
	{from: someone, id: bthomeService, data: "4058EA", values: map[string]float64{"temperature": -7.7}},
	{from: someone, id: bthomeService, data: "400F01100111002101", values: map[string]float64{"generic": 1, "powered": 1, "opening": 0, "motion": 1}},
	// Two of a kind, an unknown object at the end, and text before a number.
	{from: someone, id: bthomeService, data: "4002C40902000045 1101", values: map[string]float64{"temperature": 25, "temperature-2": 0, "temperature-3": 27.3}},
	{from: someone, id: bthomeService, data: "400161EE0102", values: map[string]float64{"battery": 97}},
	{from: someone, id: bthomeService, data: "40530348656C6401", values: map[string]float64{"light_level": 1}},
	// The address in the payload.
	{from: someone, id: bthomeService, data: "42B2188D38C1A40161", values: map[string]float64{"battery": 97}},
	// Shelly: BLU H&T Display ZB and BLU Door/Window (https://shelly-api-docs.shelly.cloud/docs-ble), a button.
	{from: someone, id: bthomeService, data: "40002E01641E012E34451601", values: map[string]float64{"battery": 100, "light": 1, "humidity": 52, "temperature": 27.8}},
	{from: someone, id: bthomeService, data: "40004E01640500000 02D013F0000", values: map[string]float64{"battery": 100, "illuminance": 0, "window": 1, "rotation": 0}},
	{from: someone, id: bthomeService, data: "44000101643A01", values: map[string]float64{"battery": 100}, event: "press"},
	{from: someone, id: bthomeService, data: "443AFE", values: map[string]float64{}, event: "hold_press"},
	{from: someone, id: bthomeService, data: "403C0203", values: map[string]float64{}, event: "3"},
	// https://bthome.io/encryption.
	{from: "54:48:E6:8F:80:A5", id: bthomeService, data: "41A47266C95F730011223378237214", key: someKey,
		values: map[string]float64{"temperature": 25.06, "humidity": 50.55}},
	// https://github.com/pvvx/ATC_MiThermometer and https://github.com/atc1441/ATC_MiThermometer.
	{from: someone, id: environmental, data: "B2188D38C1A4" + "CA09" + "BF13" + "B00B" + "64" + "07" + "04",
		values: map[string]float64{"temperature": 25.06, "humidity": 50.55, "voltage": 2.992, "battery": 100}},
	{from: someone, id: environmental, data: "A4C1388D18B2" + "FFF6" + "32" + "55" + "0B9E" + "11",
		values: map[string]float64{"temperature": -1, "humidity": 50, "battery": 85, "voltage": 2.974}},
	// The test vectors of Ruuvi's data formats 5 and 6.
	{from: "CB:B8:33:4C:88:4F", id: ruuviMaker, data: "0512FC5394C37C0004FFFC040CAC364200CDCBB8334C884F", values: map[string]float64{
		"temperature": 24.3, "humidity": 53.49, "pressure": 100044, "acceleration_x": 0.0392266, "acceleration_y": -0.0392266,
		"acceleration_z": 10.1596894, "voltage": 2.977, "movements": 66}},
	{from: "CB:B8:33:4C:88:4F", id: ruuviMaker, data: "058001000000008001800180010000000000CBB8334C884F", values: map[string]float64{
		"temperature": -163.835, "humidity": 0, "pressure": 50000, "acceleration_x": -321.334501,
		"acceleration_y": -321.334501,
		"acceleration_z": -321.334501, "voltage": 1.6, "movements": 0}},
	{from: "CB:B8:33:4C:88:4F", id: ruuviMaker, data: "058000FFFFFFFF800080008000FFFFFFFFFFCBB8334C884F", values: map[string]float64{},
		lacks: []string{"temperature", "humidity", "pressure", "acceleration_x", "acceleration_y", "acceleration_z", "voltage", "movements"}},
	{from: "CB:B8:33:4C:88:4F", id: ruuviMaker, data: "06170C5668C79E007000C90501D9FFCD004C884F", values: map[string]float64{
		"temperature": 29.5, "humidity": 55.3, "pressure": 101102, "pm2_5": 11.2, "co2": 201, "voc": 10, "nox": 2, "illuminance": 13026.67}},
	{from: "CB:B8:33:4C:8F:4F", id: ruuviMaker, data: "067FFF9C40FFFE27109C40FAFAFEFFFF074C8F4F", values: map[string]float64{
		"temperature": 163.835, "humidity": 100, "pressure": 115534, "pm2_5": 1000, "co2": 40000, "voc": 500, "nox": 500, "illuminance": 65535}},
	{from: "FF:FF:FF:FF:FF:FF", id: ruuviMaker, data: "068000FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", values: map[string]float64{},
		lacks: []string{"temperature", "humidity", "pressure", "pm2_5", "co2", "voc", "nox", "illuminance"}},
}

func familyOf(id uint16) *family {
	return map[uint16]*family{bthomeService: &bthome, environmental: &pvvx, ruuviMaker: &ruuvi}[id]
}

func TestRecorded(t *testing.T) {
	for _, c := range recorded {
		ad := advertises(t, c.from, c.id, spaceless(c.data))
		var key cipher.Block
		if c.key != "" {
			key, _ = aes.NewCipher(unhex(t, c.key))
		}
		all, _, err := familyOf(c.id).read(key, ad, nil)
		if err != nil {
			t.Errorf("%s: %v", c.data, err)
			continue
		}
		got, event, lacks := map[string]float64{}, "", 0
		for _, s := range all {
			name := inputName(s)
			switch {
			case s.event:
				event = s.value.String()
			case s.value.IsZero():
				lacks++
			default:
				got[name] = s.value.Number()
			}
		}
		if !maps.Equal(got, c.values) || event != c.event || lacks != len(c.lacks) {
			t.Errorf("%s: %v, event %q, %d not available", c.data, got, event, lacks)
		}
	}
}

func spaceless(text string) string {
	out := ""
	for _, r := range text {
		if r != ' ' {
			out += string(r)
		}
	}
	return out
}

// TestObjects: each object is a valid point, one name has one kind, unit and range, and numbers grow with what the
// sensor can send.
func TestObjects(t *testing.T) {
	points := map[string]device.Point{}
	for id, o := range objects {
		if o.name == "" {
			continue
		}
		p := o.point(o.name)
		if err := (device.Description{Points: []device.Point{p}}).Validate(); err != nil {
			t.Errorf("%#02x: %v", id, err)
		}
		if p.Kind == device.KindMeasurement && !(p.Range.Min < p.Range.Max) {
			t.Errorf("%#02x has no range", id)
		}
		was, known := points[o.name]
		if points[o.name] = p; known && (was.Unit != p.Unit || was.Range != p.Range || was.Kind != p.Kind) {
			t.Errorf("%s is %+v and %+v", o.name, was, p)
		}
	}
}

// TestReadAllocates: an advertisement that is not encrypted costs no allocation.
func TestReadAllocates(t *testing.T) {
	for _, c := range recorded {
		if c.key != "" {
			continue
		}
		ad := advertises(t, c.from, c.id, spaceless(c.data))
		read, buf := familyOf(c.id).read, make([]said, 0, maxSaid)
		if n := testing.AllocsPerRun(10, func() { read(nil, ad, buf[:0]) }); n > 0 {
			t.Errorf("%s: %v allocations", c.data, n)
		}
	}
}

// FuzzRead: no advertisement makes a decoder panic, or says more than it may.
func FuzzRead(f *testing.F) {
	for _, c := range recorded {
		f.Add(c.id, unhex(f, spaceless(c.data)), c.key != "")
	}
	key, _ := aes.NewCipher(make([]byte, 16))
	from, _ := parseAddress(someone)
	f.Fuzz(func(t *testing.T, id uint16, data []byte, locked bool) {
		ad := &advert{from: from, service: []block{{id, data}}, maker: []block{{id, data}}}
		for _, of := range families {
			k := cipher.Block(nil)
			if locked {
				k = key
			}
			all, _, _ := of.read(k, ad, nil)
			if len(all) > maxSaid {
				t.Errorf("%d values", len(all))
			}
			for _, s := range all {
				if !s.value.Finite() || s.name == "" || s.nth < 1 {
					t.Errorf("%+v", s)
				}
			}
		}
	})
}
