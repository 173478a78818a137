package packet

import (
	"bufio"
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// read reads one packet of bytes.
func read(b []byte, version byte, limit int) (Packet, error) {
	return Read(bufio.NewReader(bytes.NewReader(b)), version, limit)
}

// TestRead: packets of a server, as the specifications write them.
func TestRead(t *testing.T) {
	for _, tt := range []struct {
		version byte
		bytes   []byte
		want    Packet
	}{
		{V311, []byte{0x20, 2, 0, 5}, Packet{Kind: Connack, Codes: []byte{5}}},
		{V5, []byte{0x20, 2, 0, 1}, Packet{Kind: Connack, Codes: []byte{1}}}, // of an older broker
		{V5, []byte{0x20, 3, 0, 0, 0}, Packet{Kind: Connack, Codes: []byte{0}}},
		{V5, []byte{0x20, 11, 0, 0, 8, 0x13, 0, 10, 0x27, 0, 1, 0, 0}, Packet{Kind: Connack, Codes: []byte{0}, KeepAlive: 10, MaxPacket: 65536}},
		{V5, []byte{0x20, 8, 0, 0x87, 5, 0x1f, 0, 2, 'n', 'o'}, Packet{Kind: Connack, Codes: []byte{0x87}, Reason: "no"}},
		{V311, []byte{0x31, 5, 0, 1, 'a', 'O', 'N'}, Packet{Kind: Publish, Topic: "a", Payload: []byte("ON"), Retain: true}},
		{V5, []byte{0x3a, 8, 0, 1, 'a', 0, 7, 0, 'O', 'N'}, Packet{Kind: Publish, Topic: "a", Payload: []byte("ON"), QoS: 1, ID: 7, Dup: true}},
		{V5, []byte{0x30, 17, 0, 1, 'a', 12, 0x26, 0, 1, 'k', 0, 1, 'v', 0x02, 0, 0, 0, 9, 'x'}, Packet{Kind: Publish, Topic: "a", Payload: []byte("x")}},
		{V311, []byte{0x90, 4, 0, 1, 1, 0x80}, Packet{Kind: Suback, ID: 1, Codes: []byte{1, 0x80}}},
		{V5, []byte{0x90, 4, 0, 1, 0, 1}, Packet{Kind: Suback, ID: 1, Codes: []byte{1}}},
		{V5, []byte{0x40, 2, 0, 3}, Packet{Kind: Puback, ID: 3}},
		{V5, []byte{0x40, 4, 0, 3, 0x10, 0}, Packet{Kind: Puback, ID: 3, Codes: []byte{0x10}}},
		{V5, []byte{0xd0, 0}, Packet{Kind: Pingresp}},
		{V5, []byte{0xe0, 2, 0x8b, 0}, Packet{Kind: Disconnect, Codes: []byte{0x8b}}},
	} {
		got, err := read(tt.bytes, tt.version, 100)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("% x: %+v, %v, want %+v", tt.bytes, got, err, tt.want)
		}
	}
}

// TestMalformed: what is not allowed is refused, before it is kept in memory.
func TestMalformed(t *testing.T) {
	for _, b := range [][]byte{
		{0x20, 1, 0}, {0x21, 3, 0, 0, 0}, {0x00, 0}, {0xf0, 0}, {0x50, 2, 0, 1}, {0x10, 0}, {0x80, 0},
		{0x36, 6, 0, 1, 'a', 0, 1, 0}, {0x34, 6, 0, 1, 'a', 0, 1, 0}, {0x32, 6, 0, 1, 'a', 0, 0, 0}, // QoS 3 and 2, and no ID
		{0x30, 3, 0, 0, 0}, {0x30, 4, 0, 1, '#', 0}, {0x30, 4, 0, 1, 0, 0}, {0x30, 4, 0, 1, 0xff, 0}, {0x30, 4, 0, 9, 'a', 0},
		{0x30, 7, 0, 1, 'a', 3, 0x23, 0, 1}, {0x30, 5, 0, 1, 'a', 1, 0x7f}, {0x30, 5, 0, 1, 'a', 9, 0x01}, // an alias, an unknown property, a cut one
		{0x30, 0xff, 0xff, 0xff, 0xff, 0},
	} {
		if p, err := read(b, V5, 1<<30); !errors.Is(err, ErrMalformed) {
			t.Errorf("% x: %+v, %v", b, p, err)
		}
	}
	if _, err := read([]byte{0x30, 0xff, 0xff, 0xff, 0x7f}, V5, 1000); !errors.Is(err, ErrLong) {
		t.Error(err)
	}
}

// TestWrite: packets of a client, as the specifications write them.
func TestWrite(t *testing.T) {
	for _, tt := range []struct{ got, want []byte }{
		{AppendPublish(nil, V311, 0, "a", []byte("x"), true), []byte{0x31, 4, 0, 1, 'a', 'x'}},
		{AppendPublish(nil, V5, 7, "a", []byte("x"), false), []byte{0x32, 7, 0, 1, 'a', 0, 7, 0, 'x'}},
		{AppendSubscribe(nil, V311, 1, []Filter{{"a", false}}), []byte{0x82, 6, 0, 1, 0, 1, 'a', 1}},
		{AppendSubscribe(nil, V5, 1, []Filter{{"a", false}, {"b", true}}), []byte{0x82, 11, 0, 1, 0, 0, 1, 'a', 0x29, 0, 1, 'b', 0x09}},
		{AppendPuback(nil, 258), []byte{0x40, 2, 1, 2}},
		{AppendPing(nil), []byte{0xc0, 0}},
		{AppendDisconnect(nil), []byte{0xe0, 0}},
		{AppendConnect(nil, V311, Hello{Client: "c", User: "u", Password: "p", Seconds: 30, Will: "w", Says: "s"}),
			[]byte{0x10, 25, 0, 4, 'M', 'Q', 'T', 'T', 4, 0xee, 0, 30, 0, 1, 'c', 0, 1, 'w', 0, 1, 's', 0, 1, 'u', 0, 1, 'p'}},
		{AppendConnect(nil, V5, Hello{Client: "c", Seconds: 30, Longest: 65536}),
			[]byte{0x10, 19, 0, 4, 'M', 'Q', 'T', 'T', 5, 2, 0, 30, 5, 0x27, 0, 1, 0, 0, 0, 1, 'c'}},
	} {
		if !bytes.Equal(tt.got, tt.want) {
			t.Errorf("% x, want % x", tt.got, tt.want)
		}
	}
}

// FuzzRead: no bytes of a broker break the reader.
func FuzzRead(f *testing.F) {
	f.Add([]byte{0x30, 17, 0, 1, 'a', 12, 0x26, 0, 1, 'k', 0, 1, 'v', 0x02, 0, 0, 0, 9, 'x'}, true)
	f.Add([]byte{0x90, 4, 0, 1, 0, 1}, false)
	f.Fuzz(func(t *testing.T, b []byte, newer bool) {
		version := V311
		if newer {
			version = V5
		}
		p, err := read(b, version, 1000)
		if err == nil && (len(p.Payload) > len(b) || p.Kind == Publish && p.Topic == "") {
			t.Errorf("%+v", p)
		}
	})
}
