package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/transport/rpc"
)

func notes(n int) string {
	return `{"jsonrpc":"2.0","id":1,"method":"notes","params":{"notes":` + strconv.Itoa(n) + `}}`
}

const itsDone = `{"jsonrpc":"2.0","id":1,"result":{"done":"yes"}}`

// TestAnswerForms: one message is itself; a notification before it makes a stream
// where the caller takes one.
func TestAnswerForms(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"note","params":{"n":0}}`
	noStream := `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the answer is a stream: Accept must name text/event-stream, or application/cbor-seq with CBOR"}}`
	for _, tt := range []struct {
		name, body, accept string
		contentType, says  string
	}{
		{"no notification", notes(0), "application/json, text/event-stream", "application/json", itsDone},
		{"no notification, only streams wanted", notes(0), "text/event-stream", "application/json", itsDone},
		{"a notification", notes(1), "application/json, text/event-stream", "text/event-stream",
			"event: message\ndata: " + note + "\n\nevent: message\ndata: " + itsDone + "\n\n"},
		{"a notification, anything wanted", notes(1), "*/*", "text/event-stream",
			"event: message\ndata: " + note + "\n\nevent: message\ndata: " + itsDone + "\n\n"},
		{"a notification, nothing said", notes(1), "", "text/event-stream",
			"event: message\ndata: " + note + "\n\nevent: message\ndata: " + itsDone + "\n\n"},
		{"a notification, JSON wanted", notes(1), "application/json", "application/json", noStream},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := request(tt.body)
			if tt.accept != "" {
				r.Header.Set("Accept", tt.accept)
			}
			w := httptest.NewRecorder()
			Handler(options(nil)).ServeHTTP(w, r)
			status := 200
			if tt.says == noStream {
				status = 400
			}
			if w.Code != status || w.Header().Get("Content-Type") != tt.contentType || w.Body.String() != tt.says {
				t.Errorf("got %d %s\n%s\nwant %s\n%s", w.Code, w.Header().Get("Content-Type"), w.Body, tt.contentType, tt.says)
			}
			if tt.contentType == "text/event-stream" && (w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Accel-Buffering") != "no") {
				t.Errorf("a proxy may keep the stream back: %v", w.Header())
			}
		})
	}
}

func inCBOR(t testing.TB, method string, params any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := rpc.EncodeRequest(rpc.CBOR, &b, rpc.Request{ID: rpc.NumberID(7), Method: method, Params: params}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCBORAnswers(t *testing.T) {
	send := func(t *testing.T, accept string, body []byte) *httptest.ResponseRecorder {
		r := request(string(body))
		r.Header.Set("Content-Type", "application/cbor")
		r.Header.Set("Accept", accept)
		r.Header.Set("Mcp-Session-Id", "means nothing here")
		w := httptest.NewRecorder()
		Handler(options(nil)).ServeHTTP(w, r)
		return w
	}
	t.Run("one", func(t *testing.T) {
		w := send(t, "application/cbor", inCBOR(t, "notes", noted{}))
		raw, _, _, err := rpc.DecodeResponse(rpc.CBOR, w.Body.Bytes())
		if text, _ := raw.JSONText(); err != nil || string(text) != `{"done":"yes"}` || w.Header().Get("Content-Type") != "application/cbor" {
			t.Errorf("%s %v of %v", text, err, w.Header())
		}
	})
	t.Run("a sequence", func(t *testing.T) {
		w := send(t, "application/cbor, application/cbor-seq", inCBOR(t, "notes", noted{Notes: 3}))
		if w.Header().Get("Content-Type") != "application/cbor-seq" {
			t.Fatal(w.Header())
		}
		var got []string
		for items := rpc.NewSequence(w.Body); ; {
			item, err := items.Next()
			if err == io.EOF {
				break
			}
			raw, method, params, err := rpc.DecodeResponse(rpc.CBOR, item)
			if err != nil {
				t.Fatal(err)
			}
			if method == "" {
				params = raw
			}
			text, _ := params.JSONText()
			got = append(got, method+string(text))
		}
		if want := []string{`note{"n":0}`, `note{"n":1}`, `note{"n":2}`, `{"done":"yes"}`}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("events are no stream for CBOR", func(t *testing.T) {
		w := send(t, "application/cbor, text/event-stream", inCBOR(t, "notes", noted{Notes: 1}))
		_, _, _, err := rpc.DecodeResponse(rpc.CBOR, w.Body.Bytes())
		if err == nil || err.Error() != errNoStream.Error() {
			t.Errorf("%v: %q", err, w.Body)
		}
	})
}

// TestSilence: a stream that has nothing to say says so every thirty seconds, and
// its caller's leaving ends the method.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		net, stop := serve(t, options(ended))
		begun := time.Now()
		c := net.dial(t)
		c.post(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)
		res := c.answer()
		read := func(want string, at time.Duration) {
			t.Helper()
			b := make([]byte, len(want))
			if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != want || time.Since(begun) != at {
				t.Fatalf("got %q, %v after %v, want %q after %v", b, err, time.Since(begun), want, at)
			}
		}
		read("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"waiting\"}\n\n", 0)
		for i := range 20 { // far beyond every other timeout
			read(":\n\n", time.Duration(i+1)*keepAlive)
		}
		c.Close()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		stop()
	})
}

// TestNotesPutSilenceOff: the thirty seconds count from the last word.
func TestNotesPutSilenceOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(nil)
		o.Routes = []Route{MCP(rpc.NewDispatcher(map[string]rpc.Method{"say": func(_ context.Context, c *rpc.Call) (any, error) {
			for range 3 {
				time.Sleep(20 * time.Second)
				c.Notify("n", nil)
			}
			time.Sleep(40 * time.Second)
			return 1, nil
		}}), nil)}
		net, stop := serve(t, o)
		c := net.dial(t)
		c.post(`{"jsonrpc":"2.0","id":1,"method":"say"}`)
		const note = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n"
		if _, got := c.body(); got != note+note+note+":\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n\n" {
			t.Errorf("%q", got)
		}
		c.Close()
		stop()
	})
}

