//go:build e2e

package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
)

// .ci/e2e builds the programs and names them in the environment.
var (
	Program      = os.Getenv("AGENTSITE") // for this machine
	ARMv6Program = os.Getenv("AGENTSITE_ARMV6")
	NodeProgram  = os.Getenv("NODE22")
)

// Need returns value. If it is empty, because .ci/e2e could not provide it, Need skips the
// test, or fails it where CI is set.
func Need(t testing.TB, what, value string) string {
	t.Helper()
	if value == "" {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not there, and CI must have it", what)
		}
		t.Skipf("SKIPPED: %s is not there; run make e2e as root on Debian to have it installed", what)
	}
	return value
}

// Site is a running site: a process of its own with a data folder of its own.
type Site struct {
	URL    string
	Page   string // the link to its page that it printed; "" for none
	Token  string
	Folder string
	Cmd    *exec.Cmd  // nil or without a Process once it is stopped
	Log    *LogBuffer // its standard error
	Ended  chan error // receives the error of its exit; put it back after a receive
}

// LogBuffer keeps what a process writes. It is safe for concurrent use.
type LogBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *LogBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *LogBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Start runs a site with a configuration, "" for the demonstration, and waits until it answers.
// The first words of argv may be an emulator; flags may follow a "run" in it.
func Start(t testing.TB, config string, argv ...string) *Site {
	t.Helper()
	return StartIn(t, TempDir(t), config, nil, argv...)
}

// StartIn is Start with a data folder, which may be that of an earlier site, and with open
// files that the site inherits.
func StartIn(t testing.TB, data, config string, files []*os.File, argv ...string) *Site {
	t.Helper()
	r := &Site{Folder: data, Log: &LogBuffer{}, Ended: make(chan error, 1)}
	args := slices.Clone(argv[1:])
	if !slices.Contains(args, "run") {
		args = append(args, "run")
	}
	args = append(args, "--data", r.Folder, "--listen", "127.0.0.1:0")
	if config != "" {
		file := filepath.Join(r.Folder, "agentsite.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", file)
	}
	r.Cmd = exec.Command(argv[0], args...)
	r.Cmd.Dir = r.Folder // where no agentsite.yaml lies by chance, but ours
	if config == "" {
		r.Cmd.Dir = TempDir(t)
	}
	r.Cmd.Stderr, r.Cmd.ExtraFiles = r.Log, files
	out, err := r.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	go func() {
		var all []byte
		found := false
		buf := make([]byte, 4096)
		for {
			n, err := out.Read(buf)
			all = append(all, buf[:n]...)
			if m := AddressPattern.FindSubmatch(all); m != nil && !found {
				r.Page = pagePattern.FindString(string(all)) // comes before
				address <- string(m[1])
				found = true
			}
			if err != nil {
				break
			}
		}
		r.Ended <- r.Cmd.Wait()
	}()
	t.Cleanup(func() { r.Stop(t) })
	select {
	case r.URL = <-address:
	case err := <-r.Ended:
		r.Ended <- err
		t.Fatalf("the site ended before it was up: %v\n%s", err, r.Log)
	case <-time.After(60 * time.Second):
		t.Fatalf("the site was not up after 60 s\n%s", r.Log)
	}
	token, err := os.ReadFile(filepath.Join(r.Folder, "token"))
	if err != nil {
		t.Fatal(err)
	}
	r.Token = strings.TrimSpace(string(token))
	return r
}

// AddressPattern finds the address of the site's HTTP server in its output.
var AddressPattern = regexp.MustCompile(`curl -s (http://[^/]+)/mcp`)

// pagePattern finds a link to a page that counts once.
var pagePattern = regexp.MustCompile(`http://\S+/#k=\S+`)

