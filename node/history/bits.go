package history

import "math/bits"

// widths are the bit widths of the classes of an integer. Class n is written as n ones and a zero
// (the last class without the zero), followed by widths[n] bits.
var widths = [...]uint{0, 3, 6, 9, 14, 22, 34, 64}

// bitWriter appends bits to b, most significant first.
type bitWriter struct {
	b   []byte
	acc uint64 // the last n bits, at its low end
	n   uint   // at most 7 between calls
}

// put appends the low n bits of v, at most 32.
func (w *bitWriter) put(v uint64, n uint) {
	w.acc, w.n = w.acc<<n|v&(1<<n-1), w.n+n
	for w.n >= 8 {
		w.n -= 8
		w.b = append(w.b, byte(w.acc>>w.n))
	}
}

func (w *bitWriter) putWord(v uint64) {
	w.put(v>>32, 32)
	w.put(v, 32)
}

// putInt appends an integer. A small one takes few bits, and 0 takes one.
func (w *bitWriter) putInt(i int64) {
	z := uint64(i<<1) ^ uint64(i>>63)
	class, size := 0, uint(bits.Len64(z))
	for widths[class] < size {
		class++
	}
	if last := len(widths) - 1; class < last {
		w.put(1<<(class+1)-2, uint(class)+1)
		w.put(z, widths[class])
	} else {
		w.put(1<<last-1, uint(last))
		w.putWord(z)
	}
}

// bytes returns all that was written, with the last byte filled up with zeros.
func (w *bitWriter) bytes() []byte {
	if w.n > 0 {
		w.put(0, 8-w.n)
	}
	return w.b
}

// bitReader reads the bits of a bitWriter. After the end everything is 0, and short is set.
type bitReader struct {
	b     []byte
	acc   uint64 // the next n bits, at its high end
	n     uint
	short bool
}

func (r *bitReader) fill() {
	for r.n <= 56 && len(r.b) > 0 {
		r.acc |= uint64(r.b[0]) << (56 - r.n)
		r.b, r.n = r.b[1:], r.n+8
	}
}

// get returns the next n bits, at most 56.
func (r *bitReader) get(n uint) uint64 {
	if r.n < n {
		if r.fill(); r.n < n {
			r.short, r.acc, r.n = true, 0, 0
			return 0
		}
	}
	v := r.acc >> (64 - n) // 0 for n = 0: Go shifts everything out
	r.acc, r.n = r.acc<<n, r.n-n
	return v
}

func (r *bitReader) getWord() uint64 { return r.get(32)<<32 | r.get(32) }

func (r *bitReader) getInt() int64 {
	if r.n < 8 {
		r.fill()
	}
	const last = uint(len(widths) - 1)
	class := min(uint(bits.LeadingZeros64(^r.acc)), last)
	var z uint64
	if class < last {
		r.get(class + 1)
		z = r.get(widths[class])
	} else {
		r.get(class)
		z = r.getWord()
	}
	return int64(z>>1) ^ -int64(z&1)
}
