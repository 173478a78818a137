package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// framed reads all messages that there are.
func framed(codec Codec, r io.Reader) (all [][]byte, err error) {
	f := newFrameReader(codec, bufio.NewReaderSize(r, 16), func(n int) bool { return n > MaxMessage })
	for {
		b, err := f.next()
		if err != nil {
			return all, err
		}
		all = append(all, b)
	}
}

func TestSequence(t *testing.T) {
	long := "\x79\x03\xe8" + strings.Repeat("x", 1000)
	for in, want := range map[string]struct {
		items []string
		err   error
	}{
		"":                          {nil, io.EOF},
		"\x01\x02":                  {[]string{"\x01", "\x02"}, io.EOF},
		"\xa1\x61a\x82\x01\x20\xf6": {[]string{"\xa1\x61a\x82\x01\x20", "\xf6"}, io.EOF},
		long + "\xfb\x00\x00\x00\x00\x00\x00\x00\x00": {[]string{long, "\xfb\x00\x00\x00\x00\x00\x00\x00\x00"}, io.EOF},
		"\xc1\x01\x02":                             {[]string{"\xc1\x01", "\x02"}, io.EOF},
		"\x80\xa0\x60":                             {[]string{"\x80", "\xa0", "\x60"}, io.EOF},
		"\x01\x82\x01":                             {[]string{"\x01"}, io.ErrUnexpectedEOF},
		"\x62x":                                    {nil, io.ErrUnexpectedEOF},
		"\x19\x01":                                 {nil, io.ErrUnexpectedEOF},
		"\x01\x9f\x01\xff":                         {[]string{"\x01"}, errUnframed},
		"\x1c":                                     {nil, errUnframed},
		"\x7a\x00\x04\x00\x01":                     {nil, errTooLong},
		"\x9b\xff\xff\xff\xff\xff\xff\xff\xff":     {nil, errTooLong},
		"\xbb\x80\x00\x00\x00\x00\x00\x00\x00":     {nil, errTooLong},
		"\x5b\xff\xff\xff\xff\xff\xff\xff\xff":     {nil, errTooLong},
		strings.Repeat("\x9a\x00\x03\x00\x00", 9):  {nil, errTooLong},
		"\x82\x9a\x00\x03\xff\xff\x9a\x00\x03\xff": {nil, errTooLong},
	} {
		got, err := framed(CBOR, strings.NewReader(in))
		if len(got) != len(want.items) || !errors.Is(err, want.err) {
			t.Errorf("%.20x: %.20x, %v", in, got, err)
			continue
		}
		for i := range got {
			if string(got[i]) != want.items[i] {
				t.Errorf("%.20x: %.20x, want %.20x", in, got[i], want.items[i])
			}
		}
	}
}

// TestSequenceLong: of a message that is too long the ID is found, wherever it stands, and the next message
// is read. What is no message, or longer than may be skipped, ends the sequence.
func TestSequenceLong(t *testing.T) {
	of := func(members ...any) []byte {
		b := appendHead(nil, cborMap, uint64(len(members)/2))
		for _, m := range members {
			item, err := cborEnc.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			b = append(b, item...)
		}
		return b
	}
	long := strings.Repeat("x", MaxMessage)
	many := make([]int, MaxMessage)
	nested := map[string]any{"id": 1, "a": []any{long, map[string]any{"id": 1}, "id", 1}}
	for name, tt := range map[string]struct {
		message []byte
		id      ID
		err     error // nil for a message that is skipped
	}{
		"first":          {of("id", 7, "method", "echo", "params", nested), NumberID(7), nil},
		"last":           {of("method", "echo", "params", nested, "id", "x"), TextID("x"), nil},
		"large":          {of("params", many, "id", uint64(1<<40)), NumberID(1 << 40), nil},
		"key":            {of(long, 1, "id", 7), NumberID(7), nil},
		"within":         {of("method", "id", "params", nested, "result", []any{"id", 1}), ID{}, nil},
		"no ID":          {of("id", nested, "params", long), ID{}, nil},
		"long ID":        {of("id", long, "params", long), ID{}, nil},
		"text":           {of(long, 0)[1:], ID{}, errTooLong},
		"list":           {of([]any{long}, 0)[1:], ID{}, errTooLong},
		"much":           {of("params", strings.Repeat("x", maxSkipped), "id", 7), ID{}, errTooLong},
		"much of little": {of("params", make([]uint32, maxSkipped), "id", 7), ID{}, errTooLong},
	} {
		for _, r := range []io.Reader{bytes.NewReader(append(tt.message, 1)), iotest.HalfReader(bytes.NewReader(append(tt.message, 1)))} {
			s := newFrameReader(CBOR, bufio.NewReaderSize(r, 16), func(n int) bool { return n > MaxMessage })
			_, err := s.next()
			var skipped *LongLine
			switch {
			case tt.err != nil:
				if err != tt.err {
					t.Errorf("%s: %v, want %v", name, err, tt.err)
				}
				continue
			case !errors.As(err, &skipped) || skipped.ID != tt.id:
				t.Errorf("%s: %#v, want %v", name, err, tt.id)
			}
			if b, err := s.next(); string(b) != "\x01" {
				t.Errorf("%s: the next one is %.20x, %v", name, b, err)
			}
		}
		strict := newFrameReader(CBOR, bufio.NewReader(bytes.NewReader(tt.message)), func(n int) bool { return n > maxStrangerMessage })
		if _, err := strict.next(); err != errTooLong {
			t.Errorf("%s, of a stranger: %v", name, err)
		}
	}
}

