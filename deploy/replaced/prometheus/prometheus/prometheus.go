// Package prometheus stands in for the part of github.com/prometheus/client_golang/prometheus
// that go-libp2p names for its own metrics, which a site never registers (libp2p.DisableMetrics).
// Its metrics count nothing. See the README two folders up.
package prometheus

import "errors"

type (
	// Labels are a metric's labels.
	Labels map[string]string
	// Opts name a metric.
	Opts struct {
		Namespace, Subsystem, Name, Help string
		ConstLabels                      Labels
	}
	CounterOpts   = Opts
	GaugeOpts     = Opts
	HistogramOpts struct {
		Namespace, Subsystem, Name, Help string
		Buckets                          []float64
	}

	// Desc describes a metric.
	Desc struct{}
	// ValueType is the kind of a constant metric.
	ValueType int

	Collector interface {
		Describe(chan<- *Desc)
		Collect(chan<- Metric)
	}
	Metric     interface{ Desc() *Desc }
	Observer   interface{ Observe(float64) }
	Registerer interface {
		Register(Collector) error
		MustRegister(...Collector)
	}
	Counter interface {
		Collector
		Metric
		Inc()
		Add(float64)
	}
	Gauge interface {
		Counter
		Set(float64)
		Dec()
		Sub(float64)
	}
	Histogram interface {
		Collector
		Metric
		Observer
	}
	// AlreadyRegisteredError is returned by no function here.
	AlreadyRegisteredError struct{}
)

func (AlreadyRegisteredError) Error() string { return "the metric is registered already" }

// CounterValue is the ValueType of a counter.
const CounterValue ValueType = 1

// none is every metric.
type none struct{}

func (none) Describe(chan<- *Desc) {}
func (none) Collect(chan<- Metric) {}
func (none) Desc() *Desc           { return nil }
func (none) Inc()                  {}
func (none) Dec()                  {}
func (none) Add(float64)           {}
func (none) Sub(float64)           {}
func (none) Set(float64)           {}
func (none) Observe(float64)       {}
func (none) Reset()                {}

type (
	CounterVec   struct{ none }
	GaugeVec     struct{ none }
	HistogramVec struct{ none }
)

func NewCounter(CounterOpts) Counter                          { return none{} }
func NewGauge(GaugeOpts) Gauge                                { return none{} }
func NewHistogram(HistogramOpts) Histogram                    { return none{} }
func NewCounterVec(CounterOpts, []string) *CounterVec         { return new(CounterVec) }
func NewGaugeVec(GaugeOpts, []string) *GaugeVec               { return new(GaugeVec) }
func NewHistogramVec(HistogramOpts, []string) *HistogramVec   { return new(HistogramVec) }
func (*CounterVec) With(Labels) Counter                       { return none{} }
func (*CounterVec) WithLabelValues(...string) Counter         { return none{} }
func (*GaugeVec) With(Labels) Gauge                           { return none{} }
func (*GaugeVec) WithLabelValues(...string) Gauge             { return none{} }
func (*HistogramVec) With(Labels) Observer                    { return none{} }
func (*HistogramVec) WithLabelValues(...string) Observer      { return none{} }
func NewDesc(string, string, []string, Labels) *Desc          { return nil }
func LinearBuckets(start, width float64, count int) []float64 { return nil }
func ExponentialBuckets(start, factor float64, count int) []float64 {
	return nil
}

// NewConstMetric returns an error: nothing is collected.
func NewConstMetric(*Desc, ValueType, float64, ...string) (Metric, error) {
	return nil, errors.New("this program collects no such metrics")
}

// DefaultRegisterer registers nothing.
var DefaultRegisterer Registerer = registry{}

type registry struct{}

func (registry) Register(Collector) error  { return nil }
func (registry) MustRegister(...Collector) {}

// MustRegister registers nothing.
func MustRegister(...Collector) {}
