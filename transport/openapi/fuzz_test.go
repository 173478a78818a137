package openapi

import (
	"testing"

	"agentsite/transport/adapter/adaptertest"
)

// FuzzPlainRequest: whatever a path, a query, a header and a body are, the answer is no failure of the site's.
func FuzzPlainRequest(f *testing.F) {
	s := adaptertest.New(f, nil)
	adaptertest.Fuzz(f, s, Routes(&s.Site), []string{"Idempotency-Key", "Agentsite-Expires-In", "Agentsite-Via"}, [][4]string{
		{"GET", "/api/points"}, {"POST", vent, `{"value":30,"for":0.01}`, "k||a,b"}, {"DELETE", vent},
		{"GET", "/api/history?point=greenhouse/vent&hours=1&steps=2"}, {"GET", "/api/readings?point=a&point=b"},
		{"POST", "/api/agents/helper/tasks", `{"skill":"echo","arguments":{"n":1}}`, "j|5"}, {"GET", "/api/tasks/x?wait_seconds=0"},
		{"POST", "/api/displays/greenhouse/message", `{"text":"\u0000"}`}, {"POST", vent, `{"value":1e999}`, "\"|x"},
	}...)
}
