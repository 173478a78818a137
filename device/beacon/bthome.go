package beacon

import (
	"crypto/cipher"
	"encoding/binary"

	"agentsite/device"
)

// BTHome v2 is service data of this UUID: https://bthome.io/format, https://bthome.io/encryption.
const bthomeService = 0xFCD2

// The bits of its first byte, and the version in the highest three.
const (
	bthomeEncrypted = 1 << 0
	bthomeAddress   = 1 << 1
	bthomeSleepy    = 1 << 2
	bthomeVersion   = 2
)

// maxSaid limits the values of one advertisement, which has room for fewer.
const maxSaid = 64

// readBTHome appends what ad says to all. With a key only encrypted advertisements count.
func readBTHome(key cipher.Block, ad *advert, all []said) ([]said, note, error) {
	data := find(ad.service, bthomeService)
	n := note{packet: -1}
	if len(data) == 0 {
		return all, n, errOther
	}
	info, rest := data[0], data[1:]
	n.encrypted, n.sleepy = info&bthomeEncrypted != 0, info&bthomeSleepy != 0
	from := ad.from
	switch {
	case info>>5 != bthomeVersion:
		return all, n, device.Faultf(device.Invalid,
			"it speaks version %d of BTHome; only version %d is supported, so update its firmware", info>>5, bthomeVersion)
	case info&bthomeAddress != 0:
		if len(rest) < len(from) {
			return all, n, errShort
		}
		if address(rest[:len(from)]) != from.reversed() {
			return all, n, errOther
		}
		rest = rest[len(from):]
	}
	switch {
	case n.encrypted && key == nil:
		return all, n, errLocked
	case !n.encrypted && key != nil:
		return all, n, errPlain
	}
	if n.encrypted {
		if len(rest) < 4+ccmTag {
			return all, n, errShort
		}
		sealed, counter := rest[:len(rest)-4-ccmTag], rest[len(rest)-4-ccmTag:len(rest)-ccmTag]
		var nonce [ccmNonce]byte
		copy(nonce[:], from[:])
		nonce[6], nonce[7], nonce[8] = bthomeService&0xff, bthomeService>>8, info
		copy(nonce[9:], counter)
		n.counter = binary.LittleEndian.Uint32(counter)
		var whole, plain [maxBlock]byte
		size := copy(whole[:], sealed)
		size += copy(whole[size:], rest[len(rest)-ccmTag:])
		if !openCCM(key, &nonce, plain[:], whole[:size]) {
			return all, n, errKey
		}
		rest = plain[:len(sealed)]
	}
	all, packet, err := readObjects(rest, all)
	n.packet = packet
	return all, n, err
}

// readObjects appends the values of a BTHome payload to all. It ends at an unknown object, because its length is
// unknown; newer objects have higher numbers and come last.
func readObjects(data []byte, all []said) (_ []said, packet int, err error) {
	packet = -1
	var nth [256]uint8 // by the first object of a name
	for len(data) > 0 {
		id, o := data[0], &objects[data[0]]
		size, data2 := int(o.size), data[1:]
		if o.size == variable && len(data2) > 0 {
			size, data2 = int(data2[0]), data2[1:]
		}
		switch {
		case o.size == 0:
			return all, packet, nil
		case len(data2) < size || o.size == variable && len(data) < 2:
			return all, packet, errShort
		case id == 0:
			packet = int(data2[0])
		case o.name != "" && len(all) < maxSaid:
			first := 0
			for objects[first].name != o.name {
				first++
			}
			nth[first]++
			all = append(all, said{o.name, int(nth[first]), o.value(data2[:size]), o.event})
		}
		data = data2[size:]
	}
	return all, packet, nil
}