// TestLateAnswer: a method that takes longer than a write may take still answers.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, stop := serve(t, options(nil))
		c := net.dial(t)
		c.post(`{"jsonrpc":"2.0","id":1,"method":"notes","params":{"after":40}}`)
		if status, body := c.body(); status != 200 || body != itsDone {
			t.Errorf("%d %s", status, body)
		}
		c.Close()
		stop()
	})
}

// TestDeafCaller: the stream of a caller that does not read is closed.
func TestDeafCaller(t *testing.T) {
	for _, contentType := range []string{"application/json", "application/cbor"} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			net, stop := serve(t, options(ended))
			begun := time.Now()
			c := net.dial(t)
			body := `{"jsonrpc":"2.0","id":1,"method":"flood"}`
			if contentType == "application/cbor" {
				body = string(inCBOR(t, "flood", nil))
			}
			c.say("POST /mcp HTTP/1.1\r\nHost: " + testHost + "\r\nAuthorization: Bearer " + testToken + "\r\nContent-Type: " + contentType +
				"\r\nMcp-Protocol-Version: 2026-07-28\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
			if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != writeTimeout {
				t.Errorf("%s: %v after %v", contentType, err, time.Since(begun))
			}
			c.Close()
			stop()
		})
	}
}

// TestBodyThatNeverEnds: a body has ten seconds, whoever sends it. Refused ones
// too: the server reads them before it answers.
func TestBodyThatNeverEnds(t *testing.T) {
	head := func(more string) string {
		return "POST /mcp HTTP/1.1\r\nHost: " + testHost + "\r\nContent-Type: application/json\r\n" + more + "\r\n"
	}
	const admitted = "Authorization: Bearer " + testToken + "\r\nMcp-Protocol-Version: 2026-07-28\r\n"
	for _, tt := range []struct {
		name, sent string
		status     int
		says       string
	}{
		{"too short", head(admitted+"Content-Length: 10\r\n") + "{}", 400, errorResponse(-32600, "the body ended early")},
		{"in chunks", head(admitted+"Transfer-Encoding: chunked\r\n") + "2\r\n{}\r\n", 400, errorResponse(-32600, "the body ended early")},
		{"of an older revision", head("Authorization: Bearer "+testToken+"\r\nContent-Length: 10\r\n") + "{}", 400, errorResponse(-32600, "the body ended early")},
		{"without the token", head("Content-Length: 10\r\n") + "{}", 401, errorResponse(403, "no token")},
		{"without the token, in chunks", head("Transfer-Encoding: chunked\r\n"), 401, errorResponse(403, "no token")},
		{"for another site", "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n", 403,
			errorResponse(403, "this site is not called \"x\"")},
		{"of a path that has none", "GET /healthz HTTP/1.1\r\nHost: " + testHost + "\r\nContent-Length: 10\r\n\r\n", 200, "ok\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net, stop := serve(t, options(nil))
				begun := time.Now()
				c := net.dial(t)
				c.say(tt.sent)
				if status, body := c.body(); status != tt.status || !says(body, tt.says) {
					t.Errorf("got %d %s, want %d %s", status, body, tt.status, tt.says)
				}
				c.over(begun, readTimeout)
				stop()
			})
		})
	}
}