// TempDir returns a folder that is removed when the test ends. Its path is short, because a
// socket's path has to fit into 100 bytes.
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "as")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Stop ends the site as systemd does, and fails the test if it does not end well. A second Stop
// does nothing.
func (r *Site) Stop(t testing.TB) {
	t.Helper()
	if r.Cmd.Process == nil {
		return
	}
	r.Cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-r.Ended:
		r.Ended <- err
		if err != nil {
			t.Errorf("the site ended with %v\n%s", err, r.Log)
		}
	case <-time.After(15 * time.Second):
		r.Cmd.Process.Kill()
		t.Errorf("the site did not end within 15 s\n%s", r.Log)
	}
	r.Cmd.Process = nil
}

// Kill ends the site as kill -9 does.
func (r *Site) Kill(t testing.TB) {
	t.Helper()
	r.Cmd.Process.Kill()
	<-r.Ended
	r.Cmd.Process = nil
}

// Client connects to the site over HTTP. It names the token's file, because otherwise the client
// sends the token only to the folder's own site. A board's site has no folder here.
func (r *Site) Client(t testing.TB, cbor bool) *client.Client {
	t.Helper()
	c, err := peer.Dial(peer.Target{Folder: state.Folder(r.Folder), URL: r.URL, TokenFile: state.Folder(r.Folder).Path(state.TokenFile), CBOR: cbor, Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.Client
}

// Post sends one body to /mcp with the headers of a call of read_points, and returns the status
// and the body of the response. headers are pairs of names and values that replace those
// headers; an empty value removes one.
func (r *Site) Post(t testing.TB, body string, headers ...string) (status int, answer string) {
	t.Helper()
	req := NewRequest(t, "POST", r.URL+"/mcp", body, callHeaders(r.Token, "read_points")...)
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			req.Host = headers[i+1]
		case headers[i+1] == "":
			req.Header.Del(headers[i])
		default:
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// ToolCall returns a tools/call message.
func ToolCall(tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, args)
}

// NewToolCall returns a request that calls a tool of the site with a token, at one of its URLs of MCP.
func (*Site) NewToolCall(t testing.TB, url, token, tool, args string) *http.Request {
	t.Helper()
	return NewRequest(t, "POST", url, ToolCall(tool, args), callHeaders(token, tool)...)
}

func callHeaders(token, tool string) []string {
	return []string{"Authorization", "Bearer " + token, "Content-Type", "application/json",
		"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28",
		"Mcp-Method", "tools/call", "Mcp-Name", tool}
}

// CLI runs agentsite with these arguments against the site, and returns its output.
func (r *Site) CLI(t testing.TB, args ...string) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return output(exec.CommandContext(ctx, Program, append(args, "--data", r.Folder)...))
}

// WaitFor polls a condition for at most the time given. Between slow checks, such as programs on an
// emulated board, it waits for as long as they take: the board has to work as well.
func WaitFor(t testing.TB, most time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(most); ; {
		begun := time.Now()
		if ok() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v it was still not so: %s", most, what)
		}
		pause := 20 * time.Millisecond
		if took := time.Since(begun); took > 10*pause {
			pause = min(took, 2*time.Second)
		}
		time.Sleep(pause)
	}
}

// ThirtyDevices returns the configuration of a site with twenty climate sensors of three points
// each and ten relays.
func ThirtyDevices(every string) string {
	var y strings.Builder
	y.WriteString("site: { name: thirty }\ndevices:\n")
	for i := range 20 {
		fmt.Fprintf(&y, "  climate-%02d: { driver: sim, model: climate, seed: %d, every: %s }\n", i+1, i+1, every)
	}
	for i := range 10 {
		fmt.Fprintf(&y, "  relay-%02d: { driver: sim, model: relay, every: %s }\n", i+1, every)
	}
	return y.String()
}

// KeyedMove returns a call of switch_output with an idempotency key.
func KeyedMove(output, key string) string {
	return strings.Replace(ToolCall("switch_output", fmt.Sprintf(`{"output":%q,"on":true,"for_seconds":60}`, output)), `"_meta":{`, `"_meta":{"agentsite/idempotency-key":"`+key+`",`, 1)
}

// MovedField is in the response to a successful move.
const MovedField = `"seconds_left":`
