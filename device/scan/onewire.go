package scan

import (
	"fmt"
	"strings"

	"agentsite/device/board"

	"periph.io/x/devices/v3/ds248x"
)

// thermometers returns the keys of the DS18B20 on the 1-Wire bus of a DS2482. A single one
// needs no further keys.
func thermometers(c chip) (keys string, ok bool) {
	bridge, err := ds248x.New(board.Fixed(c.conn, c.addr), 0x18, &ds248x.DefaultOpts)
	if err != nil {
		return "", false
	}
	found, err := bridge.Search(false)
	if err != nil {
		return "", false
	}
	var sensors []string
	for _, a := range found {
		if family := byte(a); family == 0x28 {
			sensors = append(sensors, fmt.Sprintf("{ name: temperature-%d, id: %02x-%012x }", len(sensors)+1, family, uint64(a)<<8>>16))
		}
	}
	if len(sensors) > 1 {
		keys = ", sensors: [" + strings.Join(sensors, ", ") + "]"
	}
	return keys, len(sensors) > 0
}
