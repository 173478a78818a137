package journal

import (
	"fmt"
	"testing"
)

// BenchmarkOpen measures the time that the longest journal, 16 MiB of moves, adds to a start.
func BenchmarkOpen(b *testing.B) {
	folder := b.TempDir()
	j, err := Open(folder)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for ; j.seq*150 < maxSegments*segmentSize; n++ {
		e := intent(call(fmt.Sprint(n)))
		seq, err := j.write(e, false)
		if err == nil {
			_, err = j.write(Entry{Kind: Result, Of: seq, Value: []byte(`{"output":"box/relay","value":true,"safe":false,"seconds_left":60}`)}, false)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	j.crash()
	for b.Loop() {
		j, err := Open(folder)
		if err != nil {
			b.Fatal(err)
		}
		j.crash()
	}
	b.ReportMetric(float64(n), "moves")
}
