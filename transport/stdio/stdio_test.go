//go:build unix

package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/transport/rpc"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// socketPath is in a folder with a short name: a socket's path is bounded.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "as")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s.sock")
}

func TestListen(t *testing.T) {
	path := socketPath(t)
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != os.ModeSocket|mode() {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // as a process does that is killed
	ln.Close()
	if _, err := net.Dial("unix", path); err == nil {
		t.Fatal("somebody listens on a dead socket")
	}
	again, err := Listen(path)
	if err != nil {
		t.Fatalf("a stale socket is in the way: %v", err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	again.Close()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestListenErrors(t *testing.T) {
	long := filepath.Join(filepath.Dir(socketPath(t)), strings.Repeat("x", 120))
	if ln, err := Listen(long); err == nil || !strings.Contains(err.Error(), "a shorter --data") {
		t.Errorf("%v %v", ln, err)
	}
	folder, file, link := socketPath(t), socketPath(t), socketPath(t)
	for _, err := range []error{os.Mkdir(folder, 0o700), os.WriteFile(file, []byte("precious"), 0o600), os.Symlink(file, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{folder, file, link} {
		if ln, err := Listen(path); err == nil || !strings.HasPrefix(err.Error(), path+" ") || !strings.Contains(err.Error(), "another --data") {
			t.Errorf("%v %v", ln, err)
		}
	}
	if b, err := os.ReadFile(link); string(b) != "precious" || err != nil {
		t.Errorf("%q %v", b, err)
	}
}

const tooMany = `{"jsonrpc":"2.0","error":{"code":429,"message":"64 programs are connected to this socket: end one of them, or try again later"}}` + "\n"

// serving serves handle on a socket.
func serving(t *testing.T, handle func(context.Context, net.Conn)) (dial func() net.Conn, stop func()) {
	t.Helper()
	ln, err := Listen(socketPath(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, ln, handle) }()
	dial = func() net.Conn {
		conn, err := net.Dial("unix", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		return conn
	}
	return dial, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
}

// TestStreamLimit: a stream beyond the limit gets an error and is closed, and a slot is free again
// once its stream has ended.
func TestStreamLimit(t *testing.T) {
	dial, stop := serving(t, func(ctx context.Context, c net.Conn) {
		defer c.Close()
		defer context.AfterFunc(ctx, func() { c.Close() })()
		io.WriteString(c, "hello\n")
		io.Copy(io.Discard, c)
	})
	var conns []net.Conn
	hello := make([]byte, 6)
	for range maxStreams {
		c := dial()
		if _, err := io.ReadFull(c, hello); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	for range 3 {
		if b, err := io.ReadAll(dial()); string(b) != tooMany || err != nil {
			t.Errorf("one too many was told %q, %v", b, err)
		}
		c := rpc.NewStreamClient(dial(), rpc.JSON) // which speaks first
		go c.Run()
		var busy *rpc.Error
		if _, err := c.Call(t.Context(), rpc.Request{ID: rpc.NumberID(1), Method: "x"}, nil); !errors.As(err, &busy) || busy.Code != rpc.CodeBusy {
			t.Errorf("one too many that called: %v", err)
		}
	}
	conns[7].Close()
	for deadline := time.Now().Add(10 * time.Second); ; { // its place is free a moment later
		if _, err := io.ReadFull(dial(), hello); err == nil && string(hello) == "hello\n" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the place is not free again")
		}
	}
	stop() // and with it every stream
	if b, err := io.ReadAll(conns[0]); len(b) > 0 || err != nil {
		t.Errorf("%q %v", b, err)
	}
}

func TestServeWaitsForItsStreams(t *testing.T) {
	var mu sync.Mutex
	ended := false
	begun := make(chan struct{})
	dial, stop := serving(t, func(ctx context.Context, c net.Conn) {
		defer c.Close()
		close(begun)
		<-ctx.Done()
		mu.Lock()
		defer mu.Unlock()
		ended = true
	})
	dial()
	<-begun
	stop()
	mu.Lock()
	defer mu.Unlock()
	if !ended {
		t.Error("Serve returned while a stream was open")
	}
}

func TestServeOnABrokenListener(t *testing.T) {
	ln, err := Listen(socketPath(t))
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := Serve(t.Context(), ln, nil); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestPipe: messages of the client go to the socket, and answers to the client. A message that is
// pending when the client closes is still answered.
func TestPipe(t *testing.T) {
	dial, stop := serving(t, func(_ context.Context, c net.Conn) {
		defer c.Close()
		in := bufio.NewScanner(c)
		var all []string
		for in.Scan() {
			all = append(all, in.Text())
		}
		// The client has closed its side; only now the answers come.
		for _, l := range all {
			fmt.Fprintf(c, "answer to %s\n", l)
		}
	})
	defer stop()
	var out bytes.Buffer
	if err := Pipe(t.Context(), strings.NewReader("a\nb\n"), &out, dial().(*net.UnixConn)); err != nil {
		t.Error(err)
	}
	if out.String() != "answer to a\nanswer to b\n" {
		t.Errorf("%q", out.String())
	}
}

// TestPipeEnds: the socket's end and ctx's end the pipe, though the client's side
// stays open.
func TestPipeEnds(t *testing.T) {
	open := func(t *testing.T) io.Reader {
		r, w := io.Pipe()
		t.Cleanup(func() { w.Close() })
		return r
	}
	t.Run("the socket", func(t *testing.T) {
		dial, stop := serving(t, func(_ context.Context, c net.Conn) { io.WriteString(c, "bye\n"); c.Close() })
		defer stop()
		var out bytes.Buffer
		if err := Pipe(t.Context(), open(t), &out, dial().(*net.UnixConn)); err != ErrHungUp || out.String() != "bye\n" {
			t.Errorf("%q %v", out.String(), err)
		}
	})
	t.Run("ctx", func(t *testing.T) {
		begun := make(chan struct{})
		dial, stop := serving(t, func(_ context.Context, c net.Conn) {
			defer c.Close()
			close(begun)
			io.Copy(io.Discard, c)
		})
		defer stop()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-begun; cancel() }()
		if err := Pipe(ctx, open(t), io.Discard, dial().(*net.UnixConn)); err != nil {
			t.Error(err)
		}
	})
	t.Run("a client that reads no more", func(t *testing.T) {
		dial, stop := serving(t, func(_ context.Context, c net.Conn) {
			defer c.Close()
			io.WriteString(c, "x\n")
			io.Copy(io.Discard, c)
		})
		defer stop()
		gone := errors.New("gone")
		if err := Pipe(t.Context(), open(t), deaf{gone}, dial().(*net.UnixConn)); err != gone {
			t.Error(err)
		}
	})
	t.Run("a socket that closes only whole", func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		if err := Pipe(t.Context(), strings.NewReader(""), io.Discard, near); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	})
}

// TestJoin: the input's end is the stream's, and closing it frees a Read that waits.
func TestJoin(t *testing.T) {
	var out bytes.Buffer
	rw := Join(strings.NewReader("in"), &out)
	io.WriteString(rw, "out")
	if b, err := io.ReadAll(rw); string(b) != "in" || err != nil || out.String() != "out" {
		t.Errorf("%q %v %q", b, err, &out)
	}
	in, end := io.Pipe()
	defer end.Close()
	rw = Join(in, &out)
	freed := make(chan error, 1)
	go func() {
		_, err := rw.Read(make([]byte, 1))
		freed <- err
	}()
	rw.Close()
	if err := <-freed; err == nil {
		t.Error("it has read something")
	}
	if _, err := io.WriteString(rw, "!"); err != nil || out.String() != "out!" {
		t.Error("nothing can be written any more:", err)
	}
}

type deaf struct{ err error }

func (d deaf) Write([]byte) (int, error) { return 0, d.err }
