package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// methods for the tests: echo answers with its params, wait with why it ended.
func testMethods(ended chan<- string) map[string]Method {
	return map[string]Method{
		"echo": func(_ context.Context, c *Call) (any, error) { return c.Params, nil },
		"wait": func(ctx context.Context, c *Call) (any, error) {
			c.Notify("waiting", nil)
			<-ctx.Done()
			ended <- c.ID.String()
			return nil, ctx.Err()
		},
		"panic": func(context.Context, *Call) (any, error) { panic("a defect") },
		"field": func(context.Context, *Call) (any, error) { return nil, &FieldError{"a.b", "must be a number"} },
		"wrong": func(context.Context, *Call) (any, error) { return nil, io.ErrNoProgress },
	}
}

// talk serves a stream and returns the far end of it.
func talk(t *testing.T, s *Stream) (say func(string), hear func() string, hangUp func()) {
	t.Helper()
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Serve(t.Context(), near) }()
	r := bufio.NewReader(far)
	far.SetDeadline(time.Now().Add(10 * time.Second))
	say = func(line string) {
		t.Helper()
		if _, err := io.WriteString(far, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	hear = func() string {
		t.Helper()
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
	hangUp = func() {
		t.Helper()
		far.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return say, hear, hangUp
}

func TestStream(t *testing.T) {
	ended := make(chan string, 1)
	say, hear, hangUp := talk(t, &Stream{Dispatcher: NewDispatcher(testMethods(ended))})
	// A transcript: the lines sent, and how the lines begin that come back.
	for _, turn := range [][]string{
		{`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":[1,"x",null]}}`, `{"jsonrpc":"2.0","id":1,"result":{"a":[1,"x",null]}}`},
		{`{"jsonrpc":"2.0","id":"q","method":"nothing"}`, `{"jsonrpc":"2.0","id":"q","error":{"code":-32601,"message":"there is no method \"nothing\"`},
		{`{"jsonrpc":"2.0","method":"echo"}`},
		{``},
		{`{"jsonrpc":"2.0","id":2,"method":"field"}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"params: a.b: `},
		{`{"jsonrpc":"2.0","id":3,"method":"wrong"}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"`},
		{`{"jsonrpc":"2.0","id":4,"method":"panic"}`, `{"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"`},
		{`[{"jsonrpc":"2.0","id":5,"method":"echo"}]`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"`},
		{`{"jsonrpc":"1.0","id":6,"method":"echo"}`, `{"jsonrpc":"2.0","id":6,"error":{"code":-32600,"message":"\"jsonrpc\"`},
		{`{"jsonrpc":"2.0","id":7,"result":{}}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"`},
		{`{"jsonrpc":"2.0","id":8,"Method":"echo"}`, `{"jsonrpc":"2.0","id":8,"error":{"code":-32600,"message":"`},
		{`{"jsonrpc":"2.0","id":8,"id":9,"method":"echo"}`, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"echo"}`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"`},
		{`{"jsonrpc":"2.0","id":10,"method":"wait"}`, `{"jsonrpc":"2.0","method":"waiting"}`},
		{`{"jsonrpc":"2.0","id":10,"method":"echo"}`, `{"jsonrpc":"2.0","id":10,"error":{"code":-32600,"message":"a request with the id 10`},
	} {
		say(turn[0])
		for _, want := range turn[1:] {
			if got := hear(); !strings.HasPrefix(got, want) {
				t.Errorf("%s\n got %s\nwant %s", turn[0], got, want)
			}
		}
	}
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":10}}`)
	if id := <-ended; id != "10" {
		t.Errorf("%s was cancelled", id)
	}
	// A cancelled request is not answered: the next line is the next answer.
	say(`{"jsonrpc":"2.0","id":11,"method":"echo","params":{}}`)
	if got := hear(); got != `{"jsonrpc":"2.0","id":11,"result":{}}` {
		t.Errorf("after a cancellation: %s", got)
	}
	hangUp()
}

func TestStreamLimits(t *testing.T) {
	ended := make(chan string, MaxInFlight)
	d := NewDispatcher(testMethods(ended))
	d.Urgent = func(method string, params Raw) bool {
		var p struct {
			Stop bool `json:"stop"`
		}
		return method == "echo" && params.Decode(&p) == nil && p.Stop
	}
	say, hear, hangUp := talk(t, &Stream{Dispatcher: d})
	for i := range MaxInFlight {
		say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"wait"}`, i))
		hear()
	}
	say(`{"jsonrpc":"2.0","id":"more","method":"echo"}`)
	if got := hear(); !strings.Contains(got, `"code":429`) {
		t.Errorf("one too many: %s", got)
	}
	say(`{"jsonrpc":"2.0","id":"urgent","method":"echo","params":{"stop":true}}`)
	if got := hear(); got != `{"jsonrpc":"2.0","id":"urgent","result":{"stop":true}}` {
		t.Errorf("an urgent one: %s", got)
	}
	hangUp() // ends them all; Serve waits for that
	if len(ended) != MaxInFlight {
		t.Errorf("%d of %d requests had ended when Serve returned", len(ended), MaxInFlight)
	}
}

// TestStreamTooLong: a line that does not end ends the stream, and so does a long one of a stranger.
func TestStreamTooLong(t *testing.T) {
	for name, tt := range map[string]struct {
		known func() bool
		line  string
	}{
		"endless":  {nil, strings.Repeat("[", maxSkipped+8<<10)},
		"stranger": {func() bool { return false }, strings.Repeat("[", maxStrangerMessage+8<<10)},
	} {
		near, far := net.Pipe()
		s := &Stream{Dispatcher: NewDispatcher(testMethods(nil)), Terms: Terms{Known: tt.known}}
		done := make(chan error, 1)
		go func() { done <- s.Serve(t.Context(), near) }()
		go io.WriteString(far, tt.line) // no end of line; Serve stops reading
		line, err := bufio.NewReader(far).ReadString('\n')
		if err != nil || !strings.Contains(line, "at most") {
			t.Errorf("%s: %q, %v", name, line, err)
		}
		if err := <-done; err == nil {
			t.Errorf("%s: taken for a good end", name)
		}
		far.Close()
	}
}

// TestStreamLongLine: a line that is too long is answered by its ID, and ends neither the stream nor
// another call.
func TestStreamLongLine(t *testing.T) {
	ended := make(chan string, 1)
	say, hear, hangUp := talk(t, &Stream{Dispatcher: NewDispatcher(testMethods(ended))})
	say(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)
	hear()
	long := strings.Repeat("x", MaxMessage)
	for line, id := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"echo","params":{"id":1,"a":"` + long + `"}}`:   "7",
		`{"method":"echo","params":{"id":1,"a":"` + long + `"},"jsonrpc":"2.0","id":"8"}`: `"8"`,
		`{"method":"echo","params":{"a":"` + long + `"},"id":9, "jsonrpc":"2.0"}`:         "9",
		`{"method":"echo","params":{"a":"` + long + `","id":1}}`:                          "",
		`{"method":"echo","params":{"a":"` + long + `,\"id\":1}"}}`:                       "",
		`{"jsonrpc":"2.0","id":{},"method":"echo","params":{"a":"` + long + `"},"id":3}`:  "",
		`[` + long + "]": "",
	} {
		say(line)
		if answer := hear(); strings.Contains(answer, `"id"`) != (id != "") || !strings.Contains(answer, id) || !strings.Contains(answer, "at most") {
			t.Errorf("%.60s…%.40s: %s", line, line[len(line)-20:], answer)
		}
		say(`{"jsonrpc":"2.0","id":2,"method":"echo"}`)
		if answer := hear(); !strings.Contains(answer, `"id":2`) {
			t.Errorf("the next one: %s", answer)
		}
	}
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if id := <-ended; id != "1" {
		t.Errorf("%s was cancelled", id)
	}
	hangUp()
}

func TestHandover(t *testing.T) {
	got := make(chan string, 2)
	say, hear, hangUp := talk(t, &Stream{
		Dispatcher: NewDispatcher(testMethods(nil)),
		Handover: func(_ context.Context, rw io.ReadWriteCloser) error {
			lines := bufio.NewScanner(rw)
			for lines.Scan() {
				got <- lines.Text()
				io.WriteString(rw, "theirs\n")
			}
			return nil
		},
	})
	say(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
	hear()
	for _, line := range []string{`{"jsonrpc":"2.0","id":2,"method":"initialize"}`, `{"jsonrpc":"2.0","id":3,"method":"echo"}`} {
		say(line)
		if answer := hear(); answer != "theirs" || <-got != line {
			t.Errorf("%s was not handed over whole: %s", line, answer)
		}
	}
	hangUp()
}

func TestStreamClient(t *testing.T) {
	ended := make(chan string, 1)
	near, far := net.Pipe()
	s := &Stream{Dispatcher: NewDispatcher(testMethods(ended))}
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), near) }()
	c := NewStreamClient(far, JSON)
	ran := make(chan error, 1)
	go func() { ran <- c.Run() }()

	res, err := c.Call(t.Context(), Request{ID: NumberID(1), Method: "echo", Params: map[string]int{"n": 5}}, nil)
	if text, _ := res.JSONText(); err != nil || string(text) != `{"n":5}` {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := c.Call(t.Context(), Request{ID: NumberID(2), Method: "nothing"}, nil); err == nil || err.(*Error).Code != CodeMethodNotFound {
		t.Errorf("an unknown method: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = c.Call(ctx, Request{ID: NumberID(3), Method: "wait"}, func(method string, _ Raw) { cancel() })
	if err != context.Canceled {
		t.Errorf("a call given up: %v", err)
	}
	<-ended // the far side was told
	near.Close()
	if err := <-ran; err == nil {
		t.Error("Run ended well on a broken stream")
	}
	if _, err := c.Call(t.Context(), Request{ID: NumberID(4), Method: "echo"}, nil); err == nil {
		t.Error("a call over a broken stream was taken")
	}
	<-served
	c.Close()
}

// half is a stream that breaks in the middle of a line.
type half struct {
	io.Reader
	written []byte
	closed  bool
}

func (h *half) Write(b []byte) (int, error) {
	if h.written != nil {
		panic("a line after half a line")
	}
	h.written = b[:len(b)/2]
	return len(b) / 2, io.ErrShortWrite
}

func (h *half) Close() error { h.closed = true; return nil }

func TestBrokenWrite(t *testing.T) {
	h := &half{}
	w := &messageWriter{w: h, end: "\n"}
	for range 2 {
		if err := w.message([]byte(`{"jsonrpc":"2.0"}`)); err != io.ErrShortWrite {
			t.Errorf("%v", err)
		}
	}
	if !h.closed {
		t.Error("a broken stream was left open")
	}
}

// TestCallerLeaves: a caller that leaves in the middle of its call is no defect of the site's,
// and the log has no error of it; a method that fails is one.
func TestCallerLeaves(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	for _, tt := range []struct {
		method string
		logged bool
	}{{"tell", false}, {"left", false}, {"wrong", true}} {
		log.Reset()
		methods := testMethods(nil)
		methods["tell"] = func(_ context.Context, c *Call) (any, error) { return nil, c.Notify("told", nil) }
		methods["left"] = func(context.Context, *Call) (any, error) { return nil, context.Canceled }
		line := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"` + tt.method + `"}` + "\n")
		s := &Stream{Dispatcher: NewDispatcher(methods)}
		s.Serve(t.Context(), &hungUp{closable{Reader: line}})
		if logged := log.Len() > 0; logged != tt.logged {
			t.Errorf("%s: the log says %q", tt.method, log.String())
		}
	}
}

// TestStreamEnd ends the site under a subscription: it still gets its result.
func TestStreamEnd(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	s := &Stream{Dispatcher: NewDispatcher(map[string]Method{"listen": func(running context.Context, c *Call) (any, error) {
		c.Notify("listening", nil)
		<-ctx.Done() // the site is ending
		return "ended on purpose", running.Err()
	}})}
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, near) }()
	far.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(far, `{"jsonrpc":"2.0","id":1,"method":"listen"}`+"\n")
	r := bufio.NewReader(far)
	for _, want := range []string{`{"jsonrpc":"2.0","method":"listening"}`, `{"jsonrpc":"2.0","id":1,"result":"ended on purpose"}`} {
		if got, err := r.ReadString('\n'); err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s, %v", got, err)
		}
		end()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	far.Close()
}

// A peer that does not read its answers is soon not read from any more.
func TestStreamFlood(t *testing.T) {
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- (&Stream{Dispatcher: NewDispatcher(testMethods(nil))}).Serve(t.Context(), near) }()
	io.WriteString(far, `{"jsonrpc":"2.0","id":"first","method":"echo"}`+"\n")
	if _, err := far.Read(make([]byte, 1)); err != nil { // the rest of its answer waits to be read
		t.Fatal(err)
	}
	far.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	said := 0
	for said < 1000 {
		if _, err := fmt.Fprintf(far, `{"jsonrpc":"2.0","id":%d,"method":"echo"}`+"\n", said); err != nil {
			break
		}
		said++
	}
	if said > MaxInFlight/2 {
		t.Errorf("%d requests were taken of a peer that does not read", said)
	}
	far.Close()
	<-done
}

// The last message needs no end of line.
func TestStreamLastLine(t *testing.T) {
	in := &closable{Reader: strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"echo","params":1}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"echo","params":2}`)}
	if err := (&Stream{Dispatcher: NewDispatcher(testMethods(nil))}).Serve(t.Context(), in); err != nil {
		t.Error(err)
	}
	for _, want := range []string{`"id":1,"result":1}`, `"id":2,"result":2}`} {
		if got := in.written.String(); strings.Count(got, want) != 1 {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

// closable is a stream whose input is over at some time.
type closable struct {
	io.Reader
	written strings.Builder
}

func (c *closable) Write(b []byte) (int, error) { return c.written.Write(b) }
func (c *closable) Close() error                { return nil }

// TestStreamClientLongAnswer: an answer that is too long fails its own call, and neither another nor the
// next; one that does not say of which call it is ends the stream.
func TestStreamClientLongAnswer(t *testing.T) {
	for _, codec := range []Codec{JSON, CBOR} {
		t.Run(codec.ContentType(), func(t *testing.T) { testStreamClientLongAnswer(t, codec) })
	}
}

func testStreamClientLongAnswer(t *testing.T, codec Codec) {
	near, far := net.Pipe()
	defer far.Close()
	c := NewStreamClient(near, codec)
	ended := make(chan error, 1)
	go func() { ended <- c.Run() }()
	requests := newFrameReader(codec, bufio.NewReader(far), exceedsMaxAnswer)
	results := make(map[string]chan error)
	call := func(name string) {
		done := make(chan error, 1)
		results[name] = done
		go func() {
			_, err := c.Call(t.Context(), Request{ID: TextID(name), Method: "echo"}, nil)
			done <- err
		}()
		if _, err := requests.next(); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(begin string, length int) {
		text := fmt.Appendf(nil, `{"jsonrpc":"2.0",%s"result":{"x":"%s"}}`+"\n", begin, strings.Repeat("x", length))
		if codec == CBOR {
			text, _ = toCBOR(text)
		}
		far.Write(text)
	}
	call("waits")
	call("long")
	answer(`"id":"long",`, MaxAnswer)
	if err := <-results["long"]; err != errLongAnswer {
		t.Error(err)
	}
	answer(`"id":"nobody's",`, MaxAnswer)
	call("next")
	answer(`"id":"next",`, 1)
	answer(`"id":"waits",`, 1)
	for _, name := range []string{"next", "waits"} {
		if err := <-results[name]; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	call("without")
	answer("", MaxAnswer)
	if err := <-results["without"]; err == nil || <-ended == nil {
		t.Error(err)
	}
}

// TestStreamClientRefused: an error that the far side sends before it closes the stream is every
// call's error, although the calls cannot be sent any more.
func TestStreamClientRefused(t *testing.T) {
	c := NewStreamClient(&hungUp{closable{Reader: strings.NewReader(`{"jsonrpc":"2.0","error":{"code":429,"message":"too many"}}`)}}, JSON)
	ran := make(chan error, 1)
	go func() { ran <- c.Run() }()
	for i := range uint64(2) {
		_, err := c.Call(t.Context(), Request{ID: NumberID(i), Method: "echo"}, nil)
		var refused *Error
		if !errors.As(err, &refused) || refused.Code != CodeBusy || refused.Message != "too many" {
			t.Errorf("%v", err)
		}
	}
	<-ran
}

// hungUp is a stream whose far side is closed.
type hungUp struct{ closable }

func (h *hungUp) Write([]byte) (int, error) { return 0, syscall.EPIPE }
func (h *hungUp) Close() error              { h.Reader = strings.NewReader(""); return nil }
