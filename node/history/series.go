package history

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"agentsite/device"
)

var errFormat = errors.New("a block of the history has a valid checksum and an invalid content")

// sample is one reading of a measurement. A reading that is not good is NaN.
type sample struct {
	t int64 // ms
	v float64
}

func (s sample) good() bool { return s.v == s.v }

// bucket aggregates the readings of a minute, an hour or a step.
type bucket struct {
	t              int64   // of its first reading
	min, max, last float64 // of the good ones
	sum            float64
	good, bad      uint32
}

func (b *bucket) add(s sample) {
	if !s.good() {
		b.bad++
		return
	}
	b.merge(bucket{min: s.v, max: s.v, last: s.v, sum: s.v, good: 1})
}

// merge adds the readings of a later bucket.
func (b *bucket) merge(o bucket) {
	b.bad += o.bad
	if o.good == 0 {
		return
	}
	if b.good == 0 {
		b.min, b.max = o.min, o.max
	}
	b.min, b.max, b.last = min(b.min, o.min), max(b.max, o.max), o.last
	b.sum = max(-math.MaxFloat64, min(b.sum+o.sum, math.MaxFloat64))
	b.good += o.good
}

func (b *bucket) mean() float64 {
	return max(b.min, min(b.sum/float64(b.good), b.max))
}

// Numbers with few decimals, as nearly all sensors have them, are written as integers: the
// number times a power of ten. Others are written as they are.
const (
	maxDecimals = 12
	asFloat     = 15
	// So that the sum of an hour fits into 62 bits.
	maxScaled    = 1 << 40
	maxScaledSum = 1 << 62
	// maxSeries limits the entries of a series in a block; ours have a quarter of it.
	maxSeries = 1 << 16
)

var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12}

// decimals returns how many decimals are needed for v and for numbers with d of them, or
// asFloat.
func decimals(d int, v float64) int {
	for ; d <= maxDecimals; d++ {
		n := math.Round(v * powers[d])
		if math.Abs(n) > maxScaled {
			break
		}
		if n/powers[d] == v {
			return d
		}
	}
	return asFloat
}

// sumDecimals is decimals for a sum, which has small errors.
func sumDecimals(d int, sum float64) int {
	for ; d <= maxDecimals; d++ {
		n := sum * powers[d]
		if math.Abs(n) >= maxScaledSum {
			break
		}
		if math.Abs(n-math.Round(n)) <= 1e-9+1e-12*math.Abs(n) {
			return d
		}
	}
	return asFloat
}

// scale finds how many decimals the numbers of a series need together.
type scale struct {
	d            int
	largest, sum float64 // what there is at most
}

func (s *scale) add(v float64) {
	if s.largest = max(s.largest, math.Abs(v)); s.d != asFloat {
		s.d = decimals(s.d, v)
	}
}

func (s *scale) addSum(sum float64) {
	if s.sum = max(s.sum, math.Abs(sum)); s.d != asFloat {
		s.d = sumDecimals(s.d, sum)
	}
}

// decimals returns how many all have, or asFloat where one of them would be too large with those
// of another.
func (s *scale) decimals() int {
	if s.d != asFloat && (s.largest*powers[s.d] > maxScaled || s.sum*powers[s.d] >= maxScaledSum) {
		return asFloat
	}
	return s.d
}

// scaled returns v as an integer with d decimals, or its bits.
func scaled(d int, v float64) int64 {
	if d == asFloat {
		return int64(math.Float64bits(v))
	}
	return int64(math.Round(v * powers[d]))
}

func unscaled(d int, i int64) float64 {
	if d == asFloat {
		return math.Float64frombits(uint64(i))
	}
	return float64(i) / powers[d]
}

// timeCoder writes and reads the times of a series as the change of their distance.
type timeCoder struct{ t, step int64 }

func (c *timeCoder) put(w *bitWriter, t int64) {
	step := t - c.t
	w.putInt(step - c.step)
	c.t, c.step = t, step
}

