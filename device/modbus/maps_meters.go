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
			name: "eastron-sdm120", model: "Eastron SDM120 or SDM230, one phase", also: "sdm120 sdm230",
			source: "Eastron SDM230-Modbus User Manual, Modbus Protocol, input registers 30001 to 30343",
			block:  60, points: []point{
				eastron("voltage", 0, "V", 0, maxVolts), eastron("current", 6, "A", -maxAmps, maxAmps),
				eastron("power", 12, "W", -maxWatts, maxWatts), eastron("power_factor", 30, "", -1, 1),
				eastron("frequency", 70, "Hz", 0, 100),
				eastron("energy_import", 72, "kW.h", 0, maxKWh), eastron("energy_export", 74, "kW.h", 0, maxKWh),
			},
		},
		{
			name: "eastron-sdm630", model: "Eastron SDM630, three phases", also: "sdm630",
			source: "Eastron SDM630-Modbus Protocol, input registers 30001 to 30343",
			block:  60, points: slices.Concat(
				eachPhase("voltage", at{inputs, 0}, 2, func(n string, a at) point { return eastron(n, a.address, "V", 0, maxVolts) }),
				eachPhase("current", at{inputs, 6}, 2, func(n string, a at) point { return eastron(n, a.address, "A", -maxAmps, maxAmps) }),
				eachPhase("power", at{inputs, 12}, 2, func(n string, a at) point { return eastron(n, a.address, "W", -maxWatts, maxWatts) }),
				[]point{
					eastron("power", 52, "W", -maxWatts, maxWatts), eastron("frequency", 70, "Hz", 0, 100),
					eastron("energy_import", 72, "kW.h", 0, maxKWh), eastron("energy_export", 74, "kW.h", 0, maxKWh),
				}),
		},
		{
			name: "eastron-sdm72", model: "Eastron SDM72D-M, three phases", also: "sdm72 sdm72d",
			source: "Eastron SDM72D-M User Manual V1.5, part 3, page 14",
			points: []point{
				eastron("power", 52, "W", -maxWatts, maxWatts),
				eastron("energy_import", 72, "kW.h", 0, maxKWh), eastron("energy_export", 74, "kW.h", 0, maxKWh),
				eastron("energy", 342, "kW.h", 0, maxKWh),
			},
		},
		{
			name: "gavazzi-em340", model: "Carlo Gavazzi EM330, EM340, ET330, ET340; EM24 with Ethernet", also: "em330 em340 et330 et340 em24",
			source: "Carlo Gavazzi EM330 EM340 ET330 ET340 Communication Protocol; weights of its table of instantaneous variables",
			block:  11, points: slices.Concat(
				eachPhase("voltage", at{inputs, 0x00}, 2, func(n string, a at) point { return gavazzi(n, a.address, "V", 0, maxVolts, 0.1) }),
				eachPhase("current", at{inputs, 0x0C}, 2, func(n string, a at) point { return gavazzi(n, a.address, "A", -maxAmps, maxAmps, 0.001) }),
				eachPhase("power", at{inputs, 0x12}, 2, func(n string, a at) point { return gavazzi(n, a.address, "W", -maxWatts, maxWatts, 0.1) }),
				[]point{
					gavazzi("power", 0x28, "W", -maxWatts, maxWatts, 0.1),
					number("frequency", at{inputs, 0x33}, "uint16", "Hz", 0, 100, 0.1),
					gavazzi("energy_import", 0x34, "kW.h", 0, maxKWh, 0.1), gavazzi("energy_export", 0x4E, "kW.h", 0, maxKWh, 0.1),
				}),
		},
		{
			name: "abb-b23", model: "ABB B23 or B24, three phases", also: "abb-b23 abb-b24",
			source: "ABB B23/B24 User Manual 2CMC485003M0201, section 9.3, mapping tables",
			points: slices.Concat(
				eachPhase("voltage", at{holdings, 0x5B00}, 2, func(n string, a at) point {
					return number(n, a, "uint32", "V", 0, maxVolts, 0.1).unless(0xFFFF_FFFF)
				}),
				eachPhase("current", at{holdings, 0x5B0C}, 2, func(n string, a at) point {
					return number(n, a, "uint32", "A", 0, maxAmps, 0.01).unless(0xFFFF_FFFF)
				}),
				[]point{abbPower("power", 0x5B14)},
				eachPhase("power", at{holdings, 0x5B16}, 2, func(n string, a at) point { return abbPower(n, a.address) }),
				[]point{
					number("frequency", at{holdings, 0x5B2C}, "uint16", "Hz", 0, 100, 0.01).unless(0xFFFF),
					number("energy_import", at{holdings, 0x5000}, "uint64", "kW.h", 0, maxKWh, 0.01).unless(0xFFFF_FFFF_FFFF_FFFF),
					number("energy_export", at{holdings, 0x5004}, "uint64", "kW.h", 0, maxKWh, 0.01).unless(0xFFFF_FFFF_FFFF_FFFF),
				}),
		},
		{
			name: "janitza-umg96", model: "Janitza UMG 96RM, 96-PA or 96-S2", also: "umg96 umg96rm",
			source: "Janitza UMG 96RM and UMG 96-PA Modbus-address list, frequently required readings, 19000 to 19120",
			points: slices.Concat(
				eachPhase("voltage", at{holdings, 19000}, 2, func(n string, a at) point { return number(n, a, "float32", "V", 0, 1000, 1) }),
				eachPhase("current", at{holdings, 19012}, 2, func(n string, a at) point { return number(n, a, "float32", "A", -maxAmps, maxAmps, 1) }),
				eachPhase("power", at{holdings, 19020}, 2, func(n string, a at) point { return number(n, a, "float32", "W", -maxWatts, maxWatts, 1) }),
				[]point{
					number("power", at{holdings, 19026}, "float32", "W", -maxWatts, maxWatts, 1),
					number("frequency", at{holdings, 19050}, "float32", "Hz", 0, 100, 1),
					number("energy", at{holdings, 19060}, "float32", "kW.h", -maxKWh, maxKWh, 0.001),
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

func abbPower(name string, address uint16) point {
	return number(name, at{holdings, address}, "int32", "W", -maxWatts, maxWatts, 0.01).unless(0x7FFF_FFFF)
}
