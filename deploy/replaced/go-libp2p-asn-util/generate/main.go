// Command generate packs the upstream's list of networks:
//
//	go run ./generate SORTED-NETWORK-LIST.BIN >list.flate
package main

import (
	"bufio"
	"compress/flate"
	"encoding/binary"
	"log"
	"math/bits"
	"os"
)

func main() {
	upstream, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	out := bufio.NewWriter(os.Stdout)
	packer, err := flate.NewWriter(out, flate.BestCompression)
	if err != nil {
		log.Fatal(err)
	}
	var b []byte
	doubled := func(n uint64) {
		shift := 0
		if n > 0 {
			shift = bits.TrailingZeros64(n)
		}
		b = binary.AppendUvarint(b, n>>shift)
		b = binary.AppendUvarint(b, uint64(shift))
	}
	var after uint64
	var before int64
	for ; len(upstream) >= 20; upstream = upstream[20:] {
		start, end := binary.LittleEndian.Uint64(upstream), binary.LittleEndian.Uint64(upstream[8:])
		asn := int64(binary.LittleEndian.Uint32(upstream[16:]))
		doubled(start - after)
		doubled(end - start + 1)
		step := asn - before
		b = binary.AppendUvarint(b, uint64(step<<1^step>>63))
		after, before = end+1, asn
	}
	if _, err := packer.Write(b); err != nil {
		log.Fatal(err)
	}
	if err := packer.Close(); err != nil {
		log.Fatal(err)
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}
