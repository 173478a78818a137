package anp

import (
	"testing"

	"agentsite/transport/adapter/adaptertest"
)

// FuzzANPCall: whatever is sent to the methods, and asked for by negotiation, the answer is no
// failure of the site's.
func FuzzANPCall(f *testing.F) {
	s := adaptertest.New(f, nil)
	call := func(method, params string) [4]string {
		return [4]string{"POST", "/anp/rpc", `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`}
	}
	asks := func(body string) [4]string {
		return call(negotiateMethod, `{"meta":{"profile":"anp.meta.negotiation.v1"},"body":`+body+`}`)
	}
	adaptertest.Fuzz(f, s, Routes(&s.Site), []string{"Idempotency-Key", "Agentsite-Via", "If-None-Match"}, [][4]string{
		call("read_points", `{"points":["greenhouse/vent"],"_meta":{"agentsite/idempotency-key":"k","agentsite/expires-in":1}}`),
		call("set_level", `{"output":"greenhouse/vent","value":30,"for_seconds":0.01}`), call("show_text", `{"display":"greenhouse/message","text":"\u0000"}`), call(capabilitiesMethod, `{}`),
		asks(`{"intent":{"name":"read"}}`), asks(`{"intent":{"intentTags":["x","cap.switch"]},"requiredCapabilities":["read points"],"candidateInterfaceRefs":["operations"]}`),
		asks(`{"mode":"structured_selection","negotiation_id":"n","intent":{"name":"task"},"constraints":{"requiresHumanAuthorization":true,"preferredInterfaceTypes":["StructuredInterface"]}}`),
		{"GET", "/anp/interface.json", "", `||"x"`},
	}...)
}
