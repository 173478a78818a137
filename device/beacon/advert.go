package beacon

import (
	"encoding/hex"
	"strings"

	"agentsite/device"
)

// address is a Bluetooth device address, its highest byte first, as it is written.
type address [6]byte

// parseAddress reads an address such as A4:C1:38:01:02:03.
func parseAddress(text string) (a address, err error) {
	raw, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	if err != nil || len(raw) != len(a) || len(text) != 17 {
		return a, device.Faultf(device.Invalid,
			"address: %.40q is not a Bluetooth address; write it like A4:C1:38:01:02:03, as agentsite scan shows it", text)
	}
	copy(a[:], raw)
	if a == (address{}) {
		return a, device.Faultf(device.Invalid, "address: no device has %s; write the one that agentsite scan shows", text)
	}
	return a, nil
}

func (a address) String() string {
	text := strings.ToUpper(hex.EncodeToString(a[:]))
	return text[0:2] + ":" + text[2:4] + ":" + text[4:6] + ":" + text[6:8] + ":" + text[8:10] + ":" + text[10:12]
}

// reversed returns the address as formats hold it that begin with the lowest byte.
func (a address) reversed() address { return address{a[5], a[4], a[3], a[2], a[1], a[0]} }

// advert is an advertisement as the radio reports it.
type advert struct {
	from    address
	service []block // service data, by 16-bit UUID
	maker   []block // manufacturer specific data, by company
}

// block is data with the number that says whose it is.
type block struct {
	id   uint16
	data []byte
}

// maxBlock limits what is read of one block: an extended advertisement has at most 254 bytes.
const maxBlock = 254

// find returns the data with the number id, nil for none.
func find(blocks []block, id uint16) []byte {
	for _, b := range blocks {
		if b.id == id && len(b.data) <= maxBlock {
			return b.data
		}
	}
	return nil
}

// said is one value of an advertisement. A point that appears more than once is told apart by nth, from 1.
type said struct {
	name  string
	nth   int
	value device.Value // none where the device says that it is not available
	event bool
}

// note identifies an advertisement, beside its values.
type note struct {
	counter   uint32 // of an encrypted one; it grows
	encrypted bool
	packet    int // its number modulo 256, which a repeated one has too; -1 for none
	sleepy    bool
}