// inMemory is a stream that brings some bytes, and takes what is written.
type inMemory struct {
	io.Reader
	bytes.Buffer
}

func (m *inMemory) Read(b []byte) (int, error) { return m.Reader.Read(b) }
func (m *inMemory) Close() error               { return nil }

// FuzzStream sends any bytes to either side of a stream. Nothing panics or hangs, and the result
// does not depend on how the bytes are split. The server's answers are messages, no more than it
// got, and every call ends.
func FuzzStream(f *testing.F) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":[1,"x",null]}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","error":{"code":429,"message":"too many"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":"x","method":"initialize","params":{}}`,
	} {
		f.Add(false, []byte(text+"\n"+text+"\r\n\n"+text))
		inCBOR, err := toCBOR([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(true, append(inCBOR, inCBOR...))
		f.Add(true, inCBOR[:len(inCBOR)-1])
	}
	f.Add(true, []byte("\x9f\x01\xff"))
	f.Add(true, []byte("\x9b\x7f\xff\xff\xff\xff\xff\xff\xff"))
	f.Add(false, []byte(strings.Repeat("[", 100)))
	dispatcher := NewDispatcher(map[string]Method{"echo": func(_ context.Context, c *Call) (any, error) { return c.Params, nil }})
	f.Fuzz(func(t *testing.T, inCBOR bool, data []byte) {
		codec := JSON
		if inCBOR {
			codec = CBOR
		}
		whole, err := framed(codec, bytes.NewReader(data))
		pieces, err2 := framed(codec, iotest.OneByteReader(bytes.NewReader(data)))
		if len(whole) != len(pieces) || err.Error() != err2.Error() {
			t.Fatalf("%d messages, %v; in pieces %d, %v", len(whole), err, len(pieces), err2)
		}
		if joined := bytes.Join(whole, nil); codec == CBOR && !bytes.HasPrefix(data, joined) {
			t.Fatalf("%x came, and %x was read", data, joined)
		}

		m := &inMemory{Reader: bytes.NewReader(data)}
		(&Stream{Dispatcher: dispatcher, Terms: Terms{Codec: codec, Known: func() bool { return false }}}).Serve(t.Context(), m)
		answers, err := framed(codec, &m.Buffer)
		if err != io.EOF || len(answers) > len(whole)+1 {
			t.Errorf("%d messages came, and %d answers: %v", len(whole), len(answers), err)
		}
		for _, a := range answers {
			if _, method, _, err := DecodeResponse(codec, a); method != "" || err != nil && !errors.As(err, new(*Error)) {
				t.Errorf("it answered %q: %v", a, err)
			}
		}

		c := NewStreamClient(&inMemory{Reader: bytes.NewReader(data)}, codec)
		ran := make(chan error, 1)
		go func() { ran <- c.Run() }()
		c.Call(t.Context(), Request{ID: NumberID(1), Method: "echo"}, func(string, Raw) {})
		if err := <-ran; err == nil {
			t.Error("the stream's end was none")
		}
	})
}

// TestStreamCBOR is a client and a server that speak CBOR: many calls at a time, and a
// handshake that is none.
func TestStreamCBOR(t *testing.T) {
	ended := make(chan string, 1)
	near, far := net.Pipe()
	s := &Stream{Dispatcher: NewDispatcher(testMethods(ended)), Terms: Terms{Codec: CBOR}, Handover: func(context.Context, io.ReadWriteCloser) error {
		t.Error("a stream of CBOR was handed over")
		return nil
	}}
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), near) }()
	c := NewStreamClient(far, CBOR)
	ran := make(chan error, 1)
	go func() { ran <- c.Run() }()

	waiting, given := make(chan bool), make(chan error, 1)
	ctx, giveUp := context.WithCancel(t.Context())
	go func() {
		_, err := c.Call(ctx, Request{ID: TextID("long"), Method: "wait"}, func(string, Raw) { close(waiting) })
		given <- err
	}()
	<-waiting
	for i := range uint64(10) {
		res, err := c.Call(t.Context(), Request{ID: NumberID(i), Method: "echo", Params: map[string]uint64{"n": i << 60}}, nil)
		var got struct {
			N uint64 `json:"n"`
		}
		if err == nil {
			err = res.Decode(&got)
		}
		if err != nil || got.N != i<<60 {
			t.Errorf("%d, %v", got.N, err)
		}
	}
	var fault *Error
	if _, err := c.Call(t.Context(), Request{ID: NumberID(99), Method: "initialize"}, nil); !errors.As(err, &fault) || fault.Code != CodeMethodNotFound {
		t.Errorf("a handshake in CBOR: %v", err)
	}
	giveUp()
	if err := <-given; err != context.Canceled {
		t.Error(err)
	}
	if id := <-ended; id != "long" {
		t.Errorf("%s was cancelled", id)
	}
	c.Close()
	<-ran
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestStranger asks for little until the peer is known.
func TestStranger(t *testing.T) {
	known := false
	say, hear, hangUp := talk(t, &Stream{Dispatcher: NewDispatcher(testMethods(make(chan string, 3))), Terms: Terms{Known: func() bool { return known }}})
	for _, id := range []string{"1", "2"} {
		say(`{"jsonrpc":"2.0","id":` + id + `,"method":"wait"}`)
		hear()
	}
	say(`{"jsonrpc":"2.0","id":3,"method":"echo"}`)
	if got := hear(); !strings.Contains(got, "2 requests") {
		t.Error(got)
	}
	known = true // ordered before the next line by the pipe
	say(`{"jsonrpc":"2.0","id":4,"method":"echo","params":"` + strings.Repeat("x", 20<<10) + `"}`)
	if got := hear(); len(got) < 20<<10 {
		t.Error(got)
	}
	hangUp()
}

