package web_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"testing"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/node"
	"agentsite/transport/mcp"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// reader is an agent with a read_points whose answer is always the same.
type reader struct{}

func (reader) Tools() []tools.Tool { return readTools }

var readTools = []tools.Tool{{Name: "read_points", Input: []byte(`{"type":"object"}`)}}

func (reader) Call(_ context.Context, _ agents.Principal, c tools.Call) (tools.Result, error) {
	var in struct {
		Points []string `json:"points"`
	}
	return tools.Result{Value: reading{"greenhouse/temperature", 21.37, "Cel"}}, c.Args.Decode(&in)
}

type reading struct {
	Point string  `json:"point"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// BenchmarkToolsCall is a tools/call over loopback. Its caller allocates nothing, so
// that allocs/op are those of the whole server, net/http's included: at most 60.
func BenchmarkToolsCall(b *testing.B) {
	for _, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
		b.Run(codec.ContentType(), func(b *testing.B) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			host := ln.Addr().String()
			site := node.New(node.Parts{Hub: node.NewHub(nil, forgetful{}, func(a string) string { return a }), Token: fuzzToken, Tools: []tools.Agent{reader{}}})
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() {
				ended <- web.Serve(ctx, ln, web.Handler(web.Options{
					Hosts:   []string{host},
					Routes:  []web.Route{web.MCP(rpc.NewDispatcher(mcp.New(ctx, site, tools.New(site, site), mcp.Implementation{Name: "agentsite", Version: "v0.1.0"}, "").Methods()), nil)},
					Callers: site,
				}))
			}()
			conn, err := net.Dial("tcp", host)
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				conn.Close()
				cancel()
				if err := <-ended; err != nil {
					b.Error(err)
				}
			}()
			call := wholeCall(b, codec, host)
			answer := make([]byte, 4<<10)
			first := answer[:once(b, conn, call, answer)]
			b.ReportAllocs()
			for b.Loop() {
				if _, err := conn.Write(call); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(conn, first); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// wholeCall is a request with its headers.
func wholeCall(b *testing.B, codec rpc.Codec, host string) []byte {
	text := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_points","arguments":{"points":["greenhouse/temperature"]},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"` + rpc.Revision + `","io.modelcontextprotocol/clientCapabilities":{}}}}`
	var body bytes.Buffer
	if err := codec.Encode(&body, rpc.RawJSON([]byte(text))); err != nil {
		b.Fatal(err)
	}
	return fmt.Appendf(nil, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nAccept: application/json, text/event-stream\r\n"+
		"Mcp-Protocol-Version: %s\r\nMcp-Method: tools/call\r\nMcp-Name: read_points\r\nContent-Length: %d\r\n\r\n%s",
		host, fuzzToken, codec.ContentType(), rpc.Revision, body.Len(), body.Bytes())
}

// once makes a call and returns how long its answer is: as long as every later one.
func once(b *testing.B, conn net.Conn, call, answer []byte) (n int) {
	if _, err := conn.Write(call); err != nil {
		b.Fatal(err)
	}
	n, err := conn.Read(answer) // all of it: it is written in one piece
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 ")) || !bytes.Contains(answer[:n], []byte("greenhouse/temperature")) {
		b.Fatalf("%s %v", answer[:n], err)
	}
	return n
}
