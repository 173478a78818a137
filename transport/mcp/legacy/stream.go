package legacy

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"agentsite/agents/tools"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxInFlight bounds the requests of one stream, or of one batch over HTTP, that
// are not answered yet.
const maxInFlight = 32

// maxUrgent are places besides for calls that return outputs to safe.
const maxUrgent = 8

// stream is newline-delimited JSON on which no client can pile up work: the SDK
// queues without a bound whatever it reads.
type stream struct{ rw io.ReadWriteCloser }

func (s stream) Connect(ctx context.Context) (sdk.Connection, error) {
	lines := sdk.IOTransport{Reader: s.rw, Writer: s.rw, MaxLineLength: maxMessage}
	c, err := lines.Connect(ctx)
	return &bounded{Connection: c, open: make(map[jsonrpc.ID]bool)}, err
}

// bounded refuses requests beyond the limit, and reads neither requests nor notifications while an
// answer waits for its client to read. A client's answers always get through, because a request may
// be waiting for one.
type bounded struct {
	sdk.Connection
	closed atomic.Bool // by this side

	mu   sync.Mutex // held while writing
	open map[jsonrpc.ID]bool
}

func (b *bounded) Close() error {
	b.closed.Store(true)
	return b.Connection.Close()
}

// failed is the error of a read or a write; io.EOF once this side has closed the stream, because a
// session that it ends did not fail.
func (b *bounded) failed(err error) error {
	if err != nil && b.closed.Load() {
		return io.EOF
	}
	return err
}

func (b *bounded) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := b.Connection.Read(ctx)
		r, ok := m.(*jsonrpc.Request)
		if err != nil || !ok || b.admit(r) {
			return m, b.failed(err)
		}
		busy := &jsonrpc.Error{Code: codeBusy, Message: fmt.Sprintf("%d requests are running on this stream: wait for one to end", maxInFlight)}
		if err := b.Write(ctx, &jsonrpc.Response{ID: r.ID, Error: busy}); err != nil {
			return nil, err
		}
	}
}

func (b *bounded) admit(r *jsonrpc.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !r.IsCall() || b.open[r.ID]: // the SDK refuses an id that runs
		return true
	case len(b.open) >= maxInFlight+maxUrgent, len(b.open) >= maxInFlight && !urgent(r):
		return false
	}
	b.open[r.ID] = true
	return true
}

func urgent(r *jsonrpc.Request) bool {
	var p struct {
		Name string `json:"name"`
	}
	return r.Method == "tools/call" && json.Unmarshal(r.Params, &p) == nil && tools.ReturnsToSafe(p.Name)
}

func (b *bounded) Write(ctx context.Context, m jsonrpc.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, ok := m.(*jsonrpc.Response); ok {
		delete(b.open, r.ID)
	}
	return b.failed(b.Connection.Write(ctx, m))
}
