package modbus

import (
	"fmt"

	"agentsite/device"
	"agentsite/device/driver"
)

// moduleMaps are those of relay boards and converters. The safe values of outputs are their owner's to say: a
// map has only the places, which outputs use.
func moduleMaps() []knownMap {
	return []knownMap{
		{
			name: "waveshare-relay-8", model: "Waveshare Modbus RTU Relay with 8 channels, and other boards with coils 0 to 7: use relay1 to relay8",
			source: "Waveshare Modbus RTU Relay wiki, development protocol V2, functions 01 and 05",
			points: places("relay", at{coils, 0}, place),
		},
		{
			name: "waveshare-io-8", model: "Waveshare Modbus RTU IO 8CH: di1 to di8, and use do1 to do8",
			source: "Waveshare Modbus RTU IO 8CH wiki, development protocol, functions 01, 02 and 05",
			points: append(places("do", at{coils, 0}, place), places("di", at{discretes, 0}, func(name string, a at) point {
				p := point{at: a, bit: -1}
				p.Point = driver.InputPoint{State: true}.Point(name)
				return p
			})...),
		},
		{
			name: "waveshare-analog-in-8", model: "Waveshare Modbus RTU Analog Input 8CH in a current mode, 0 to 20 or 4 to 20 mA: ai1 to ai8",
			also:   "4-20ma",
			source: "Waveshare Modbus RTU Analog Input 8CH wiki, development protocol, function 04",
			points: places("ai", at{inputs, 0}, func(name string, a at) point { return number(name, a, "uint16", "mA", 0, 25, 0.001) }),
		},
		{
			name: "waveshare-analog-out-8", model: "Waveshare Modbus RTU Analog Output 8CH, 0 to 20 mA: use ao1 to ao8",
			source: "Waveshare Modbus RTU Analog Output 8CH wiki, development protocol, functions 03 and 06",
			points: places("ao", at{holdings, 0}, func(name string, a at) point {
				p := number(name, a, "uint16", "mA", 0, 20, 0.001)
				p.output = true
				return p
			}),
		},
	}
}

// places are eight neighbouring places.
func places(name string, first at, make func(name string, a at) point) []point {
	var all []point
	for i := range uint16(8) {
		all = append(all, make(fmt.Sprintf("%s%d", name, i+1), at{first.table, first.address + i}))
	}
	return all
}

// place is an entry for a switch.
func place(name string, a at) point {
	return point{Point: device.Point{Name: name, Kind: device.KindSwitch}, at: a, bit: -1, output: true}
}
