package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
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
	// writeTime is how long a child may leave a message unread.
	writeTime = 10 * time.Second
)

// conn is a child's connection; a message is a line. Input from the child is limited in size, depth
// and rate before it is decoded.
type conn struct {
	rw     io.ReadWriteCloser
	in     *bufio.Reader
	writes sync.Mutex

	messages, bytes *rate.Limiter

	once  sync.Once
	cause atomic.Pointer[string] // the child's first error
	over  atomic.Bool            // it cannot be used any more, though the child may take a while to end
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
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		if !c.messages.Allow() || !c.bytes.AllowN(time.Now(), len(line)) {
			return nil, errors.New("it floods: more than 50 messages or 1 MiB a second")
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := checkMessage(line); err != nil {
			return nil, fmt.Errorf("it sent what is not a message: %w", err)
		}
		m, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			return nil, errors.New("it sent JSON that is not a message of JSON-RPC 2.0")
		}
		return m, nil
	}
}

// line reads a line of at most maxMessage bytes.
func (c *conn) line() ([]byte, error) {
	var all []byte
	for {
		part, err := c.in.ReadSlice('\n')
		if len(all)+len(part) > maxMessage {
			return nil, fmt.Errorf("it sent a message of more than %d MiB", maxMessage>>20)
		}
		all = append(all, part...)
		switch {
		case err == nil:
			return all, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, io.EOF // an unfinished line is none
		default:
			return nil, err
		}
	}
}

// checkMessage accepts one JSON object, without a name twice in an object, in UTF-8, and at most
// maxDepth deep.
func checkMessage(line []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(line))
	if d.PeekKind() != '{' {
		return errors.New("a line is not a JSON object")
	}
	for {
		_, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return errors.New("a line is not valid JSON")
		case d.StackDepth() > maxDepth:
			return fmt.Errorf("its JSON is more than %d deep", maxDepth)
		case d.StackDepth() == 0 && len(bytes.TrimSpace(line[d.InputOffset():])) > 0:
			return errors.New("a line has more than one value")
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