// TestSlowBody: the ten seconds are for the whole body, not from byte to byte.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, stop := serve(t, options(nil))
		c := net.dial(t)
		c.say("POST /mcp HTTP/1.1\r\nHost: " + testHost + "\r\nAuthorization: Bearer " + testToken +
			"\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\nContent-Length: 1000\r\n\r\n")
		for range 9 {
			c.say(" ")
			time.Sleep(time.Second)
		}
		synctest.Wait()
		go io.WriteString(c, strings.Repeat(" ", 10)) // still more to come
		if status, _ := c.body(); status != 400 {
			t.Errorf("got %d", status)
		}
		c.Close()
		stop()
	})
}

// TestLongMessages: an account with as many long messages under way as it may have blocks
// neither the long messages of others nor its own short ones.
func TestLongMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Handler(options(make(chan error, 2*maxLarge)))
		ctx, cancel := context.WithCancel(t.Context())
		long := func(method, token string) *http.Request {
			r := request(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"a":"` + strings.Repeat("x", smallBody) + `"}}`).WithContext(ctx)
			r.Header.Set("Authorization", "Bearer "+token)
			return r
		}
		for range maxLarge {
			go h.ServeHTTP(httptest.NewRecorder(), long("wait", testToken))
		}
		synctest.Wait()
		call := func(r *http.Request) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		if w := call(long("echo", testToken)); w.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"code":429`) {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
		if w := call(request(echoing)); w.Code != 200 {
			t.Errorf("a short one: %d %s", w.Code, w.Body)
		}
		chunked := func(r *http.Request) *http.Request { r.ContentLength = -1; return r }
		if w := call(chunked(request(echoing))); w.Code != 200 {
			t.Errorf("a short one in chunks: %d %s", w.Code, w.Body)
		}
		if w := call(chunked(long("echo", testToken))); w.Code != 503 || w.Header().Get("Retry-After") != "1" {
			t.Errorf("a long one in chunks: %d %s", w.Code, w.Body)
		}
		if w := call(long("echo", "also-ann")); w.Code != 200 {
			t.Errorf("another's: %d %s", w.Code, w.Body)
		}
		cancel()
		synctest.Wait()
		ctx = t.Context()
		if w := call(long("echo", testToken)); w.Code != 200 {
			t.Errorf("after they have gone: %d %s", w.Code, w.Body)
		}
	})
}

// TestLateStart: a request that waited long before its call began, for a place or for its own body,
// has the whole time for its answer to be written.
func TestLateStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, stop := serveAs(t, keyed(Handler(options(nil))))
		head := "POST /mcp HTTP/1.1\r\nHost: " + testHost + "\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\n"
		strange := func(body string) *caller {
			c := net.dial(t)
			c.say(head + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
			synctest.Wait()
			return c
		}
		const slow = `{"jsonrpc":"2.0","id":1,"method":"notes","params":{"after":40}}`
		for range maxStrangers {
			go io.Copy(io.Discard, strange(slow))
		}
		begun := time.Now()
		c := strange(echoing)
		if status, body := c.body(); status != 200 || time.Since(begun) != 40*time.Second {
			t.Errorf("%d %s after %v", status, body, time.Since(begun))
		}
		c.Close()

		c = net.dial(t)
		c.say(head + "Authorization: Bearer " + testToken + "\r\nContent-Length: " + strconv.Itoa(len(echoing)) + "\r\n\r\n" + echoing[:1])
		time.Sleep(readTimeout - time.Second)
		c.say(echoing[1:])
		time.Sleep(writeTimeout - time.Second) // until it takes its answer
		if status, body := c.body(); status != 200 {
			t.Errorf("%d %s", status, body)
		}
		c.Close()
		stop()
	})
}
