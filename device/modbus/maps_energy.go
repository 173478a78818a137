package modbus

import "slices"

// energyMaps are those of inverters and of what collects their values.
func energyMaps() []knownMap {
	return []knownMap{
		{
			name:   "sunspec-inverter",
			model:  "inverter with SunSpec model 101, 102 or 103 at 40069: SolarEdge, Fronius with int+SF, others",
			also:   "solaredge fronius",
			source: "SunSpec Information Model, models 1 and 101 to 103; SolarEdge SunSpec Logging Technical Note 2.7",
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
						"throttled", "shutting_down", "fault", "standby"),
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
			source: "Huawei Solar Inverter Modbus Interface Definitions, issue 04, registers 32064 to 32115",
			points: []point{
				number("dc_power", at{holdings, 32064}, "int32", "W", -maxWatts, maxWatts, 1),
				number("power", at{holdings, 32080}, "int32", "W", -maxWatts, maxWatts, 1),
				number("frequency", at{holdings, 32085}, "uint16", "Hz", 0, 100, 0.01),
				number("temperature", at{holdings, 32087}, "int16", "Cel", -60, 150, 0.1),
				number("energy", at{holdings, 32106}, "uint32", "kW.h", 0, maxKWh, 0.01),
				number("energy_today", at{holdings, 32114}, "uint32", "kW.h", 0, 1e5, 0.01),
			},
		},
		{
			name:   "growatt",
			model:  "Growatt inverter with registers 0 to 124 (not TL-X, which begins at 3000)",
			also:   "growatt",
			source: "Growatt Inverter Modbus RTU Protocol V1.20 of 2020-04-28, input registers",
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
			model:  "Victron GX, the whole system: write unit_id: 100",
			also:   "victron cerbo-gx venus-gx",
			source: "Victron CCGX Modbus TCP register list 3.00, service com.victronenergy.system",
			points: slices.Concat(
				eachPhase(number("consumption", at{holdings, 817}, "uint16", "W", 0, 65534, 1), 1),
				eachPhase(number("grid", at{holdings, 820}, "int16", "W", -32767, 32767, 1), 1),
				[]point{
					number("battery_voltage", at{holdings, 840}, "uint16", "V", 0, 1000, 0.1),
					number("battery_current", at{holdings, 841}, "int16", "A", -3276, 3276, 0.1),
					number("battery_power", at{holdings, 842}, "int16", "W", -32767, 32767, 1),
					number("battery_charge", at{holdings, 843}, "uint16", "%", 0, 100, 1),
					state("battery_state", at{holdings, 844}, "idle", "charging", "discharging"),
				}),
		},
	}
}

// sun is a place of SunSpec's inverter model, counted from its number.
func sun(offset uint16) at { return at{holdings, 40069 + offset} }
