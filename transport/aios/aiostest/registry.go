// Package aiostest is an AIOS registry for tests, by what its nodes send and expect:
// agiresearch/Cerebrum.Server, cerebrum/node, at a2d4b0f. The registry's own code is not public.
package aiostest

import (
	"net/http"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Registry has nodes, and tasks for them. It lists a task until it has a result. The zero Registry is
// ready, and safe for concurrent use.
type Registry struct {
	// Busy answers with this status in place of taking results; 0 takes them.
	Busy int

	mu      sync.Mutex
	nodes   []jsontext.Value
	tasks   []entry
	results []Result
}

// entry is a task as nodes read it.
type entry struct {
	ID   string         `json:"taskId"`
	Task jsontext.Value `json:"task"`
}

// Result is a node's report of a task.
type Result struct {
	ID     string `json:"taskId"`
	Node   string `json:"nodeId"`
	Result struct {
		Status  string         `json:"status"`
		Result  jsontext.Value `json:"result"`
		Message string         `json:"message"`
		Error   string         `json:"error"`
	} `json:"result"`
}

// Add gives the node a task.
func (r *Registry) Add(id, agent, message string) {
	text, err := json.Marshal(map[string]any{"type": "custom", "data": map[string]any{"message": message, "agent": agent}})
	if err != nil {
		panic(err)
	}
	r.AddRaw(id, text)
}

// AddRaw is Add for a task of any shape.
func (r *Registry) AddRaw(id string, task jsontext.Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks = append(r.tasks, entry{id, task})
}

// SetBusy sets Busy.
func (r *Registry) SetBusy(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Busy = status
}

// Results returns what came for a task.
func (r *Registry) Results(id string) (all []Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, result := range r.results {
		if result.ID == id {
			all = append(all, result)
		}
	}
	return all
}

// Nodes returns the reports of nodes, as they came.
func (r *Registry) Nodes() []jsontext.Value {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.nodes)
}

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch q.Method + " " + q.URL.Path {
	case "POST /api/nodes":
		var status jsontext.Value
		if json.UnmarshalRead(q.Body, &status) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.nodes = append(r.nodes, status)
	case "GET /api/nodes/tasks":
		if q.URL.Query().Get("node_id") == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		waiting := []entry{}
		for _, t := range r.tasks {
			if !slices.ContainsFunc(r.results, func(done Result) bool { return done.ID == t.ID }) {
				waiting = append(waiting, t)
			}
		}
		json.MarshalWrite(w, waiting)
		return
	case "POST /api/nodes/results":
		var result Result
		switch err := json.UnmarshalRead(q.Body, &result); {
		case r.Busy != 0:
			w.WriteHeader(r.Busy)
			return
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
			return
		case !slices.ContainsFunc(r.tasks, func(t entry) bool { return t.ID == result.ID }):
			w.WriteHeader(http.StatusNotFound)
			return
		}
		r.results = append(r.results, result)
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Write([]byte(`{"success":true}`))
}
