//go:build e2e

package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// EventResult holds the fields of the results of events/poll and events/subscribe.
type EventResult struct {
	Events     []Occurrence `json:"events"`
	ID         string       `json:"id"`
	Cursor     *string      `json:"cursor"`
	Truncated  bool         `json:"truncated"`
	HasMore    bool         `json:"hasMore"`
	NextPollMs float64      `json:"nextPollMs"`
}

// EventNotification is a notification of events/stream. Error is there where the Method says that the subscription is
// over, or has a difficulty.
type EventNotification struct {
	Method string `json:"method"`
	Params struct {
		Occurrence
		Truncated bool            `json:"truncated"`
		Error     json.RawMessage `json:"error"`
	} `json:"params"`
}

// callEvents sends a request of events/* of the newest revision, and returns the open answer.
func (r *Site) callEvents(ctx context.Context, token, method string, params map[string]any) (*http.Response, error) {
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
	headers := callHeaders(token, "")
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	q.Header.Set("Mcp-Method", method)
	q.Header.Del("Mcp-Name") // goes with none of events/*
	return http.DefaultClient.Do(q)
}

// AskEvents asks by events/poll or events/subscribe.
func (r *Site) AskEvents(
	ctx context.Context, token, method string, params map[string]any,
) (out EventResult, err error) {
	res, err := r.callEvents(ctx, token, method, params)
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil {
		return out, err
	}
	var answer struct {
		Result *EventResult    `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Result == nil {
		return out, fmt.Errorf("%s: %s %.400s %v", method, res.Status, text, err)
	}
	return *answer.Result, nil
}

// StreamEvents calls each for the notifications of events/stream, until ctx ends or the site ends it.
func (r *Site) StreamEvents(
	ctx context.Context, token string, params map[string]any, each func(EventNotification),
) error {
	res, err := r.callEvents(ctx, token, "events/stream", params)
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
			var n EventNotification
			if err := json.Unmarshal([]byte(data), &n); err != nil {
				return fmt.Errorf("%w in %.200s", err, data)
			}
			each(n)
		}
	}
}