func (c *timeCoder) get(r *bitReader) int64 {
	c.step += r.getInt()
	c.t += c.step
	return c.t
}

// appendSamples appends an encoded series. Times are written from base on.
func appendSamples(b []byte, base int64, all []sample) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	var needs scale
	faults := uint64(0)
	for _, s := range all {
		if s.good() {
			needs.add(s.v)
		} else {
			faults = 1
		}
	}
	d := needs.decimals()
	w := bitWriter{b: b}
	w.put(uint64(d)<<1|faults, 5)
	times, last := timeCoder{t: base}, int64(0)
	for _, s := range all {
		times.put(&w, s.t)
		if faults != 0 {
			if !s.good() {
				w.put(0, 1)
				continue
			}
			w.put(1, 1)
		}
		v := scaled(d, s.v)
		w.putInt(v - last)
		last = v
	}
	return w.bytes()
}

// decodeSamples calls yield for each sample of an encoded series, until it returns false.
func decodeSamples(b []byte, base int64, yield func(sample) bool) error {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b))*8 || n > maxSeries {
		return errFormat
	}
	r := bitReader{b: b[size:]}
	d, faults := int(r.get(4)), r.get(1)
	if d > maxDecimals && d != asFloat {
		return errFormat
	}
	times, last := timeCoder{t: base}, int64(0)
	for range n {
		s := sample{times.get(&r), math.NaN()}
		if faults == 0 || r.get(1) != 0 {
			last += r.getInt()
			s.v = unscaled(d, last)
		}
		if r.short {
			return errFormat
		}
		if !yield(s) {
			return nil
		}
	}
	return nil
}

// appendBuckets appends an encoded series of buckets.
func appendBuckets(b []byte, base int64, all []bucket) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	var needs scale
	for _, k := range all {
		if k.good == 0 {
			continue
		}
		for _, v := range [...]float64{k.min, k.max, k.last} {
			needs.add(v)
		}
		needs.addSum(k.sum)
	}
	d := needs.decimals()
	w := bitWriter{b: b}
	w.put(uint64(d), 4)
	times, before := timeCoder{t: base}, fields{}
	for _, k := range all {
		times.put(&w, k.t)
		f := k.fields(d)
		w.putInt(f.good - before.good)
		w.putInt(f.bad - before.bad)
		if f.good == 0 {
			before.good, before.bad = 0, f.bad
			continue
		}
		w.putInt(f.min - before.min)
		if d == asFloat {
			w.putInt(f.max - before.max)
			w.putInt(f.last - before.last)
			w.putInt(f.sum - before.sum)
		} else {
			w.putInt(f.max - f.min)
			w.putInt(f.last - f.min)
			w.putInt(f.sum - f.good*f.min)
		}
		before = f
	}
	return w.bytes()
}

// fields are a bucket's as integers.
type fields struct{ good, bad, min, max, last, sum int64 }

func (b bucket) fields(d int) fields {
	return fields{int64(b.good), int64(b.bad), scaled(d, b.min), scaled(d, b.max), scaled(d, b.last), scaled(d, b.sum)}
}

// decodeBuckets calls yield for each bucket of an encoded series, until it returns false.
func decodeBuckets(b []byte, base int64, yield func(bucket) bool) error {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b))*8 || n > maxSeries {
		return errFormat
	}
	r := bitReader{b: b[size:]}
	d := int(r.get(4))
	if d > maxDecimals && d != asFloat {
		return errFormat
	}
	times, f := timeCoder{t: base}, fields{}
	for range n {
		k := bucket{t: times.get(&r)}
		f.good += r.getInt()
		f.bad += r.getInt()
		k.good, k.bad = uint32(f.good), uint32(f.bad)
		if f.good != 0 {
			f.min += r.getInt()
			if d == asFloat {
				f.max += r.getInt()
				f.last += r.getInt()
				f.sum += r.getInt()
			} else {
				f.max, f.last, f.sum = f.min+r.getInt(), f.min+r.getInt(), f.good*f.min+r.getInt()
			}
			k.min, k.max, k.last, k.sum = unscaled(d, f.min), unscaled(d, f.max), unscaled(d, f.last), unscaled(d, f.sum)
		}
		if r.short {
			return errFormat
		}
		if !yield(k) {
			return nil
		}
	}
	return nil
}

