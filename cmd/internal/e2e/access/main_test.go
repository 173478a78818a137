//go:build e2e

package access

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
)

const echoEnv = "E2E_ECHO"

// TestMain runs this test program as many clients, a flood or an echo if the environment says so,
// and otherwise the tests. Attackers of a site, and baselines, have their own processes.
func TestMain(m *testing.M) {
	if at := os.Getenv(strangersEnv); at != "" {
		runStrangers(at)
	}
	if to := os.Getenv(floodEnv); to != "" {
		flooding(to)
	}
	if os.Getenv(echoEnv) != "" {
		echo()
	}
	os.Exit(m.Run())
}

// echo serves HTTP and answers each request with its body.
func echo() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("curl -s http://%s/mcp\n", ln.Addr())
	panic(http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })))
}
