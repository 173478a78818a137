package a2a

import (
	"encoding/json"
	"testing"
)

// FuzzA2ARequest: whatever a request is, its envelope and its message are decoded or refused, and
// what is refused names its request by an id that a client can read.
func FuzzA2ARequest(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"operation":"read"}}]}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"x"},{"kind":"file","file":{"bytes":"eA=="}}]}}}`,
		`{"jsonrpc":"2.0","id":1.5e300,"method":"GetTask","params":{"id":"x","historyLength":-1}}`,
		`{"jsonrpc":"2.0","id":1,"id":2}`, `[]`, `{`, ``, `null`, `{"id":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageToken":"////","pageSize":1e9}}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, legacy bool) {
		e, err := readEnvelope(body)
		var out any = response{Version: "2.0", ID: e.ID, Result: struct{}{}}
		if err != nil {
			out = response{Version: "2.0", ID: e.ID, Error: failureOf(err).rpc()}
		}
		if text, err := encode(out); err != nil || !json.Valid(text) {
			t.Fatalf("%s, %v", text, err)
		}
		if err != nil {
			return
		}
		var p sendParams
		if decode(e.Params, &p) != nil || p.check(form{legacy: legacy}) != nil {
			return
		}
		m := &p.Message
		if _, data, err := m.content(); err == nil {
			var o order
			data.DecodeStrict(&o)
			var named struct {
				Operation string `json:"operation"`
			}
			decode(data, &named)
		}
		if key := keyOf(m.ID); len(key) > maxKey || len(m.ID) > maxID || len(m.Parts) > maxParts {
			t.Error(key, len(m.ID), len(m.Parts))
		}
	})
}