// change is a device.Change in recorded time.
type change struct {
	t      int64 // ms
	Value  device.Value
	Bad    bool   // the value is not known: the device could not be read
	Holder string // of an output
	Cause  string
	held   bool // no change: the value at the start of a block
}

// at returns the change with its wall time.
func (c change) at(offset int64) device.Change {
	return device.Change{At: time.UnixMilli(c.t + offset), Value: c.Value, Holder: c.Holder, Cause: c.Cause}
}

const maxText = 200 // bytes of a text in a change

func clip(s string) string { return device.Clip(s, maxText) }

// The bits of a change's first byte, above its value's type.
const (
	bitTrue = 1 << (iota + 2)
	bitBad
	bitHeld
	bitHolder
	bitCause
	bitSame // the holder and the cause are those of the change before
)

// appendChanges appends an encoded series of changes.
func appendChanges(b []byte, base int64, all []change) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	text := func(s string) { b = append(append(b, byte(len(s))), s...) }
	var before change
	for _, c := range all {
		tag := byte(c.Value.Type())
		same := c.Holder == before.Holder && c.Cause == before.Cause
		if before = c; same {
			c.Holder, c.Cause = "", ""
		}
		for bit, set := range map[byte]bool{bitTrue: c.Value.Bool(), bitBad: c.Bad, bitHeld: c.held, bitHolder: c.Holder != "", bitCause: c.Cause != "", bitSame: same} {
			if set {
				tag |= bit
			}
		}
		b = binary.AppendVarint(append(b, tag), c.t-base)
		base = c.t
		switch c.Value.Type() {
		case device.TypeNumber:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.Value.Number()))
		case device.TypeText:
			text(clip(c.Value.Text()))
		}
		if c.Holder != "" {
			text(clip(c.Holder))
		}
		if c.Cause != "" {
			text(clip(c.Cause))
		}
	}
	return b
}

// decodeChanges calls yield for each change of an encoded series, until it returns false.
func decodeChanges(b []byte, base int64, yield func(change) bool) error {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)) || n > maxSeries {
		return errFormat
	}
	b = b[size:]
	bad := false
	var before change
	text := func() string {
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			bad = true
			return ""
		}
		n := 1 + int(b[0])
		s := string(b[1:n])
		b = b[n:]
		return s
	}
	for range n {
		if len(b) == 0 {
			return errFormat
		}
		tag := b[0]
		by, size := binary.Varint(b[1:])
		if size <= 0 {
			return errFormat
		}
		b = b[1+size:]
		base += by
		c := change{t: base, Bad: tag&bitBad != 0, held: tag&bitHeld != 0}
		switch device.Type(tag & 3) {
		case device.TypeNumber:
			if len(b) < 8 {
				return errFormat
			}
			c.Value = device.Number(math.Float64frombits(binary.LittleEndian.Uint64(b)))
			b = b[8:]
		case device.TypeBool:
			c.Value = device.Bool(tag&bitTrue != 0)
		case device.TypeText:
			c.Value = device.Text(text())
		}
		if tag&bitHolder != 0 {
			c.Holder = text()
		}
		if tag&bitCause != 0 {
			c.Cause = text()
		}
		if tag&bitSame != 0 {
			c.Holder, c.Cause = before.Holder, before.Cause
		}
		if before = c; bad {
			return errFormat
		}
		if !yield(c) {
			return nil
		}
	}
	return nil
}
