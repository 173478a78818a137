package site

import (
	"net/http"

	"agentsite/device/guard"
	"agentsite/node"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics serves what the site counts. All of it is read when it is asked for:
// counting costs nothing in between.
func metrics(hub *node.Hub, outputs *guard.Guard, version string) http.Handler {
	r := prometheus.NewRegistry()
	gauge := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "agentsite_" + name, Help: help}, value))
	}
	counter := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "agentsite_" + name, Help: help}, value))
	}
	counter("readings_total", "Readings taken in.", func() float64 { n, _, _ := hub.Counts(); return float64(n) })
	counter("changes_coalesced_total", "Changes that a slow watcher was told of together.", func() float64 { _, n, _ := hub.Counts(); return float64(n) })
	gauge("watchers", "Open subscriptions.", func() float64 { _, _, n := hub.Counts(); return float64(n) })
	gauge("outputs_away_from_safe", "Outputs that are not known to be at their safe value.", func() float64 {
		n := 0
		for _, s := range outputs.Status() {
			if !s.Safe {
				n++
			}
		}
		return float64(n)
	})
	gauge("emergency_stop", "1 while the emergency stop is latched.", func() float64 {
		if outputs.Stopped() {
			return 1
		}
		return 0
	})
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "agentsite_info", Help: "The program.", ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 }))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}
