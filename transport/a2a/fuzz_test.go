package a2a

import (
	"encoding/json"
	"testing"

	"agentsite/transport/adapter/adaptertest"
)

// FuzzA2ARequest: the envelope and the message of any request are decoded or refused. A refusal
// names its request by an id that a client can read.
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

// FuzzA2ACall: no request over JSON-RPC, or over HTTP with JSON in paths and queries, causes an
// internal failure of the site. It covers operations with their fields, metadata and lists of
// tasks.
func FuzzA2ACall(f *testing.F) {
	s := adaptertest.New(f, nil)
	const list, send, sends = "/a2a/agents/helper/tasks", "/a2a/message:send", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":`
	message := func(data, more string) string {
		return `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":` + data + `}]` + more + `}}`
	}
	adaptertest.Fuzz(f, s, Routes(&s.Site), []string{"A2A-Version"}, [][4]string{
		{"POST", "/a2a", sends + message(`{"operation":"read","points":["greenhouse/vent"]}`, ``) + `}`, "1.0"},
		{"POST", send, message(`{"operation":"move","output":"greenhouse/vent","value":30,"for":0.01}`, `,"metadata":{"agentsite/idempotency-key":"k","agentsite/via":["a"],"agentsite/expires-in":5}`), "1.0"},
		{"POST", send, message(`{"operation":"history","point":"greenhouse/vent","from":"2026-11-24T05:00:00Z","to":"","steps":2}`, `,"metadata":{"agentsite/via":"a"}`), "1.0"},
		{"POST", send, message(`{"operation":"show","display":"greenhouse/message","text":"\u0000"}`, ``), "1.0"}, {"POST", send, message(`{"operation":"why","point":1e999}`, ``), "1.0"},
		{"POST", send, message(`{"operation":"capture","camera":"greenhouse/camera"}`, ``), "1.0"}, {"POST", send, message(`{"operation":"status"}`, `,"taskId":"x"`), "1.0"},
		{"POST", "/a2a/agents/helper/message:send", message(`{"skill":"echo","arguments":{"n":1},"seconds":1}`, `,"contextId":"c"`), "1.0"},
		{"GET", list + "?pageSize=1&pageToken=MjAyNg&includeArtifacts=true&historyLength=1", "", "1.0"}, {"GET", list + "?status=TASK_STATE_WORKING&statusTimestampAfter=2026-11-24T05:00:00Z&contextId=c", "", "1.0"},
		{"GET", list + "/x?historyLength=-1", "", "1.0"}, {"POST", list + "/x:cancel", "", "1.0"}, {"GET", list + "/x:subscribe", "", "1.0"},
		{"POST", "/a2a", `{"jsonrpc":"2.0","id":"a","method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"data","data":{"operation":"points"}}]}}}`, ""},
	}...)
}
