package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"agentsite/transport/rpc"
)

// site serves options on a loopback socket and returns a client of it.
func site(t *testing.T, ended chan<- error, codec rpc.Codec) *Client {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	o := options(ended)
	o.Hosts = []string{srv.Listener.Addr().String()}
	srv.Config.Handler = Handler(o)
	srv.Start()
	t.Cleanup(srv.Close)
	return &Client{URL: srv.URL + "/mcp", Token: testToken, Codec: codec, HTTP: srv.Client()}
}

func ask(method string, params any) rpc.Request {
	return rpc.Request{ID: rpc.NumberID(1), Method: method, Params: params, Version: "2026-07-28"}
}

var codecs = map[string]rpc.Codec{"JSON": rpc.JSON, "CBOR": rpc.CBOR}

func TestClient(t *testing.T) {
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			c := site(t, nil, codec)
			raw, err := c.Call(t.Context(), ask("echo", map[string]any{"a": []int{1, 2}}), nil)
			if text, _ := raw.JSONText(); err != nil || string(text) != `{"a":[1,2]}` {
				t.Errorf("echo: %s %v", text, err)
			}
			var heard []string
			raw, err = c.Call(t.Context(), ask("notes", noted{Notes: 3}), func(method string, params rpc.Raw) {
				text, _ := params.JSONText()
				heard = append(heard, method+string(text))
			})
			if text, _ := raw.JSONText(); err != nil || string(text) != `{"done":"yes"}` {
				t.Errorf("notes: %s %v", text, err)
			}
			if want := []string{`note{"n":0}`, `note{"n":1}`, `note{"n":2}`}; !slices.Equal(heard, want) {
				t.Errorf("heard %q, want %q", heard, want)
			}
			if _, err = c.Call(t.Context(), ask("notes", noted{Notes: 3}), nil); err != nil {
				t.Errorf("notes that nobody wants: %v", err)
			}
			r := ask("headers", nil)
			r.Name = "agentsite:///söil/1 "
			raw, err = c.Call(t.Context(), r, nil)
			if text, _ := raw.JSONText(); err != nil || string(text) != `["agentsite:///söil/1 "]` {
				t.Errorf("headers: %s %v", text, err)
			}
		})
	}
}

// TestClientErrors: a refusal of the site is an *rpc.Error whose code has the kind, whether a
// method or HTTP's checks refused.
func TestClientErrors(t *testing.T) {
	for name, codec := range codecs {
		for _, tt := range []struct {
			name   string
			change func(*Client)
			method string
			params any
			code   int
			says   string
		}{
			{"by a method", func(*Client) {}, "refused", nil, 409, "not now"},
			{"malformed", func(*Client) {}, "malformed", nil, -32020, "malformed"},
			{"unknown", func(*Client) {}, "nope", nil, rpc.CodeMethodNotFound, ""},
			{"wrong token", func(c *Client) { c.Token = "x" }, "echo", nil, 403, "a wrong token"},
			{"no token", func(c *Client) { c.Token = "" }, "echo", nil, 403, "no token"},
			{"wrong host", func(c *Client) { c.URL = strings.Replace(c.URL, "127.0.0.1", "localhost", 1) }, "echo", nil, 403, ""},
			{"too long", func(*Client) {}, "echo", strings.Repeat("x", rpc.MaxMessage), -32600, ""},
		} {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				c := site(t, nil, codec)
				tt.change(c)
				_, err := c.Call(t.Context(), ask(tt.method, tt.params), nil)
				var e *rpc.Error
				if !errors.As(err, &e) || e.Code != tt.code || (tt.says != "" && e.Message != tt.says) {
					t.Errorf("got %#v, want %d %s", err, tt.code, tt.says)
				}
			})
		}
	}
}

func TestRefusalCodes(t *testing.T) {
	for status, code := range map[int]int{401: 403, 403: 403, 503: 429, 400: -32600, 405: -32600, 413: -32600, 415: -32600} {
		w := httptest.NewRecorder()
		RefuseRPC(w, status, "why")
		if w.Code != status || !says(w.Body.String(), errorResponse(code, "why")) {
			t.Errorf("%d: got %d %s, want the code %d", status, w.Code, w.Body, code)
		}
	}
}

