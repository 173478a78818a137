//go:build e2e

package events

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"agentsite/cmd/internal/e2e/harness"
)

// Result holds the fields of the results of events/poll and events/subscribe.
type Result struct {
	Events     []Occurrence `json:"events"`
	ID         string       `json:"id"`
	Cursor     *string      `json:"cursor"`
	Truncated  bool         `json:"truncated"`
	HasMore    bool         `json:"hasMore"`
	NextPollMs float64      `json:"nextPollMs"`
}

// Notification is a notification of events/stream. Error is there where the Method says that the subscription is
// over, or has a difficulty.
type Notification struct {
	Method string `json:"method"`
	Params struct {
		Occurrence
		Truncated bool            `json:"truncated"`
		Error     json.RawMessage `json:"error"`
	} `json:"params"`
}

// call sends a request of events/* of the newest revision, and returns the open answer.
func call(ctx context.Context, r *harness.Site, token, method string, params map[string]any) (*http.Response, error) {
	all := map[string]any{"_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": map[string]any{
			"extensions": map[string]any{"io.modelcontextprotocol/events": map[string]any{}},
		},
	}}
	for k, v := range params {
		all[k] = v
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": all})
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+"/mcp", strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Authorization", "Bearer "+token)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	q.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	q.Header.Set("Mcp-Method", method) // Mcp-Name goes with none of events/*
	return http.DefaultClient.Do(q)
}

// Ask asks a site by events/poll or events/subscribe.
func Ask(
	ctx context.Context, r *harness.Site, token, method string, params map[string]any,
) (out Result, err error) {
	res, err := call(ctx, r, token, method, params)
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil {
		return out, err
	}
	var answer struct {
		Result *Result         `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Result == nil {
		return out, fmt.Errorf("%s: %s %.400s %v", method, res.Status, text, err)
	}
	return *answer.Result, nil
}

// Stream calls each for the notifications of events/stream, until ctx ends or the site ends it.
func Stream(
	ctx context.Context, r *harness.Site, token string, params map[string]any, each func(Notification),
) error {
	res, err := call(ctx, r, token, "events/stream", params)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return fmt.Errorf("events/stream: %s %s %s", res.Status, kind, text)
	}
	in := bufio.NewReader(res.Body)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			var n Notification
			if err := json.Unmarshal([]byte(data), &n); err != nil {
				return fmt.Errorf("%w in %.200s", err, data)
			}
			each(n)
		}
	}
}
