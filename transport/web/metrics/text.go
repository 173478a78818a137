package metrics

import (
	"strconv"
	"time"
)

const (
	gauge   = "gauge"
	counter = "counter"
)

// text is metrics in the text format: prometheus.io/docs/instrumenting/exposition_formats. A sample of the
// family that was begun last is any number of labels, and then its number.
type text struct {
	buf                []byte
	family, kind, help string // kind is "" once they are written, with the first sample
	labels             bool   // the sample has one
}

// begin begins a metric. One without samples is left out.
func (t *text) begin(name, kind, help string) { t.family, t.kind, t.help = name, kind, help }

// name begins a sample.
func (t *text) name() {
	if t.kind != "" {
		t.add("# HELP ", t.family, " ", t.help, "\n# TYPE ", t.family, " ", t.kind, "\n")
		t.kind = ""
	}
	t.add(t.family)
}

func (t *text) add(all ...string) {
	for _, s := range all {
		t.buf = append(t.buf, s...)
	}
}

// label adds a label to the sample.
func (t *text) label(name, value string) *text {
	if t.labels {
		t.add(",", name, `="`)
	} else {
		t.name()
		t.add("{", name, `="`)
	}
	t.labels = true
	for i := range len(value) {
		switch c := value[i]; c {
		case '\\', '"':
			t.buf = append(t.buf, '\\', c)
		case '\n':
			t.add(`\n`)
		default:
			t.buf = append(t.buf, c)
		}
	}
	t.buf = append(t.buf, '"')
	return t
}

func (t *text) point(address string) *text { return t.label("point", address) }

// number ends the sample.
func (t *text) number(n float64) {
	if t.labels {
		t.add("} ")
	} else {
		t.name()
		t.add(" ")
	}
	t.labels = false
	t.buf = append(strconv.AppendFloat(t.buf, n, 'g', -1, 64), '\n')
}

// one writes a metric with one sample.
func (t *text) one(name, kind, help string, n float64) {
	t.begin(name, kind, help)
	t.number(n)
}

// flag returns 1 for true.
func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// unix returns a time in seconds, to the millisecond.
func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
