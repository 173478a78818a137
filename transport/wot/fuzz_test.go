package wot_test

import (
	"testing"

	"agentsite/transport/adapter/adaptertest"
	"agentsite/transport/wot"
)

// FuzzThings: no path, query, header or body, of written values and of inputs of actions, causes an
// internal failure of the site.
func FuzzThings(f *testing.F) {
	s := adaptertest.New(f, nil)
	adaptertest.Fuzz(f, s, wot.Routes(&s.Site), []string{"Idempotency-Key", "Agentsite-Expires-In", "Agentsite-Via", "Accept"}, [][4]string{
		{"GET", "/things"}, {"GET", house}, {"GET", "/things/agent:helper"}, {"GET", house + "/properties/temperature"},
		{"PUT", house + "/properties/vent?for=0.01", `30`, "k"}, {"PUT", house + "/properties/lamp", `true`, "||a,b"}, {"PUT", house + "/properties/vent?for=1e9", `{"a":[1e999]}`, "\"|x"},
		{"POST", house + "/actions/release.vent"}, {"POST", house + "/actions/show.message", `"\u0000"`, "|5"}, {"POST", house + "/actions/capture.camera", `{}`},
		{"POST", "/things/agent:helper/actions/echo?wait=0", `{"n":1}`, "j"}, {"POST", "/things/agent:helper/actions/answerTask", `{"task":"x","answer":"y"}`},
		{"POST", "/things/site:zorilla/actions/history", `{"point":"greenhouse/vent","hours":1,"steps":2}`},
		{"GET", house + "/events/button", "", "|||text/event-stream"}, {"DELETE", "/things/agent:helper/actions/echo/x"},
	}...)
}
