package esphome

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of messages in api.proto.
const (
	helloRequest, helloResponse           = 1, 2
	loginRequest, loginResponse           = 3, 4 // of ESPHome before 2026.1; later ones ignore it
	disconnectRequest, disconnectResponse = 5, 6
	pingRequest, pingResponse             = 7, 8
	deviceInfoRequest, deviceInfoResponse = 9, 10
	listRequest, listDone                 = 11, 19
	statesRequest                         = 20
)

// apiMajor and apiMinor are the version of the protocol that this package speaks.
const apiMajor, apiMinor = 1, 14

// kind is a kind of entity. The other fields are numbers of messages and of their fields; 0 for none.
type kind struct {
	name                         string
	listed, state, command       uint16
	unit, device                 protowire.Number // in the list
	min, max, step               protowire.Number
	position, modes, speeds      protowire.Number
	on, number, text, missing    protowire.Number // in the state
	moving                       protowire.Number
	stateDevice                  protowire.Number
	setHas, setOn                protowire.Number // in the command
	setHasNumber, set, setDevice protowire.Number
}

// kinds are the kinds of entities that can be points.
var kinds = []kind{
	{name: "binary_sensor", listed: 12, state: 21, device: 10, on: 2, missing: 3, stateDevice: 4},
	{name: "cover", listed: 13, state: 22, command: 30, device: 13, position: 6, number: 3, moving: 5,
		stateDevice: 6, setHasNumber: 4, set: 5, setDevice: 9},
	{name: "fan", listed: 14, state: 23, command: 31, device: 13, speeds: 8, on: 2, number: 6, stateDevice: 8,
		setHas: 2, setOn: 3, setHasNumber: 10, set: 11, setDevice: 14},
	{name: "light", listed: 15, state: 24, command: 32, device: 16, modes: 12, on: 2, number: 3, stateDevice: 14,
		setHas: 2, setOn: 3, setHasNumber: 4, set: 5, setDevice: 28},
	{name: "sensor", listed: 16, state: 25, unit: 6, device: 14, number: 2, missing: 3, stateDevice: 4},
	{name: "switch", listed: 17, state: 26, command: 33, device: 10, on: 2, stateDevice: 3,
		setOn: 2, setDevice: 3},
	{name: "text_sensor", listed: 18, state: 27, device: 9, text: 2, missing: 3, stateDevice: 4},
	{name: "number", listed: 49, state: 50, command: 51, unit: 11, device: 14, min: 6, max: 7, step: 8, number: 2,
		missing: 3, stateDevice: 4, set: 2, setDevice: 3},
	{name: "select", listed: 52, state: 53, device: 9, text: 2, missing: 3, stateDevice: 4},
	{name: "valve", listed: 109, state: 110, command: 111, device: 12, position: 10, number: 2, moving: 3,
		stateDevice: 4, setHasNumber: 2, set: 3, setDevice: 5},
}

func kindOf(is func(k *kind) bool) *kind {
	for i := range kinds {
		if is(&kinds[i]) {
			return &kinds[i]
		}
	}
	return nil
}

// proportional reports whether its number is shown in percent.
func (k *kind) proportional() bool {
	return k.position != 0 || k.modes != 0 || k.speeds != 0
}

// opens reports whether it travels from one end to the other.
func (k *kind) opens() bool { return k.position != 0 }

// entity is an entity in a node's list.
type entity struct {
	kind           *kind
	id             string // its object ID
	key, device    uint32
	unit           string
	min, max, step float64
	levels         bool // it has more than on and off
	speeds         int  // of a fan
}

// address returns how the configuration names it.
func (e *entity) address() string { return e.kind.name + "/" + e.id }

// state is the last state of an entity as its node sent it.
type state struct {
	on      bool
	number  float64
	text    string
	moving  operation
	missing bool
}

// operation is the operation of a cover or a valve.
type operation uint8

const (
	idle operation = iota
	opening
	closing
)

// field is a field of a message.
type field struct {
	number protowire.Number
	n      uint64 // of a number
	bytes  []byte
}

func (f field) bool() bool     { return f.n != 0 }
func (f field) float() float64 { return shorten(math.Float32frombits(uint32(f.n))) }

// shorten returns the shortest decimal number that is f: 21.3, not 21.299999.
func shorten(f float32) float64 {
	n, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return math.NaN()
	}
	return n
}

// eachField calls yield for the fields of a message. It reports whether it was one.
func eachField(body []byte, yield func(f field)) bool {
	for len(body) > 0 {
		number, typ, n := protowire.ConsumeTag(body)
		if n < 0 {
			return false
		}
		body = body[n:]
		f := field{number: number}
		switch typ {
		case protowire.VarintType:
			f.n, n = protowire.ConsumeVarint(body)
		case protowire.Fixed32Type:
			var fixed uint32
			fixed, n = protowire.ConsumeFixed32(body)
			f.n = uint64(fixed)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(body)
		case protowire.Fixed64Type:
			f.n, n = protowire.ConsumeFixed64(body)
		default: // groups, which proto3 does not have
			return false
		}
		if n < 0 {
			return false
		}
		body = body[n:]
		yield(f)
	}
	return true
}

