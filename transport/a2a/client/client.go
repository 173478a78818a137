package client

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/transport/fault"
	"agentsite/transport/rpc"
	"agentsite/transport/web/outbound"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// AgentName is the name of the agent elsewhere among those of its entry: there is one.
const AgentName = "agent"

// callTimeout bounds a call. It is below the time for which a task is watched.
const callTimeout = 25 * time.Second

// Options configure a Host.
type Options struct {
	URL string // of the card; see CheckURL
	// The card is accepted if it has the digest Pin, or is signed by the key SignedBy. At most one
	// of them is set; without either, no card is accepted.
	Pin      string      // SHA-256 of the card without its signatures, as canonical JSON; see CheckPin
	SignedBy identity.ID // the zero ID for none
	Token    func() (string, error)
	Self     identity.ID  // of this site
	HTTP     *http.Client // nil for a client that dials public addresses and that of the URL
}

// Host is an agent elsewhere as a host of tasks. A task's ID is that which it has there. It is safe
// for concurrent use.
type Host struct {
	Options
	host, scheme string // as in the URL

	mu       sync.Mutex
	card     *described // nil while none was accepted
	fetched  time.Time
	messages []task.Task // answers without a task there, the oldest first
}

// CheckURL refuses a URL that is not that of a card that may be fetched.
func CheckURL(text string) error {
	return outbound.CheckURL(text, "a card", "https://hotel.example.com/.well-known/agent-card.json")
}

// CheckPin refuses a text that is no digest.
func CheckPin(text string) error {
	if len(text) != 2*sha256.Size || strings.Trim(text, "0123456789abcdef") != "" {
		return errors.New("it is 64 digits and small letters; leave it out, and agentsite agents shows it")
	}
	return nil
}

// New returns a host. It dials nothing.
func New(o Options) (*Host, error) {
	u, err := url.Parse(o.URL)
	if err == nil {
		err = CheckURL(o.URL)
	}
	if err != nil {
		return nil, err
	}
	h := &Host{Options: o, host: u.Host, scheme: u.Scheme}
	if h.HTTP == nil {
		h.HTTP = outbound.Client(callTimeout, u.Hostname())
	}
	return h, nil
}

// method has the name of a method in each version.
type method struct{ now, before string }

var (
	sendMessage = method{"SendMessage", "message/send"}
	getTask     = method{"GetTask", "tasks/get"}
	cancelTask  = method{"CancelTask", "tasks/cancel"}
	listTasks   = method{"ListTasks", ""}
)

// call calls a method. Errors are faults: Offline where nothing was sent, UnknownOutcome where no
// answer came.
func (h *Host) call(ctx context.Context, d *described, m method, params map[string]any) (jsontext.Value, error) {
	name, version := m.now, "1.0"
	if d.legacy {
		name, version = m.before, "0.3"
	} else if d.tenant != "" {
		params["tenant"] = d.tenant
	}
	call := fault.Call{URL: d.url, Method: name, Params: params, Timeout: callTimeout, Kinds: kinds}
	return call.Send(ctx, h.HTTP, func(r *http.Request, _ []byte) error { return h.authorize(r, version) })
}

// kinds are those of the error codes of A2A (section 5.4).
var kinds = map[int]device.FaultKind{
	rpc.CodeInternal: device.UnknownOutcome, -32001: device.Invalid, -32002: device.Invalid, -32004: device.Invalid, -32005: device.Invalid, -32009: device.Invalid,
}

// wireTask is a task, or in 0.3 a message, as it is read here.
type wireTask struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"` // 0.3
	Status struct {
		State   string   `json:"state"`
		Message *message `json:"message"`
	} `json:"status"`
	Artifacts []struct {
		Parts []part `json:"parts"`
	} `json:"artifacts"`
	History []message `json:"history"`
	Parts   []part    `json:"parts"` // of a message
}

type message struct {
	ID    string `json:"messageId"`
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	Kind string         `json:"kind,omitzero"` // 0.3
	Text *string        `json:"text,omitzero"`
	Data jsontext.Value `json:"data,omitzero"`
}

var errAnswer = device.Faultf(device.UnknownOutcome, "it answered with something else than A2A has")

// task returns a task as the site has it.
func (w *wireTask) task() (task.Task, error) {
	state := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(w.Status.State, "TASK_STATE_")), "-", "_")
	t := task.Task{ID: w.ID, Agent: AgentName, State: task.State(state)}
	if t.State == task.Failed {
		t.Fault = string(device.Unavailable)
	}
	if !task.Working.Before(t.State) && t.State != task.Submitted && t.State != task.Working {
		return t, errAnswer
	}
	if w.ID == "" || len(w.ID) > maxTaskID || strings.ContainsFunc(w.ID, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return t, errAnswer
	}
	var parts []part
	for _, a := range w.Artifacts {
		parts = append(parts, a.Parts...)
	}
	if len(parts) == 0 || t.State != task.Completed {
		parts = w.says()
	}
	if t.State == task.Completed || t.State.Ended() && len(parts) > 0 { // of a failed one the reason
		t.Result = value(parts)
	}
	return t, nil
}

// says returns what the agent said last about the task: in its status, or at the end of its history.
func (w *wireTask) says() []part {
	m := w.Status.Message
	if n := len(w.History); m == nil && n > 0 {
		m = &w.History[n-1]
	}
	if m == nil || m.Role != "ROLE_AGENT" && m.Role != "agent" {
		return nil
	}
	return m.Parts
}

// value returns the content of parts: one as it is, and several as a list. Files are left out.
func value(parts []part) jsontext.Value {
	var all []any
	for _, p := range parts {
		switch {
		case p.Text != nil:
			all = append(all, *p.Text)
		case p.Data != nil:
			all = append(all, p.Data)
		}
	}
	var v any = all
	switch len(all) {
	case 0:
		return jsontext.Value("null")
	case 1:
		v = all[0]
	}
	text, err := json.Marshal(v)
	if err != nil {
		return jsontext.Value("null")
	}
	return text
}
