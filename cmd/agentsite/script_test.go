package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/httpsig"

	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"agentsite": main, "forecaster": forecaster})
}

// updateScripts has the scripts' cmp rewrite the files of testdata that differ.
var updateScripts = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestScripts drives the real command against real sites.
func TestScripts(t *testing.T) {
	if program := os.Getenv("AGENTSITE_CLIENT"); program != "" {
		useClient(t, program)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup:               setup,
		UpdateScripts:       *updateScripts,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"until": until, "exits": exits, "entry": entry, "handle": handle, "http": sendRequest, "signed": sendSigned, "model": startModel, "talk": talk, "widths": checkWidths, "transcript": transcript, "interrupted": interrupted, "registry": registry, "receiver": receiver},
	})
}

// setup sets a script's variables: $D, a data folder short enough for a socket's path, and always as long; $ADDR, a
// free address; $SCHEMA, the committed schema; $DOCS, its folder; and $GID, the group that the
// tests run in.
func setup(env *testscript.Env) error {
	schema, err := filepath.Abs("../../docs/agentsite.schema.json")
	if err != nil {
		return err
	}
	dir := fmt.Sprintf("/tmp/as%010d", rand.Uint32())
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	env.Defer(func() { os.RemoveAll(dir) })
	addr, err := free()
	if err != nil {
		return err
	}
	env.Setenv("D", dir)
	env.Setenv("ADDR", addr)
	env.Setenv("SCHEMA", schema)
	env.Setenv("DOCS", filepath.Dir(schema))
	env.Setenv("TZ", "UTC")
	env.Setenv("GORACE", "atexit_sleep_ms=0") // a second for each command otherwise
	env.Setenv("GID", strconv.Itoa(os.Getgid()))
	return nil
}

// clients are the commands that ask one question, of files or of a site on this machine.
const clients = "agents|approve|ask|backup|call|check|clock|grant|grants|history|identity|journal|owners|pinout|points|read|reload|reset|restore|revoke|rules|schema|scan|set|stop|tasks|token|tools|version|why"

// useClient has program run the clients. A race detector costs each start a tenth of a second, and finds
// next to nothing in what asks once and ends. All other commands are this test's own binary: sites and
// their guards, and those that talk with sites elsewhere or watch.
func useClient(t *testing.T, program string) {
	own, err := exec.LookPath("agentsite")
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nuse=%s\ncase $1 in %s) use=%s ;; esac\ncase $* in *--watch*) use=%[1]s ;; esac\nexec $use \"$@\"\n", own, clients, program)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "agentsite"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// free is an address that nobody listens on. Its port is below those that the kernel
// chooses from, or another program's connection would have it before the site has.
func free() (addr string, err error) {
	for range 20 {
		addr = "127.0.0.1:" + strconv.Itoa(10_000+rand.IntN(20_000))
		var ln net.Listener
		if ln, err = net.Listen("tcp", addr); err == nil {
			return addr, ln.Close()
		}
	}
	return "", err
}

// until runs a command again and again until its output matches: until REGEXP
// COMMAND... It gives up after twenty seconds.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP COMMAND...")
	}
	wanted := regexp.MustCompile("(?m)" + args[0])
	var last string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		last = ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if err == nil && wanted.MatchString(last) {
			return
		}
	}
	ts.Fatalf("%q did not come in 20 s; the last output was:\n%s", args[0], last)
}

// exits runs a command and compares its exit code: exits CODE COMMAND...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		if _, err := fmt.Sscanf(err.Error(), "exit status %d", &got); err != nil {
			ts.Fatalf("%v did not run: %v", args[1:], err)
		}
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// sendRequest sends a request to the site at $ADDR and prints the status and the body of the answer: http VERB
// PATH [TOKENFILE [BODY]]. A TOKENFILE of "-" is for none.
func sendRequest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 4 {
		ts.Fatalf("usage: http VERB PATH [TOKENFILE [BODY]]")
	}
	body := ""
	if len(args) == 4 {
		body = args[3]
	}
	r, err := http.NewRequest(args[0], "http://"+ts.Getenv("ADDR")+args[1], strings.NewReader(body))
	ts.Check(err)
	if len(args) > 2 && args[2] != "-" {
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(ts.ReadFile(args[2])))
	}
	answered(ts, r)
}

// sendSigned is sendRequest by a key, which NAME seeds, in place of a token: it signs the request.
// signed NAME alone prints the key's DID.
func sendSigned(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 && len(args) != 4 {
		ts.Fatalf("usage: signed NAME [VERB PATH BODY]")
	}
	seed := sha256.Sum256([]byte(args[0]))
	key := ed25519.NewKeyFromSeed(seed[:])
	did := identity.ID(key.Public().(ed25519.PublicKey)).String()
	if len(args) == 1 {
		fmt.Fprintln(ts.Stdout(), did)
		ts.Setenv("DID", did)
		return
	}
	r, err := http.NewRequest(args[1], "http://"+ts.Getenv("ADDR")+args[2], strings.NewReader(args[3]))
	ts.Check(err)
	// A site takes none of the second in which it started.
	ts.Check(httpsig.Sign(r, []byte(args[3]), did, key, time.Now().Add(time.Second)))
	answered(ts, r)
}

// answered prints the status and the body of the answer to a request.
func answered(ts *testscript.TestScript, r *http.Request) {
	client := http.Client{Timeout: time.Minute}
	res, err := client.Do(r)
	ts.Check(err)
	defer res.Body.Close()
	fmt.Fprintln(ts.Stdout(), res.StatusCode)
	_, err = io.Copy(ts.Stdout(), res.Body)
	ts.Check(err)
}

// handle takes the handle out of the last line of the last output into $HANDLE.
func handle(ts *testscript.TestScript, neg bool, args []string) {
	found := regexp.MustCompile(`(?m)^[A-Z2-7]{26}`).FindAllString(ts.ReadFile("stdout"), -1)
	if neg || len(args) > 0 || len(found) == 0 {
		ts.Fatalf("usage: handle, after agentsite approve has listed a call")
	}
	ts.Setenv("HANDLE", found[len(found)-1])
}

// entry FILE does what an MCP client does with the entry that run prints: it starts the command
// with its arguments, and the file "stdin" as its input.
func entry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: entry FILE")
	}
	line := regexp.MustCompile(`(?m)^ *\{"mcpServers".*$`).FindString(ts.ReadFile(args[0]))
	var pasted struct {
		Servers map[string]struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
		} `json:"mcpServers"`
	}
	ts.Check(json.Unmarshal([]byte(line), &pasted))
	if len(pasted.Servers) != 1 {
		ts.Fatalf("no single server in %s", line)
	}
	for _, s := range pasted.Servers {
		cmd := exec.Command(s.Command, s.Args...)
		cmd.Env = []string{"HOME=" + ts.Getenv("HOME")}
		cmd.Stdin = strings.NewReader(ts.ReadFile("stdin"))
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), `"supportedVersions"`) {
			ts.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
}
