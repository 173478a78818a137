package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"
)

const (
	maxMessage = 1 << 20
	maxDepth   = 64
	// A child may send so many messages and bytes at once, and then so many a second.
	messageBurst = 200
	messageRate  = 50
	byteBurst    = 8 << 20
	byteRate     = 1 << 20
	// writeTime limits the time that a child leaves a message unread.
	writeTime = 10 * time.Second
)

// conn is a child's connection; a message is a line. Input from the child is limited in size, depth
// and rate before it is decoded.
type conn struct {
	name   string // of the agent
	rw     io.ReadWriteCloser
	in     *bufio.Reader
	writes sync.Mutex

	messages, bytes *rate.Limiter

	once  sync.Once
	cause atomic.Pointer[string] // the child's first error
	over  atomic.Bool            // it cannot be used any more, though the child may take a while to end

	skipped atomic.Int64           // lines
	first   atomic.Pointer[string] // the beginning of the first of them
}

func newConn(rw io.ReadWriteCloser) *conn {
	return &conn{rw: rw, in: bufio.NewReaderSize(rw, 16<<10), messages: rate.NewLimiter(messageRate, messageBurst), bytes: rate.NewLimiter(byteRate, byteBurst)}
}

// Connect implements sdk.Transport: c is used for one session.
func (c *conn) Connect(context.Context) (sdk.Connection, error) { return c, nil }

// SessionID implements sdk.Connection.
func (c *conn) SessionID() string { return "" }

// Read returns the next message. After an error the session ends.
func (c *conn) Read(context.Context) (jsonrpc.Message, error) {
	m, err := c.read()
	c.over.CompareAndSwap(false, err != nil)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, fs.ErrClosed) && !errors.Is(err, net.ErrClosed) {
		says := err.Error()
		c.cause.CompareAndSwap(nil, &says)
	}
	return m, err
}

func (c *conn) read() (jsonrpc.Message, error) {
	for {
		line, long, err := c.line()
		if err != nil {
			return nil, err
		}
		if !c.messages.Allow() {
			return nil, errFlood
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var m jsonrpc.Message
		text, err := jsontext.Value(nil), errTooLong
		if !long {
			text, err = repair(line)
		}
		if err == nil {
			m, err = message(text)
		}
		if err == nil {
			return m, nil
		}
		if id, ok := answered(line); ok {
			return broken(id, err), nil
		}
		c.skip(line)
	}
}

// skip leaves out a line that is no message, as the SDKs do: children write banners and logs there.
func (c *conn) skip(line []byte) {
	if c.skipped.Add(1) == 1 {
		first := strings.ToValidUTF8(string(bytes.TrimSpace(line[:min(len(line), 200)])), "\ufffd")
		c.first.Store(&first)
		slog.Warn("child wrote a line that is no message to its standard output, which is left out", "agent", c.name, "line", first)
	}
}

// skips says how many lines were left out; "" for none.
func (c *conn) skips() string {
	first := c.first.Load()
	if first == nil {
		return ""
	}
	return fmt.Sprintf("lines of its standard output that are no messages were left out: %d, the first %.120q", c.skipped.Load(), *first)
}

var (
	errFlood   = errors.New("it floods: more than 50 messages or 1 MiB a second")
	errTooLong = fmt.Errorf("it has more than %d MiB", maxMessage>>20)
)

// line reads a line. Of a long one it returns the first maxMessage bytes at most.
func (c *conn) line() (all []byte, long bool, err error) {
	for {
		part, err := c.in.ReadSlice('\n')
		if !c.bytes.AllowN(time.Now(), len(part)) {
			return nil, false, errFlood
		}
		if long = long || len(all)+len(part) > maxMessage; !long {
			all = append(all, part...)
		}
		switch {
		case err == nil:
			return all, long, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, false, io.EOF // an unfinished line is none
		default:
			return nil, false, err
		}
	}
}

// Write sends a message. A child that does not read it is ended: nothing else ends the call.
func (c *conn) Write(_ context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	c.writes.Lock()
	defer c.writes.Unlock()
	defer time.AfterFunc(writeTime, func() { c.fail(fmt.Sprintf("it did not read what it was sent within %v", writeTime)) }).Stop()
	_, err = c.rw.Write(append(text, '\n'))
	return err
}

// fail ends a child because of an error.
func (c *conn) fail(says string) {
	c.cause.CompareAndSwap(nil, &says)
	c.Close()
}

// Close ends the connection, and with it the child.
func (c *conn) Close() (err error) {
	c.over.Store(true)
	c.once.Do(func() { err = c.rw.Close() })
	return err
}
