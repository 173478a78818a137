package mcp_test

import (
	"bytes"
	"context"
	"testing"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/node"
	"agentsite/transport/mcp"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// reader is an agent with a read_points whose answer is always the same, so that
// what is measured is the way there and back.
type reader struct{ out readOut }

type readOut struct {
	Readings []readingOut `json:"readings"`
}

type readingOut struct {
	Point   string  `json:"point"`
	Value   any     `json:"value"`
	Unit    string  `json:"unit,omitzero"`
	Time    string  `json:"time,omitzero"`
	Age     float64 `json:"age_seconds"`
	Quality string  `json:"quality"`
}

var readTools = []tools.Tool{{Name: "read_points", Input: []byte(`{"type":"object"}`)}}

func (r *reader) Tools() []tools.Tool { return readTools }

func (r *reader) Call(_ context.Context, _ agents.Principal, c tools.Call) (tools.Result, error) {
	var in struct {
		Points []string `json:"points"`
	}
	if err := c.Args.Decode(&in); err != nil {
		return tools.Result{}, err
	}
	return tools.Result{Value: r.out}, nil
}

var benchAnswer = readOut{[]readingOut{{"greenhouse/temperature", 21.37, "Cel", "2026-11-21T03:30:53.383Z", 0.053, "good"}}}

// bareIn and bareOut are the whole messages of the call, which a minimal program would decode and
// encode.
type bareIn struct {
	JSONRPC string `json:"jsonrpc"`
	ID      uint64 `json:"id"`
	Method  string `json:"method"`
	Params  struct {
		Name      string `json:"name"`
		Arguments struct {
			Points []string `json:"points"`
		} `json:"arguments"`
		Meta mcp.RequestMeta `json:"_meta"`
	} `json:"params"`
}

type bareOut struct {
	JSONRPC string         `json:"jsonrpc"`
	ID      uint64         `json:"id"`
	Result  mcp.CallResult `json:"result"`
}

// BenchmarkHandler measures a tools/call without a socket, in both encodings, beside a bare decode
// of the request and encode of the answer by the same libraries.
func BenchmarkHandler(b *testing.B) {
	n := node.New(node.Parts{Hub: node.NewHub(nil, forgetful{}, func(a string) string { return a }), Token: "secret", Tools: []tools.Agent{&reader{benchAnswer}}})
	s := mcp.New(b.Context(), n, tools.New(n, n), mcp.Implementation{Name: "agentsite", Version: "v0.1.0"}, "")
	d := rpc.NewDispatcher(s.Methods())
	request := message("tools/call", `"name":"read_points","arguments":{"points":["greenhouse/temperature"]}`, "{}")
	bodies := map[rpc.Codec][]byte{rpc.JSON: []byte(request), rpc.CBOR: toCBOR(b, request)}
	ns := make(map[string]float64)
	var sizes [2]int
	for i, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
		body, name := bodies[codec], codec.ContentType()
		b.Run("handler/"+name, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				d.Serve(b.Context(), &rpc.Incoming{Codec: codec, Body: body, Sender: local,
					Send: func(o rpc.Outgoing) error { size = len(o.Body); return nil }})
			}
			sizes[i] = len(body) + size
			ns["handler/"+name] = float64(b.Elapsed().Nanoseconds()) / float64(b.N)
		})
		b.Run("bare/"+name, func(b *testing.B) {
			text, _ := json.Marshal(benchAnswer)
			answer := bareOut{"2.0", 1, mcp.CallResult{
				Result:  mcp.Result{Type: "complete", Meta: mcp.ResultMeta{Server: &mcp.Implementation{Name: "agentsite", Version: "v0.1.0"}}},
				Content: []mcp.Content{{Type: "text", Text: string(text)}}, Structured: benchAnswer,
			}}
			b.ReportAllocs()
			var out bytes.Buffer
			for b.Loop() {
				var in bareIn
				if err := codec.Decode(body, &in); err != nil {
					b.Fatal(err)
				}
				out.Reset()
				if err := codec.Encode(&out, answer); err != nil {
					b.Fatal(err)
				}
			}
			ns["bare/"+name] = float64(b.Elapsed().Nanoseconds()) / float64(b.N)
		})
	}
	b.Run("ratios", func(b *testing.B) {
		for b.Loop() {
		}
		j, c := rpc.JSON.ContentType(), rpc.CBOR.ContentType()
		b.ReportMetric(ns["handler/"+j]/ns["bare/"+j], "json-x-bare(≤2)")
		b.ReportMetric(ns["bare/"+c]/ns["bare/"+j], "cbor-x-json-codec-time(≤0.85)")
		b.ReportMetric(ns["handler/"+c]/ns["handler/"+j], "cbor-x-json-handler-time")
		b.ReportMetric(float64(sizes[1])/float64(sizes[0]), "cbor-x-json-bytes(≤0.9)")
		b.ReportMetric(0, "ns/op")
	})
}
