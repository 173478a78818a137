package aios

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentsite/transport/web/outbound"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	callTimeout = 10 * time.Second
	maxTasks    = 256 << 10 // bytes of a list of tasks
	maxAnswer   = 64 << 10  // bytes of an answer that is not read
	maxID       = 128       // of a task there: it becomes the Context of the task here
)

// status is the body of POST /api/nodes. The reference also sends data about the machine and its
// public address.
type status struct {
	ID     string   `json:"node_id"`
	Name   string   `json:"node_name"`
	Time   string   `json:"timestamp"`
	System system   `json:"system_info"`
	Agents []string `json:"available_agents"`
	Status string   `json:"status"`
}

type system struct {
	Platform string `json:"platform"`
	Version  string `json:"version"`
}

// pending is an element of the answer to GET /api/nodes/tasks.
type pending struct {
	ID   string `json:"taskId"`
	Task struct {
		Type string `json:"type"`
		Data struct {
			Message string `json:"message"`
			Agent   string `json:"agent"`
		} `json:"data"`
	} `json:"task"`
}

// outcome is the outcome of a task.
type outcome struct {
	Status  string  `json:"status"` // completed or failed
	Result  *string `json:"result,omitzero"`
	Message string  `json:"message,omitzero"`
	Error   string  `json:"error,omitzero"` // a kind of fault, or a state
}

// reported is the body of POST /api/nodes/results.
type reported struct {
	ID     string  `json:"taskId"`
	Node   string  `json:"nodeId"`
	Result outcome `json:"result"`
}

// post sends a body to an endpoint of the registry.
func (a *Agent) post(ctx context.Context, path string, body any) error {
	text, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base()+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	_, err = outbound.Do(a.http, r, maxAnswer)
	return bare(err)
}

// bare returns an error without the URL, in which the name of the site at the registry may stand.
func bare(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// fetch returns the tasks that wait for this site, those left out that have no usable ID. A task of
// another shape than the protocol's has no agent and no message.
func (a *Agent) fetch(ctx context.Context) ([]pending, error) {
	text, err := outbound.Get(ctx, a.http, a.base()+"/api/nodes/tasks?node_id="+url.QueryEscape(a.node), maxTasks)
	if err != nil {
		return nil, bare(err)
	}
	var list []jsontext.Value
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, errShape
	}
	var all []pending
	for _, item := range list {
		var p pending
		if json.Unmarshal(item, &p) != nil {
			var named struct {
				ID string `json:"taskId"`
			}
			if json.Unmarshal(item, &named) != nil {
				continue
			}
			p = pending{ID: named.ID}
		}
		if p.ID != "" && len(p.ID) <= maxID && !strings.ContainsFunc(p.ID, func(r rune) bool { return r < ' ' || r > '~' }) {
			all = append(all, p)
		}
	}
	return all, nil
}

func (a *Agent) base() string { return strings.TrimRight(a.Registry, "/") }

// keyOf returns the idempotency key of a task of the registry: delivered twice, it is one task here.
func (a *Agent) keyOf(id string) string {
	sum := sha256.Sum256([]byte("aios\x00" + a.base() + "\x00" + id))
	return hex.EncodeToString(sum[:])
}
