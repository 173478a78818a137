//go:build e2e

package bench

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The benchmarks run their baselines in processes of their own, so that each
// server's processor time can be told from the client's: this test program, with
// BASELINE naming which.
func TestMain(m *testing.M) {
	switch os.Getenv("BASELINE") {
	case "echo":
		serveBaseline(http.HandlerFunc(echo))
	case "sdk":
		serveBaseline(sdkServer())
	}
	os.Exit(m.Run())
}

func serveBaseline(h http.Handler) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("curl -s http://%s/mcp\n", ln.Addr()) // what the harness waits for
	panic(http.Serve(ln, h))
}

// baseReading is a reading in the baselines' answers.
type baseReading struct {
	Point   string  `json:"point"`
	Value   any     `json:"value"`
	Unit    string  `json:"unit,omitempty"`
	Time    string  `json:"time,omitempty"`
	Age     float64 `json:"age_seconds"`
	Quality string  `json:"quality"`
}

type baseOut struct {
	Readings []baseReading `json:"readings"`
}

type baseIn struct {
	Points []string `json:"points,omitempty"`
}

var baseAnswer = baseOut{[]baseReading{{"greenhouse/temperature", 21.37, "Cel", "2026-11-21T03:30:53.383Z", 0.053, "good"}}}

// echo is the least that answers a tools/call: net/http and encoding/json, typed
// structs, no check of anything, an answer of the same shape.
func echo(w http.ResponseWriter, r *http.Request) {
	var in struct {
		JSONRPC string             `json:"jsonrpc"`
		ID      stdjson.RawMessage `json:"id"`
		Method  string             `json:"method"`
		Params  struct {
			Name      string         `json:"name"`
			Arguments baseIn         `json:"arguments"`
			Meta      map[string]any `json:"_meta"`
		} `json:"params"`
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || stdjson.Unmarshal(body, &in) != nil {
		w.WriteHeader(400)
		return
	}
	text, _ := stdjson.Marshal(baseAnswer)
	out, _ := stdjson.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": in.ID, "result": map[string]any{
			"resultType": "complete", "structuredContent": stdjson.RawMessage(text),
			"content": []map[string]string{{"type": "text", "text": string(text)}},
			"_meta":   map[string]any{"io.modelcontextprotocol/serverInfo": map[string]string{"name": "echo", "version": "1"}},
		},
	})
	w.Header().Set("Content-Type", "application/json")
	w.Write(out)
}

// sdkServer returns the official Go SDK's own server with one typed tool, stateless and in JSON, as
// a site would be without its own hot path.
func sdkServer() http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "read_points", Description: "The latest readings."},
		func(_ context.Context, _ *mcp.CallToolRequest, in baseIn) (*mcp.CallToolResult, baseOut, error) {
			return nil, baseAnswer, nil
		})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
}