const (
	maxID   = 120 // as in ESPHome
	maxUnit = 24
	maxText = 256
)

// decodeEntity decodes an entry of a node's list.
func decodeEntity(k *kind, body []byte) (e entity, ok bool) {
	e.kind = k
	var id, name []byte
	ok = eachField(body, func(f field) {
		switch f.number {
		case 1:
			id = f.bytes
		case 2:
			e.key = uint32(f.n)
		case 3:
			name = f.bytes
		case k.unit:
			e.unit = clip(f.bytes, maxUnit)
		case k.device:
			e.device = uint32(f.n)
		case k.min:
			e.min = f.float()
		case k.max:
			e.max = f.float()
		case k.step:
			e.step = f.float()
		case k.position:
			e.levels = f.bool()
		case k.speeds:
			e.speeds = int(min(f.n, 1000))
			e.levels = e.speeds > 1
		case k.modes:
			e.levels = e.levels || dims(f)
		}
	})
	if len(id) == 0 {
		id = name
	}
	e.id = objectID(id)
	return e, ok
}

// dims reports whether modes of a light, packed or one, contain one with a brightness.
func dims(modes field) bool {
	const onOff = 1 // COLOR_MODE_ON_OFF; any higher one has a brightness
	for packed := modes.bytes; len(packed) > 0; {
		mode, n := protowire.ConsumeVarint(packed)
		if n < 0 {
			return false
		}
		if mode > onOff {
			return true
		}
		packed = packed[n:]
	}
	return modes.n > onOff
}

// objectID makes the object ID of a name, as EntityBase::write_object_id_to does: ESPHome since 2026.7 sends the
// name only.
func objectID(name []byte) string {
	id := make([]byte, 0, maxID)
	for _, b := range name[:min(len(name), maxID)] {
		switch {
		case b >= 'A' && b <= 'Z':
			b += 'a' - 'A'
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9', b == '-', b == '_':
		default:
			b = '_'
		}
		id = append(id, b)
	}
	return string(id)
}

func clip(text []byte, most int) string { return string(text[:min(len(text), most)]) }

// decodeState decodes a state and the key and sub-device of its entity. old is its text before, which is
// used again where it is the same.
func decodeState(k *kind, body []byte, old func(key, device uint32) string) (key, device uint32, s state, ok bool) {
	var text []byte
	ok = eachField(body, func(f field) {
		switch f.number {
		case 1:
			key = uint32(f.n)
		case k.on:
			s.on = f.bool()
		case k.number:
			s.number = f.float()
			if k.speeds != 0 {
				s.number = float64(min(f.n, 1000))
			}
		case k.text:
			text = f.bytes
		case k.missing:
			s.missing = f.bool()
		case k.moving:
			s.moving = operation(min(f.n, uint64(closing)+1))
		case k.stateDevice:
			device = uint32(f.n)
		}
	})
	if len(text) > maxText {
		text = text[:maxText]
	}
	if before := old(key, device); before == string(text) {
		s.text = before
	} else {
		s.text = string(text)
	}
	return key, device, s, ok
}

// command returns the message that brings an entity to a state: on or off, and its number where it has one.
func (e *entity) command(on bool, number float64, withNumber bool) message {
	k := e.kind
	b := appendFixed(nil, 1, e.key)
	if k.setHas != 0 {
		b = appendBool(b, k.setHas, true)
	}
	if k.setOn != 0 {
		b = appendBool(b, k.setOn, on)
	}
	if withNumber {
		if k.setHasNumber != 0 {
			b = appendBool(b, k.setHasNumber, true)
		}
		if k.speeds != 0 {
			b = protowire.AppendVarint(protowire.AppendTag(b, k.set, protowire.VarintType), uint64(number))
		} else {
			b = appendFixed(b, k.set, math.Float32bits(float32(number)))
		}
	}
	if k.modes != 0 { // at once, without a transition
		b = appendBool(b, 14, true)
	}
	if e.device != 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, k.setDevice, protowire.VarintType), uint64(e.device))
	}
	return message{k.command, b}
}

func appendFixed(b []byte, n protowire.Number, v uint32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(b, n, protowire.Fixed32Type), v)
}

func appendBool(b []byte, n protowire.Number, v bool) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), protowire.EncodeBool(v))
}

func hello() message {
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "agentsite")
	b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), apiMajor)
	return message{helloRequest, protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), apiMinor)}
}
