package modbus

import (
	"agentsite/device"
	"agentsite/device/driver"
)

// moduleMaps are those of relay boards and converters. The safe values of outputs are their owner's to say: a
// map has only the places, which outputs use.
func moduleMaps() []knownMap {
	current := number("ao", at{holdings, 0}, "uint16", "mA", 0, 20, 0.001)
	current.output = true
	var modes []idCheck // of each channel: 2 and 3 are currents, and others are in millivolts
	for i := range uint16(8) {
		modes = append(modes, idCheck{at{holdings, 0x1000 + i}, Format{}, []uint64{2, 3}})
	}
	contact := point{at: at{discretes, 0}, bit: -1}
	contact.Point = driver.InputPoint{State: true}.Point("di")
	return []knownMap{
		{
			name:   "waveshare-relay-8",
			model:  "Waveshare Modbus RTU Relay with 8 channels",
			hint:   "and others with coils 0 to 7; use relay1 to relay8",
			source: "Waveshare's wiki, Modbus RTU Relay (V2 is plain Modbus); PouCon, WaveshareDigitalIO",
			points: each("", coil("relay"), 8, 1),
		},
		{
			name:   "waveshare-io-8",
			model:  "Waveshare Modbus RTU IO 8CH",
			hint:   "di1 to di8, and use do1 to do8",
			source: "Waveshare's wiki, Modbus RTU IO 8CH; PouCon, WaveshareDigitalIO",
			points: append(each("", coil("do"), 8, 1), each("", contact, 8, 1)...),
		},
		{
			name:   "waveshare-analog-in-8",
			model:  "Waveshare Modbus RTU Analog Input 8CH, also (B)",
			hint:   "all channels in a current mode, 0 to 20 or 4 to 20 mA; ai1 to ai8",
			also:   "4-20ma",
			source: "Waveshare's wiki, Modbus RTU Analog Input 8CH (modes); WSAnalogInMbRtu; waveshare-modbus-ai",
			points: each("", number("ai", at{inputs, 0}, "uint16", "mA", 0, 25, 0.001), 8, 1),
			ids:    modes,
		},
		{
			name:   "waveshare-analog-out-8",
			model:  "Waveshare Modbus RTU Analog Output 8CH, 0 to 20 mA",
			hint:   "use ao1 to ao8",
			source: "Waveshare's wiki, Modbus RTU Analog Output 8CH, software test",
			points: each("", current, 8, 1),
		},
	}
}

// coil is an entry for a switch.
func coil(name string) point {
	return point{Point: device.Point{Name: name, Kind: device.KindSwitch}, at: at{coils, 0}, bit: -1, output: true}
}
