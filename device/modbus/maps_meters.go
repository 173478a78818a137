package modbus

import "slices"

// The widest ranges of meters: beyond them a value is a disturbance.
const (
	maxVolts = 500
	maxAmps  = 6000
	maxWatts = 4e6
	maxKWh   = 1e8
)

// meterMaps are those of electricity meters.
func meterMaps() []knownMap {
	return []knownMap{
		{
			name:   "eastron-sdm120",
			model:  "Eastron SDM120 or SDM230, one phase",
			also:   "sdm120 sdm230",
			source: "Eastron SDM230-LoRa Protocol V1.0 of 2018-06; mbmd sdm120.go, sdm230.go",
			block:  60, points: []point{
				eastron("voltage", 0, "V", 0, maxVolts), eastron("current", 6, "A", -maxAmps, maxAmps),
				eastron("power", 12, "W", -maxWatts, maxWatts), eastron("power_factor", 30, "", -1, 1),
				eastron("frequency", 70, "Hz", 0, 100),
				eastron("energy_import", 72, "kW.h", 0, maxKWh), eastron("energy_export", 74, "kW.h", 0, maxKWh),
			},
		},
		{
			name:   "eastron-sdm630",
			model:  "Eastron SDM630, three phases",
			also:   "sdm630",
			source: "Eastron SDM72D-M User Manual V1.1 page 13 and V1.5 page 14, which share them; mbmd sdm.go",
			block:  60, points: slices.Concat(
				eachPhase(eastron("voltage", 0, "V", 0, maxVolts), 2),
				eachPhase(eastron("current", 6, "A", -maxAmps, maxAmps), 2),
				eachPhase(eastron("power", 12, "W", -maxWatts, maxWatts), 2),
				[]point{
					eastron("power", 52, "W", -maxWatts, maxWatts), eastron("frequency", 70, "Hz", 0, 100),
					eastron("energy_import", 72, "kW.h", 0, maxKWh), eastron("energy_export", 74, "kW.h", 0, maxKWh),
				}),
		},
		{
			name:   "eastron-sdm72",
			model:  "Eastron SDM72D-M, three phases",
			also:   "sdm72 sdm72d",
			source: "Eastron SDM72D-M User Manual V1.5 page 14; mbmd sdm72.go",
			points: []point{
				eastron("power", 52, "W", -maxWatts, maxWatts),
				eastron("energy_import", 72, "kW.h", 0, maxKWh), eastron("energy_export", 74, "kW.h", 0, maxKWh),
				eastron("energy", 342, "kW.h", 0, maxKWh),
			},
		},
		{
			name:   "gavazzi-em340",
			model:  "Carlo Gavazzi EM330, EM340, ET330, ET340; EM24 with Ethernet (E1), not with RS-485",
			also:   "em330 em340 et330 et340 em24-e1",
			source: "mbmd carlogavazzi-ex3x0.go, carlogavazzi-em24_e1.go; star.ke.st, EM330/EM340",
			block:  11, points: slices.Concat(
				eachPhase(gavazzi("voltage", 0x00, "V", 0, maxVolts, 0.1), 2),
				eachPhase(gavazzi("current", 0x0C, "A", -maxAmps, maxAmps, 0.001), 2),
				eachPhase(gavazzi("power", 0x12, "W", -maxWatts, maxWatts, 0.1), 2),
				[]point{
					gavazzi("power", 0x28, "W", -maxWatts, maxWatts, 0.1),
					number("frequency", at{inputs, 0x33}, "uint16", "Hz", 0, 100, 0.1),
					gavazzi("energy_import", 0x34, "kW.h", 0, maxKWh, 0.1),
					gavazzi("energy_export", 0x4E, "kW.h", 0, maxKWh, 0.1),
				}),
		},
		{
			name:   "abb-b23",
			model:  "ABB B23, B24, A43 or A44, three phases",
			also:   "abb-b23 abb-b24 abb-a43 abb-a44",
			source: "ABB A43/A44 User Manual 2CMC48001M0201 rev. C pages 108 and 170; mbmd abb.go",
			points: slices.Concat(
				eachPhase(abb("voltage", 0x5B00, "uint32", "V", maxVolts, 0.1), 2),
				eachPhase(abb("current", 0x5B0C, "uint32", "A", maxAmps, 0.01), 2),
				[]point{abbPower("power", 0x5B14)},
				eachPhase(abbPower("power", 0x5B16), 2),
				[]point{
					abb("frequency", 0x5B2C, "uint16", "Hz", 100, 0.01),
					abb("energy_import", 0x5000, "uint64", "kW.h", maxKWh, 0.01),
					abb("energy_export", 0x5004, "uint64", "kW.h", maxKWh, 0.01),
				}),
		},
		{
			name:   "janitza-umg96",
			model:  "Janitza UMG 96-PA, 104 or B23",
			also:   "umg96 umg96-pa umg104 janitza-b23",
			source: "Janitza UMG 96-PA User Manual page 57; AGG Software, UMG104; mbmd janitza.go; cFos, UMG 96-PA",
			points: slices.Concat(
				eachPhase(number("voltage", at{holdings, 19000}, "float32", "V", 0, 1000, 1), 2),
				eachPhase(number("current", at{holdings, 19012}, "float32", "A", -maxAmps, maxAmps, 1), 2),
				eachPhase(number("power", at{holdings, 19020}, "float32", "W", -maxWatts, maxWatts, 1), 2),
				[]point{
					number("power", at{holdings, 19026}, "float32", "W", -maxWatts, maxWatts, 1),
					number("frequency", at{holdings, 19050}, "float32", "Hz", 0, 100, 1),
					number("energy_import", at{holdings, 19068}, "float32", "kW.h", 0, maxKWh, 0.001),
					number("energy_export", at{holdings, 19076}, "float32", "kW.h", 0, maxKWh, 0.001),
				}),
		},
	}
}

func eastron(name string, address uint16, unit string, low, high float64) point {
	return number(name, at{inputs, address}, "float32", unit, low, high, 1)
}

// gavazzi is a number whose low word comes first.
func gavazzi(name string, address uint16, unit string, low, high, scale float64) point {
	return number(name, at{inputs, address}, "int32", unit, low, high, scale).order("CDAB")
}

// abb is an unsigned number, which is not known while all its bits are set.
func abb(name string, address uint16, kind, unit string, high, scale float64) point {
	p := number(name, at{holdings, address}, kind, unit, 0, high, scale)
	return p.unless(^uint64(0) >> (64 - 16*p.words()))
}

func abbPower(name string, address uint16) point {
	return number(name, at{holdings, address}, "int32", "W", -maxWatts, maxWatts, 0.01).unless(0x7FFF_FFFF)
}