// TestClientLeaves: ending ctx ends the call here and there.
func TestClientLeaves(t *testing.T) {
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			c := site(t, ended, codec)
			ctx, cancel := context.WithCancel(t.Context())
			_, err := c.Call(ctx, ask("wait", nil), func(method string, _ rpc.Raw) {
				if method == "waiting" {
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// TestClientDistrusts: answers of a server that is no site are errors.
func TestClientDistrusts(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"n"}`
	item := func(method string) string { // a CBOR notification looks like a request that is not asked for
		return string(inCBOR(t, method, nil))
	}
	endless := "\x5b\x00\x00\x00\x7f\xff\xff\xff\xff" + strings.Repeat("x", rpc.MaxAnswer+1)
	for _, tt := range []struct {
		name, contentType, body string
		status                  int
		want                    error  // or
		says                    string // part of the text
	}{
		{"a page", "text/html", "<p>", 200, nil, "answered 200 OK"},
		{"nothing", "", "", 202, nil, "answered 202 Accepted"},
		{"an error of another server", "text/plain", "oops", 502, nil, "answered 502 Bad Gateway"},
		{"half a message", "application/json", `{"jsonrpc":"2.0","id":1,"result":`, 200, nil, "not valid JSON"},
		{"too much", "application/json", `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", rpc.MaxAnswer) + `"}`, 200, nil, "not valid JSON"},
		{"events without an end", "text/event-stream", "data: " + note + "\n\n:\n\n", 200, io.ErrUnexpectedEOF, ""},
		{"no events at all", "text/event-stream; charset=utf-8", "", 200, io.ErrUnexpectedEOF, ""},
		{"an event that is no message", "text/event-stream", "data: x\n\n", 200, nil, "not valid JSON"},
		{"an endless event", "text/event-stream", "data: " + strings.Repeat("x", rpc.MaxAnswer+1), 200, nil, "token too long"},
		{"half of CBOR", "application/cbor", "\xa1", 200, nil, "unexpected EOF"},
		{"a sequence without an end", "application/cbor-seq", item("a") + item("b"), 200, io.ErrUnexpectedEOF, ""},
		{"an empty sequence", "application/cbor-seq", "", 200, io.ErrUnexpectedEOF, ""},
		{"a sequence cut short", "application/cbor-seq", item("a") + item("b")[:5], 200, io.ErrUnexpectedEOF, ""},
		{"an endless item", "application/cbor-seq", endless, 200, io.ErrUnexpectedEOF, ""},
		{"a sequence of something else", "application/cbor-seq", item("a") + "\xff", 200, nil, "CBOR"},
		{"a sequence of numbers", "application/cbor-seq", "\x01", 200, nil, "must be an object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{tt.contentType}
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			}))
			defer srv.Close()
			c := &Client{URL: srv.URL, Codec: rpc.JSON, HTTP: srv.Client()}
			_, err := c.Call(t.Context(), ask("echo", nil), func(string, rpc.Raw) {})
			if err == nil || (tt.want != nil && !errors.Is(err, tt.want)) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %.200v, want %v%s", err, tt.want, tt.says)
			}
		})
	}
}

// TestLongSequence: many items, each far shorter than an answer may be, are far
// longer together.
func TestLongSequence(t *testing.T) {
	c := site(t, nil, rpc.CBOR)
	const n = 100_000 // of some 40 bytes
	heard := 0
	_, err := c.Call(t.Context(), ask("notes", noted{Notes: n}), func(string, rpc.Raw) { heard++ })
	if err != nil || heard != n {
		t.Errorf("%d notifications, %v", heard, err)
	}
}

// TestEndlessItem: an item that goes on and on is given up at the bound, and not
// when memory is.
func TestEndlessItem(t *testing.T) {
	r := &endless{left: 2 * rpc.MaxAnswer}
	if _, err := readStream(rpc.CBOR, rpc.NewSequence(r).Next, nil); err != io.ErrUnexpectedEOF {
		t.Errorf("%v, with %d bytes left", err, r.left)
	}
}

// endless begins a byte string of 2^62 bytes.
type endless struct {
	begun bool
	left  int
}

func (e *endless) Read(b []byte) (int, error) {
	if !e.begun {
		e.begun = true
		return copy(b, "\x5b\x40\x00\x00\x00\x00\x00\x00\x00"), nil
	}
	if e.left -= len(b); e.left < 0 {
		return 0, errors.New("it took too much")
	}
	return len(b), nil
}
