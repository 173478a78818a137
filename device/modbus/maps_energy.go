package modbus

import "slices"

// energyMaps are those of inverters, of what collects their values, and of pumps.
func energyMaps() []knownMap {
	return []knownMap{
		{
			name:   "sunspec-inverter",
			model:  "inverter with SunSpec model 101, 102 or 103",
			hint:   "at 40069: SolarEdge, Fronius with int+SF, others",
			also:   "solaredge fronius",
			source: "sunspec/models of 2026-04-22, models 1 and 101 to 103; AGG Software, Fronius (Common), for 40069",
			gap:    8,
			points: slices.Concat(
				eachPhase(number("voltage", sun(10), "uint16", "V", 0, 1000, 1).unless(0xFFFF).times(sun(13)), 1),
				[]point{
					number("current", sun(2), "uint16", "A", 0, maxAmps, 1).unless(0xFFFF).times(sun(6)),
					number("power", sun(14), "int16", "W", -maxWatts, maxWatts, 1).unless(0x8000).times(sun(15)),
					number("frequency", sun(16), "uint16", "Hz", 0, 100, 1).unless(0xFFFF).times(sun(17)),
					number("energy", sun(24), "uint32", "kW.h", 0, maxKWh, 0.001).times(sun(26)),
					number("dc_power", sun(31), "int16", "W", -maxWatts, maxWatts, 1).unless(0x8000).times(sun(32)),
					state("state", sun(38), "unknown", "off", "sleeping", "starting", "producing",
						"throttled", "shutting_down", "fault", "standby").unless(0),
				}),
			ids: []idCheck{
				{at{holdings, 40000}, Format{Type: "uint32"}, []uint64{0x5375_6E53}}, // SunS
				{sun(0), Format{}, []uint64{101, 102, 103}},
			},
		},
		{
			name:   "huawei-sun2000",
			model:  "Huawei SUN2000 inverter",
			also:   "sun2000",
			source: "huawei-solar-lib of 2025-10-03, registers.py; evcc huawei-sun2000-inverter.yaml",
			points: []point{
				number("dc_power", at{holdings, 32064}, "int32", "W", -maxWatts, maxWatts, 1).unless(0x7FFF_FFFF),
				number("power", at{holdings, 32080}, "int32", "W", -maxWatts, maxWatts, 1).unless(0x7FFF_FFFF),
				number("frequency", at{holdings, 32085}, "uint16", "Hz", 0, 100, 0.01).unless(0xFFFF),
				number("temperature", at{holdings, 32087}, "int16", "Cel", -60, 150, 0.1).unless(0x7FFF),
				number("energy", at{holdings, 32106}, "uint32", "kW.h", 0, maxKWh, 0.01).unless(0xFFFF_FFFF),
				number("energy_today", at{holdings, 32114}, "uint32", "kW.h", 0, 1e5, 0.01).unless(0xFFFF_FFFF),
			},
		},
		{
			name:   "growatt",
			model:  "Growatt MAX, MID, MAC, MIX, SPH or MIC",
			hint:   "by the protocol of 2020; MIN TL-X begins at 3000, and the protocol V3 has other numbers in these registers",
			also:   "growatt",
			source: "Growatt Modbus RTU Protocol V1.20 of 2020-04-28 page 3; growatt_input_0.py after V1.24; evcc, Growatt",
			points: []point{
				number("dc_power", at{inputs, 1}, "uint32", "W", 0, maxWatts, 0.1),
				number("power", at{inputs, 35}, "uint32", "W", 0, maxWatts, 0.1),
				number("frequency", at{inputs, 37}, "uint16", "Hz", 0, 100, 0.01),
				number("voltage", at{inputs, 38}, "uint16", "V", 0, 1000, 0.1),
				number("energy_today", at{inputs, 53}, "uint32", "kW.h", 0, 1e5, 0.1),
				number("energy", at{inputs, 55}, "uint32", "kW.h", 0, maxKWh, 0.1),
			},
		},
		{
			name:   "victron-gx",
			model:  "Victron GX, the whole system",
			hint:   "write unit_id: 100; it says 0 for what the system does not have",
			also:   "victron cerbo-gx venus-gx",
			source: "victronenergy/dbus_modbustcp v1.0.101, attributes.csv, mappings.cpp",
			points: slices.Concat(
				// Above is the value of a number below 0.
				eachPhase(number("consumption", at{holdings, 817}, "uint16", "W", 0, 32767, 1), 1),
				eachPhase(number("grid", at{holdings, 820}, "int16", "W", -32767, 32767, 1), 1),
				[]point{
					number("battery_voltage", at{holdings, 840}, "uint16", "V", 0, 1000, 0.1).unless(0),
					number("battery_current", at{holdings, 841}, "int16", "A", -3276, 3276, 0.1),
					number("battery_power", at{holdings, 842}, "int16", "W", -32767, 32767, 1),
					number("battery_charge", at{holdings, 843}, "uint16", "%", 0, 100, 1),
					state("battery_state", at{holdings, 844}, "idle", "charging", "discharging"),
				}),
		},
		{
			name:  "grundfos-pump",
			model: "Grundfos pump with CIM 200 or CIM 500, such as MAGNA3, TPE and CRE (not a booster)",
			also:  "grundfos magna3 cim200 cim500",
			source: "programs for CIM 500 and MAGNA3, of Homebridge, Home Assistant and in Ruby, which agree; Grundfos's " +
				"manuals of CIU 200 page 28 and CIU 501 page 39",
			gap: 10,
			points: []point{
				grundfos("head", 300, "bar", 0, 60, 0.001),
				grundfos("flow", 301, "m3/h", 0, 6000, 0.1),
				grundfos("speed", 303, "/min", 0, 20000, 1),
				grundfos("frequency", 304, "Hz", 0, 1000, 0.1),
				grundfos("current", 308, "A", 0, maxAmps, 0.1),
				number("power", at{inputs, 311}, "uint32", "W", 0, 60000, 1).unless(0xFFFF_FFFF),
				grundfos("liquid_temperature", 321, "Cel", -50, 150, 0.01).plus(-273.15),
				number("energy", at{inputs, 331}, "uint32", "kW.h", 0, maxKWh, 1).unless(0xFFFF_FFFF),
			},
		},
		{
			name:   "imp-nmt",
			model:  "IMP Pumps NMT with an NMTC module",
			hint:   "as delivered it has 19200 baud, parity even and unit_id: 245",
			also:   "nmtc",
			source: "IMP Pumps NMTC module Owner manual pages 33, 34 and 38",
			points: []point{
				number("head", at{inputs, 300}, "uint16", "m", 0, 200, 0.01),
				number("flow", at{inputs, 301}, "uint16", "m3/h", 0, 6000, 0.1),
				number("speed", at{inputs, 303}, "uint16", "/min", 0, 20000, 1),
				number("frequency", at{inputs, 304}, "uint16", "Hz", 0, 1000, 0.1),
				number("power", at{inputs, 311}, "uint32", "W", 0, 60000, 1),
				number("liquid_temperature", at{inputs, 321}, "int16", "Cel", -55, 160, 0.01),
			},
		},
	}
}

// sun is a place of SunSpec's inverter model, counted from its number.
func sun(offset uint16) at { return at{holdings, 40069 + offset} }

// grundfos is a number of one register.
func grundfos(name string, address uint16, unit string, low, high, scale float64) point {
	return number(name, at{inputs, address}, "uint16", unit, low, high, scale).unless(0xFFFF)
}
