// Package asnutil maps IPv6 networks to the autonomous systems that they belong to. It has the
// upstream's API and list (see the README one folder up), and keeps the list compressed.
package asnutil

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
)

// packed is the output of generate: a flate stream of networks in ascending order. Each is five
// varints, relative to the network before: the distance from its end and the length, both as a
// number and a count of doublings, and the zigzag difference of the system's number.
//
//go:embed list.flate
var packed []byte

// mark is where a network's varints begin, and the state after the network before.
type mark struct {
	at    int
	after uint64 // the first address behind the network before
	asn   int64
}

// list is the unpacked list, half a megabyte, with a mark for each markEvery networks.
type list struct {
	bytes []byte
	marks []mark
}

const markEvery = 128

var load = sync.OnceValue(func() *list {
	b, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		panic("the list of networks is damaged: " + err.Error())
	}
	l := &list{bytes: b}
	m := mark{}
	for n := 0; m.at < len(b); n++ {
		if n%markEvery == 0 {
			l.marks = append(l.marks, m)
		}
		_, _, m = l.next(m)
	}
	return l
})

// next returns the network at a mark, and the mark of the one after it.
func (l *list) next(m mark) (start, end uint64, _ mark) {
	varint := func() uint64 {
		v, n := binary.Uvarint(l.bytes[m.at:])
		m.at += n
		return v
	}
	gap, doubled := varint(), varint()
	start = m.after + gap<<doubled
	length, doubled := varint(), varint()
	m.after = start + length<<doubled
	step := varint()
	m.asn += int64(step>>1) ^ -int64(step&1)
	return start, m.after - 1, m
}

// AsnForIPv6Network returns the number of the autonomous system of a network, which is the first
// eight bytes of an address; 0 if it is unknown.
func AsnForIPv6Network(network uint64) uint32 {
	l := load()
	i, _ := slices.BinarySearchFunc(l.marks, network, func(m mark, network uint64) int {
		if start, _, _ := l.next(m); start > network {
			return 1
		}
		return -1
	})
	if i == 0 {
		return 0
	}
	m := l.marks[i-1]
	for range markEvery {
		if m.at == len(l.bytes) {
			break
		}
		var start, end uint64
		switch start, end, m = l.next(m); {
		case network < start:
			return 0
		case network <= end:
			return uint32(m.asn)
		}
	}
	return 0
}

// AsnForIPv6 is AsnForIPv6Network of an address.
func AsnForIPv6(ip net.IP) uint32 {
	ip = ip.To16()
	if ip == nil {
		return 0
	}
	return AsnForIPv6Network(binary.BigEndian.Uint64(ip))
}

// Store is the upstream's older API.
var Store store

type store struct{}

func (store) AsnForIPv6(ip net.IP) (string, error) {
	if ip.To16() == nil {
		return "", errors.New("only IPv6 addresses are supported")
	}
	if asn := AsnForIPv6(ip); asn != 0 {
		return strconv.FormatUint(uint64(asn), 10), nil
	}
	return "", nil
}

func (store) Init() {}
