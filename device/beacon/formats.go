package beacon

import (
	"bytes"
	"crypto/cipher"
	"encoding/binary"
	"math"

	"agentsite/device"
)

// The firmware of pvvx and of atc1441 for Xiaomi's thermometers advertises service data of the Environmental Sensing
// service, in one of two formats without encryption: "Custom format" and "ATC1441 format" of
// https://github.com/pvvx/ATC_MiThermometer.
const (
	environmental = 0x181A
	pvvxSize      = 15
	atc1441Size   = 13
)

var pvvxPoints = []device.Point{
	{Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel", Range: device.Range{Min: -40, Max: 125}},
	{Name: "humidity", Kind: device.KindMeasurement, Unit: "%", Range: device.Range{Max: 100}},
	{Name: "battery", Kind: device.KindMeasurement, Unit: "%", Range: device.Range{Max: 100}, Description: "charge of the battery"},
	{Name: "voltage", Kind: device.KindMeasurement, Unit: "V", Range: device.Range{Max: 6}, Description: "of the battery"},
}

func readPVVX(_ cipher.Block, ad *advert, all []said) ([]said, note, error) {
	data := find(ad.service, environmental)
	n := note{packet: -1}
	little, big := binary.LittleEndian, binary.BigEndian
	switch {
	case len(data) == pvvxSize && address(data[:6]) == ad.from.reversed():
		n.packet = int(data[13])
		return append(all,
			number("temperature", float64(int16(little.Uint16(data[6:])))*0.01),
			number("humidity", float64(little.Uint16(data[8:]))*0.01),
			number("battery", float64(data[12])),
			number("voltage", float64(little.Uint16(data[10:]))*0.001)), n, nil
	case len(data) == atc1441Size && address(data[:6]) == ad.from:
		n.packet = int(data[12])
		return append(all,
			number("temperature", float64(int16(big.Uint16(data[6:])))*0.1),
			number("humidity", float64(data[8])),
			number("battery", float64(data[9])),
			number("voltage", float64(big.Uint16(data[10:]))*0.001)), n, nil
	case len(data) == 11 || len(data) == 8: // the encrypted variants
		return all, n, device.Faultf(device.Invalid, "it is encrypted in a format that this driver does not read; set its "+
			"advertising type to BTHome and write driver: bthome")
	}
	return all, n, errOther
}

func number(name string, n float64) said {
	return said{name: name, nth: 1, value: device.Number(device.Tidy(n))}
}

// Ruuvi's devices advertise manufacturer data in these formats, the highest byte first:
// https://docs.ruuvi.com/communication/bluetooth-advertisements, data formats 5 (RAWv2) and 6.
const (
	ruuviMaker = 0x0499
	ruuviTag   = 5
	ruuviAir   = 6
	gravity    = 9.80665e-3 // of a thousandth, in m/s²
)

var ruuviPoints = map[byte][]device.Point{
	ruuviTag: {
		{Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel", Range: device.Range{Min: -163.835, Max: 163.835}},
		{Name: "humidity", Kind: device.KindMeasurement, Unit: "%", Range: device.Range{Max: 100}},
		{Name: "pressure", Kind: device.KindMeasurement, Unit: "Pa", Range: device.Range{Min: 50000, Max: 115534}},
		{Name: "acceleration_x", Kind: device.KindMeasurement, Unit: "m/s2", Range: device.Range{Min: -322, Max: 322}},
		{Name: "acceleration_y", Kind: device.KindMeasurement, Unit: "m/s2", Range: device.Range{Min: -322, Max: 322}},
		{Name: "acceleration_z", Kind: device.KindMeasurement, Unit: "m/s2", Range: device.Range{Min: -322, Max: 322}},
		{Name: "voltage", Kind: device.KindMeasurement, Unit: "V", Range: device.Range{Min: 1.6, Max: 3.646}, Description: "of the battery"},
		{Name: "movements", Kind: device.KindMeasurement, Range: device.Range{Max: 254}, Description: "counter, which starts again after 254"},
	},
	ruuviAir: {
		{Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel", Range: device.Range{Min: -163.835, Max: 163.835}},
		{Name: "humidity", Kind: device.KindMeasurement, Unit: "%", Range: device.Range{Max: 100}},
		{Name: "pressure", Kind: device.KindMeasurement, Unit: "Pa", Range: device.Range{Min: 50000, Max: 115534}},
		{Name: "pm2_5", Kind: device.KindMeasurement, Unit: "ug/m3", Range: device.Range{Max: 1000}, Description: "particles of up to 2.5 um in the air"},
		{Name: "co2", Kind: device.KindMeasurement, Unit: "[ppm]", Range: device.Range{Max: 40000}},
		{Name: "voc", Kind: device.KindMeasurement, Range: device.Range{Max: 500}, Description: "index of volatile organic compounds; 100 is usual"},
		{Name: "nox", Kind: device.KindMeasurement, Range: device.Range{Max: 500}, Description: "index of nitrogen oxides; 1 is usual"},
		{Name: "illuminance", Kind: device.KindMeasurement, Unit: "lx", Range: device.Range{Max: 65535}},
	},
}

// readRuuvi reads both formats. A number of all ones, or the lowest signed one, is not available.
func readRuuvi(_ cipher.Block, ad *advert, all []said) ([]said, note, error) {
	data := find(ad.maker, ruuviMaker)
	n := note{packet: -1}
	signed := func(at int) float64 {
		raw := int16(binary.BigEndian.Uint16(data[at:]))
		if raw == math.MinInt16 {
			return math.NaN()
		}
		return float64(raw)
	}
	unsigned := func(at int) float64 {
		raw := binary.BigEndian.Uint16(data[at:])
		if raw == math.MaxUint16 {
			return math.NaN()
		}
		return float64(raw)
	}
	upTo := func(raw, none int) float64 {
		if raw == none {
			return math.NaN()
		}
		return float64(raw)
	}
	switch {
	case len(data) == 24 && data[0] == ruuviTag && address(data[18:24]) == ad.from:
		return append(all,
			available("temperature", signed(1)*0.005),
			available("humidity", unsigned(3)*0.0025),
			available("pressure", unsigned(5)+50000),
			available("acceleration_x", signed(7)*gravity),
			available("acceleration_y", signed(9)*gravity),
			available("acceleration_z", signed(11)*gravity),
			available("voltage", upTo(int(binary.BigEndian.Uint16(data[13:])>>5), 2047)*0.001+1.6),
			available("movements", upTo(int(data[15]), 255))), n, nil
	case len(data) == 20 && data[0] == ruuviAir && bytes.Equal(data[17:20], ad.from[3:]):
		flags := int(data[16])
		light := math.NaN()
		if data[13] != 255 {
			light = math.Round((math.Exp(float64(data[13])*math.Log(65536)/254)-1)*100) / 100
		}
		return append(all,
			available("temperature", signed(1)*0.005),
			available("humidity", unsigned(3)*0.0025),
			available("pressure", unsigned(5)+50000),
			available("pm2_5", unsigned(7)*0.1),
			available("co2", unsigned(9)),
			available("voc", upTo(int(data[11])<<1|flags>>6&1, 511)),
			available("nox", upTo(int(data[12])<<1|flags>>7, 511)),
			available("illuminance", light)), n, nil
	}
	return all, n, errOther
}

// available is number, or no value for a NaN.
func available(name string, n float64) said {
	if math.IsNaN(n) {
		return said{name: name, nth: 1}
	}
	return number(name, n)
}
