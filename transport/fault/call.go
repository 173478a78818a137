package fault

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"

	"agentsite/device"
	"agentsite/transport/web/outbound"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxAnswer bounds an answer, in bytes.
const MaxAnswer = 256 << 10

// Call is a call of JSON-RPC to an agent elsewhere, over HTTP.
type Call struct {
	URL, Method string
	Params      any
	Timeout     time.Duration
	Kinds       map[int]device.FaultKind // of the codes that its protocol adds; may be nil
}

// Send makes the call. authorize adds what proves the caller to the request, by its body. Errors are
// faults: Offline where nothing was sent, UnknownOutcome where no answer came.
func (c Call) Send(ctx context.Context, client *http.Client, authorize func(r *http.Request, body []byte) error) (jsontext.Value, error) {
	body, err := json.Marshal(struct {
		Version string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", 1, c.Method, c.Params}, json.Deterministic(true))
	if err != nil {
		return nil, device.Faultf(device.Invalid, "the parameters are no JSON")
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	sent := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return nil, device.Faultf(device.Internal, "%w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if err := authorize(r, body); err != nil {
		return nil, device.Faultf(device.Denied, "%w", err)
	}
	text, err := outbound.Do(client, r, MaxAnswer)
	var refused *outbound.StatusError
	switch {
	case errors.As(err, &refused):
		return nil, status(refused.Code)
	case err != nil && !sent:
		return nil, device.Faultf(device.Offline, "%s is not reached: %s", r.URL.Host, reason(err))
	case err != nil:
		return nil, device.Faultf(device.UnknownOutcome, "%s gave no answer that can be read", r.URL.Host)
	}
	return result(text, c.Kinds)
}

// reason says in words of our own why a host is not reached.
func reason(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "no answer in time"
	}
	return "no connection"
}
