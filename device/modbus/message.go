package modbus

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// The functions of the Modbus Application Protocol Specification V1.1b3, sections 6.1 to 6.12.
const (
	readCoils     = 1
	readDiscretes = 2
	readHoldings  = 3
	readInputs    = 4
	writeCoil     = 5
	writeHolding  = 6
	diagnostics   = 8
	writeCoils    = 15
	writeHoldings = 16

	isException = 0x80 // added to the function in the answer
)

// maxMessage is the longest message: a function and what belongs to it, without address and checksum.
const maxMessage = 253

// request is a request to a unit. values are those to write: for coils 0 or 1 each.
type request struct {
	function byte
	address  uint16
	count    uint16 // of coils or registers
	values   []uint16
}

func (r request) same(q request) bool {
	return r.function == q.function && r.address == q.address && r.count == q.count && slices.Equal(r.values, q.values)
}

func (r request) reads() bool { return r.function <= readInputs }

// append appends the message of r.
func (r request) append(b []byte) []byte {
	b = append(b, r.function)
	b = binary.BigEndian.AppendUint16(b, r.address)
	switch r.function {
	case writeCoil:
		return binary.BigEndian.AppendUint16(b, r.values[0]*0xFF00)
	case writeHolding, diagnostics:
		return binary.BigEndian.AppendUint16(b, r.values[0])
	}
	b = binary.BigEndian.AppendUint16(b, r.count)
	switch r.function {
	case writeCoils:
		bits := make([]byte, (len(r.values)+7)/8)
		for i, v := range r.values {
			bits[i/8] |= byte(v) << (i % 8)
		}
		b = append(append(b, byte(len(bits))), bits...)
	case writeHoldings:
		b = append(b, byte(2*len(r.values)))
		for _, v := range r.values {
			b = binary.BigEndian.AppendUint16(b, v)
		}
	}
	return b
}

// dataBytes returns how many bytes of data the answer to a read has.
func (r request) dataBytes() int {
	if r.function == readCoils || r.function == readDiscretes {
		return (int(r.count) + 7) / 8
	}
	return 2 * int(r.count)
}

// answerBytes returns how long the answer is that says what was asked.
func (r request) answerBytes() int {
	if r.reads() {
		return 2 + r.dataBytes()
	}
	return 5
}

// strangeError is an answer that does not belong to the request.
type strangeError string

func (e strangeError) Error() string { return string(e) }

// exceptionError is the code with which a unit refuses a request.
type exceptionError byte

// exceptions are the codes of section 7.
var exceptions = map[exceptionError]string{
	1: "it does not have this function", 2: "it does not have this address", 3: "it does not accept this value",
	4: "it failed", 5: "it needs longer", 6: "it is busy", 8: "its memory is damaged",
	10: "the gateway has no way to it", 11: "the gateway got no answer from it",
}

func (e exceptionError) Error() string {
	if says, ok := exceptions[e]; ok {
		return says
	}
	return fmt.Sprintf("it refuses with the code %d", byte(e))
}

// absent reports whether a gateway says that the unit is not there.
func (e exceptionError) absent() bool { return e == 10 || e == 11 }

// parse returns the values of the answer to r, of a message that was received: one for each coil or register.
// A write has none. The error is an exceptionError or a strangeError.
func (r request) parse(message []byte) ([]uint16, error) {
	switch {
	case len(message) < 2:
		return nil, strangeError("an answer is shorter than two bytes")
	case message[0] == r.function|isException:
		if len(message) != 2 {
			return nil, strangeError("a refusal has a wrong length")
		}
		return nil, exceptionError(message[1])
	case message[0] != r.function:
		answers := message[0] &^ isException
		return nil, strangeError(fmt.Sprintf("the answer is to function %d instead of %d", answers, r.function))
	case len(message) != r.answerBytes():
		return nil, strangeError(fmt.Sprintf("the answer has %d bytes instead of %d", len(message), r.answerBytes()))
	}
	if !r.reads() {
		if asked := r.append(nil); !slices.Equal(message, asked[:5]) {
			return nil, strangeError("the answer confirms another write")
		}
		return nil, nil
	}
	data := message[2:]
	if int(message[1]) != len(data) {
		return nil, strangeError("the answer's count of bytes is wrong")
	}
	values := make([]uint16, r.count)
	for i := range values {
		if r.function == readCoils || r.function == readDiscretes {
			values[i] = uint16(data[i/8] >> (i % 8) & 1)
		} else {
			values[i] = binary.BigEndian.Uint16(data[2*i:])
		}
	}
	return values, nil
}
