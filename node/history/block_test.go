package history

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"

	"agentsite/device"

	"pgregory.net/rapid"
)

// putChecksum writes the checksum of a head.
func putChecksum(b []byte) {
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
}

// fewDigits are numbers that are written as integers by themselves, and with the decimals of
// another may be too large for it.
var fewDigits = rapid.Custom(func(t *rapid.T) float64 {
	n := rapid.OneOf(rapid.Int64Range(-1<<40, 1<<40), rapid.SampledFrom([]int64{1 << 40, 2e7, 123456789012})).Draw(t, "n")
	return float64(n) / powers[rapid.IntRange(0, maxDecimals).Draw(t, "decimals")]
})

// TestCodec: decoding returns the encoded values, bit for bit.
func TestCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.OneOf(rapid.Map(rapid.IntRange(-5000, 5000), func(i int) float64 { return float64(i) / 100 }), fewDigits, rapid.Just(0.0), rapid.Just(math.NaN()))
		value := rapid.SampledFrom([]*rapid.Generator[float64]{few, rapid.OneOf(few, rapid.Float64())}).Draw(t, "values")
		base := rapid.Int64Range(0, 1<<41).Draw(t, "base")
		at := base
		var samples []sample
		var buckets []bucket
		for range rapid.IntRange(0, 50).Draw(t, "n") {
			at += rapid.OneOf(rapid.Just(int64(1000)), rapid.Int64Range(0, 1<<40)).Draw(t, "pause")
			s := sample{at, value.Draw(t, "v")}
			samples = append(samples, s)
			if n := len(buckets); n > 0 && rapid.Bool().Draw(t, "same") {
				buckets[n-1].add(s)
			} else {
				buckets = append(buckets, one(s))
			}
		}
		i := 0
		if err := decodeSamples(appendSamples(nil, base, samples), base, func(s sample) bool {
			if w := samples[i]; s.t != w.t || s.good() != w.good() || s.good() && s.v != w.v {
				t.Fatalf("sample %d is %v, want %v", i, s, w)
			}
			i++
			return true
		}); err != nil || i != len(samples) {
			t.Fatal(i, err)
		}
		i = 0
		if err := decodeBuckets(appendBuckets(nil, base, buckets), base, func(b bucket) bool {
			w := buckets[i]
			near := math.Abs(b.sum-w.sum) <= 1e-6+1e-9*math.Abs(w.sum)
			if b.sum = w.sum; b != w || !near {
				t.Fatalf("bucket %d is %v, want %v", i, b, w)
			}
			i++
			return true
		}); err != nil || i != len(buckets) {
			t.Fatal(i, err)
		}
	})
}

// FuzzBlock gives the decoders any bytes. They neither panic nor take more memory than the
// bytes stand for.
func FuzzHistoryBlock(f *testing.F) {
	all := []entry{
		{"a/h", formSamples, appendSamples(nil, 5, []sample{{7, 1.5}, {8, math.NaN()}, {9, 1e300}})},
		{"a/t", formBuckets, appendBuckets(nil, 5, []bucket{one(sample{7, 2.25})})},
		{"b/relay", formChanges, appendChanges(nil, 5, []change{{t: 6, Value: device.Bool(true), Holder: "x", Cause: "y"}, {t: 9, Value: device.Text("z")}, {t: 10, Value: device.Number(5)}})},
	}
	f.Add(encodeBlock(head{seq: 1, epoch: 1}, all))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headSize {
			return
		}
		parseHead(b)
		n := 0
		parsePayload(b[headSize:], "", func(e entry) bool {
			count := func() bool { n++; return true }
			decodeSamples(e.data, 0, func(sample) bool { return count() })
			decodeBuckets(e.data, 0, func(bucket) bool { return count() })
			decodeChanges(e.data, 0, func(change) bool { return count() })
			return true
		})
		d := newMemDisk()
		d.files["raw-0000000000000001"] = &memFile{data: b}
		h := New(map[string]device.Point{"a/t": {Kind: device.KindMeasurement}})
		if err := h.open(d, Options{}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestMixedDecimals: a large number stays as it is beside one with many decimals.
func TestMixedDecimals(t *testing.T) {
	for _, all := range [][]float64{{2e7, 0.123456789012}, {0.123456789012, -2e7}, {1 << 40, 1e-7}, {4e6, 0.25, 1e-12}} {
		var samples []sample
		var buckets []bucket
		for i, v := range all {
			samples = append(samples, sample{int64(i), v})
			buckets = append(buckets, one(samples[i]))
		}
		i := 0
		decodeSamples(appendSamples(nil, 0, samples), 0, func(s sample) bool {
			if i++; s.v != all[i-1] {
				t.Errorf("%v: %v", all, s.v)
			}
			return true
		})
		i = 0
		decodeBuckets(appendBuckets(nil, 0, buckets), 0, func(b bucket) bool {
			if i++; b != buckets[i-1] {
				t.Errorf("%v: %+v", all, b)
			}
			return true
		})
	}
}

// TestLongTexts: every length that a text may have, and no other, is read.
func TestLongTexts(t *testing.T) {
	for n := range 256 {
		b := binary.AppendUvarint(nil, 1)
		b = append(b, byte(device.TypeText), 0, byte(n))
		b = append(b, make([]byte, n)...)
		read := 0
		if err := decodeChanges(b, 0, func(c change) bool { read = len(c.Value.Text()); return true }); err != nil || read != n {
			t.Errorf("%d bytes: %d, %v", n, read, err)
		}
		if err := decodeChanges(b[:len(b)-1], 0, func(change) bool { return true }); err == nil {
			t.Errorf("%d bytes without the last one are read", n)
		}
	}
}