// TestShortenDeadline: a peer that does not read delays the end no longer than a peer that does.
func TestShortenDeadline(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- (&Stream{Dispatcher: NewDispatcher(testMethods(nil))}).Serve(ctx, near) }()
	io.WriteString(far, `{"jsonrpc":"2.0","id":1,"method":"echo"}`+"\n")
	far.Read(make([]byte, 1)) // the rest of the answer is not
	begun := time.Now()
	end()
	<-done
	if took := time.Since(begun); took > writeTimeout/2 {
		t.Errorf("it took %v", took)
	}
	far.Close()
}

// TestSameID: an id is free again when its answer goes out, not some time after.
func TestSameID(t *testing.T) {
	w := &watched{Reader: strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"echo"}`), t: t}
	w.s = &Stream{Dispatcher: NewDispatcher(testMethods(nil))}
	if err := w.s.Serve(t.Context(), w); err != nil || !w.answered {
		t.Error(w.answered, err)
	}
}

// watched looks at what its stream has running when the answer is written.
type watched struct {
	io.Reader
	t        *testing.T
	s        *Stream
	answered bool
}

func (w *watched) Write(b []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.answered = true; len(w.s.running) > 0 {
		w.t.Errorf("%v is running when %s goes out", w.s.running, b)
	}
	return len(b), nil
}

func (w *watched) Close() error { return nil }

// FuzzLongLine: of a line that is a message, no other ID is found than its own.
func FuzzLongLine(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"echo","params":{"id":1}}`, `{"method":"echo","params":{"id":1},"id":"x", "jsonrpc":"2.0"}`,
		`{"params":{"id":1}}`, `{"a":"b,\"id\":1}"}`, `{"a":[{"id":1}],"id":null}`, `{"id":1e3}`, `{"":{"a\"b":"\\"},"id":-1}`,
	} {
		f.Add(line, 40, 40)
	}
	f.Fuzz(func(t *testing.T, line string, begin, end int) {
		if begin < 0 || end < 0 || !jsontext.Value(line).IsValid() {
			return
		}
		got := idOfLine([]byte(line[:min(begin, len(line))]), []byte(line[max(0, len(line)-end):]))
		var own struct {
			ID jsontext.Value `json:"id"`
		}
		if got.IsZero() || json.Unmarshal([]byte(line), &own) != nil {
			return
		}
		var want ID
		if err := json.Unmarshal(own.ID, &want); err != nil || got != want {
			t.Errorf("%s: %v, want %s", line, got, own.ID)
		}
	})
}
