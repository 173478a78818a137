package export

import (
	"maps"
	"math"
	"slices"

	"github.com/golang/snappy"
	"google.golang.org/protobuf/encoding/protowire"
)

// metric is the name of all series, as in the OpenMetrics export of the command line.
const metric = "agentsite_reading"

// The labels of a series: its site, its point, the unit, and of a text the value that it has or has not.
const (
	labelSite  = "site"
	labelPoint = "point"
	labelUnit  = "unit"
	labelValue = "value"
)

// staleBits is the one NaN by which a series ends (remote write 1.0, stale markers).
const staleBits = 0x7ff0000000000002

// sample is a value of a series at a time in Unix ms.
type sample struct {
	labels string // of its series, as labelsOf encodes them
	at     int64
	value  float64
}

// isLabel reports whether a name can be a label (Prometheus' data model; names with __ are reserved).
func isLabel(name string) bool {
	if name == "" || len(name) > maxLabel || len(name) >= 2 && name[:2] == "__" {
		return false
	}
	for i, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return true
}

// labelsOf encodes the labels of a series, sorted by name: field 1 of TimeSeries, each with a name (1) and a value (2).
// The messages are those of prompb/remote.proto and prompb/types.proto of github.com/prometheus/prometheus.
func labelsOf(labels map[string]string) string {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if labels[name] == "" {
			continue
		}
		var l []byte
		l = protowire.AppendString(protowire.AppendTag(l, 1, protowire.BytesType), name)
		l = protowire.AppendString(protowire.AppendTag(l, 2, protowire.BytesType), labels[name])
		b = protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), l)
	}
	return string(b)
}

// encode returns the body of a request: a WriteRequest with a TimeSeries (field 1) for each series, whose samples (2)
// have a value (1, double) and a time (2, int64), as a Snappy block. Samples of a series keep their order.
func encode(all []sample) []byte {
	series := make(map[string][]byte)
	var order []string
	for _, s := range all {
		b, ok := series[s.labels]
		if !ok {
			b, order = []byte(s.labels), append(order, s.labels)
		}
		var v []byte
		v = protowire.AppendFixed64(protowire.AppendTag(v, 1, protowire.Fixed64Type), math.Float64bits(s.value))
		v = protowire.AppendVarint(protowire.AppendTag(v, 2, protowire.VarintType), uint64(s.at))
		series[s.labels] = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), v)
	}
	var b []byte
	for _, labels := range order {
		b = protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), series[labels])
	}
	return snappy.Encode(nil, b)
}
