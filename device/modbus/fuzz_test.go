package modbus

import (
	"encoding/binary"
	"net"
	"testing"
	"time"
)

var fuzzRequests = []request{
	{function: readCoils, address: 3, count: 9}, {function: readHoldings, address: 100, count: 2},
	{function: readInputs, count: 125},
	{function: writeCoil, address: 3, count: 1, values: []uint16{1}},
	{function: writeHoldings, address: 3, count: 2, values: []uint16{1, 2}},
}

// FuzzParse: an answer has exactly the values that were asked for, or none.
func FuzzParse(f *testing.F) {
	f.Add(byte(1), []byte{readHoldings, 4, 0, 1, 0, 2})
	f.Add(byte(0), []byte{readCoils, 2, 0xFF, 1})
	f.Add(byte(3), []byte{writeCoil, 0, 3, 0xFF, 0})
	f.Add(byte(1), []byte{readHoldings | isException, 2})
	f.Fuzz(func(t *testing.T, n byte, b []byte) {
		r := fuzzRequests[int(n)%len(fuzzRequests)]
		values, err := r.parse(b)
		if want := int(r.count); err == nil && r.reads() && len(values) != want {
			t.Errorf("%d values instead of %d", len(values), want)
		}
	})
}

// FuzzFrame: what is found in the bytes of a line is the whole answer of the unit, with its checksum.
func FuzzFrame(f *testing.F) {
	good := []byte{1, readHoldings, 4, 0, 1, 0, 2}
	good = binary.LittleEndian.AppendUint16(good, checksum(good))
	f.Add(byte(1), good)
	f.Add(byte(1), append([]byte{0, 0}, good...))
	f.Add(byte(2), []byte{1})
	f.Fuzz(func(t *testing.T, n byte, b []byte) {
		r := fuzzRequests[int(n)%len(fuzzRequests)]
		message, possible := findFrame(b, 1, r)
		if message == nil {
			return
		}
		if !possible || len(b) > 1+r.answerBytes()+2+2*glitches || message[0]&^isException != r.function {
			t.Errorf("%x in %x", message, b)
		}
		r.parse(message)
	})
}

// FuzzTCP: whatever a peer sends ends in time.
func FuzzTCP(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 0, 7, 1, readHoldings, 4, 0, 1, 0, 2})
	f.Add([]byte{0, 0, 0, 0, 0, 3, 1, 2, 3, 0, 1, 0, 0, 0, 3, 1, 0x83, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		near, far := net.Pipe()
		defer near.Close()
		done := make(chan bool)
		go func() {
			defer close(done)
			defer far.Close()
			far.Read(make([]byte, 300))
			far.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			far.Write(b)
		}()
		l := &tcpLine{conn: near}
		values, err := l.exchange(time.Now().Add(time.Second), 1, fuzzRequests[1])
		if err == nil && len(values) != 2 {
			t.Errorf("%v", values)
		}
		near.Close()
		<-done
	})
}
