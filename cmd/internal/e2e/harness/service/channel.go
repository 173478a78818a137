//go:build e2e && linux

package service

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
	"agentsite/node/identity"
	"agentsite/node/update"
)

// Channel serves releases of a program.
type Channel struct {
	server  *httptest.Server
	key     identity.Key
	mu      sync.Mutex
	files   map[string][]byte
	content update.Channel
}

// NewChannel serves an empty channel at an address of a host of a bed, "" for this machine.
func NewChannel(t testing.TB, on, ip string) *Channel {
	t.Helper()
	now := time.Now()
	c := &Channel{key: identity.New(), files: make(map[string][]byte),
		content: update.Channel{Name: "stable", Date: now, Expires: now.Add(time.Hour)}}
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		b, ok := c.files[r.URL.Path]
		c.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Write(b)
	}))
	listen := func() (err error) {
		c.server.Listener.Close()
		c.server.Listener, err = net.Listen("tcp", net.JoinHostPort(ip, "0"))
		return err
	}
	err := error(nil)
	if on == "" {
		err = listen()
	} else {
		err = bed.Inside(on, listen)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.server.Start()
	t.Cleanup(c.server.Close)
	return c
}

// Build builds the program that follows this channel, as the package has it. It returns its file and what that has.
func (c *Channel) Build(t testing.TB, version string, sequence uint64) (file string, program []byte) {
	t.Helper()
	file = filepath.Join(harness.TempDir(t), "package", "agentsite")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", fmt.Sprintf(
		"-s -w -X main.version=%s -X main.sequence=%d -X main.releaseKeys=%s -X main.releases=%s",
		version, sequence, c.key.ID(), c.server.URL), "-o", file, "agentsite/cmd/agentsite")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, program
}

// Renamed returns a program that says it has another version of the same length, which saves a second build.
func Renamed(program []byte, version, newVersion string, sequence, newSequence uint64) []byte {
	program = bytes.ReplaceAll(program, []byte(version), []byte(newVersion))
	digits := func(n uint64) []byte { return strconv.AppendUint(nil, n, 10) }
	return bytes.ReplaceAll(program, digits(sequence), digits(newSequence))
}

// Release adds a release of a program to the channel.
func (c *Channel) Release(t testing.TB, version string, sequence uint64, program []byte) {
	t.Helper()
	var b, list bytes.Buffer
	r := update.Release{Version: version, Sequence: sequence, Target: update.Target()}
	err := update.Sign(&b, r, program, c.key)
	sum := sha256.Sum256(b.Bytes())
	path := updatePath(version)
	file := update.ChannelFile{Target: r.Target, Path: strings.TrimPrefix(path, "/"), Size: int64(b.Len()),
		SHA256: hex.EncodeToString(sum[:])}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.content.Serial++
	c.content.Releases = append([]update.ChannelRelease{
		{Version: version, Sequence: sequence, Files: []update.ChannelFile{file}},
	}, c.content.Releases...)
	if err = errors.Join(err, update.SignChannel(&list, c.content, c.key)); err != nil {
		t.Fatal(err)
	}
	c.files[path], c.files["/channel/stable"] = b.Bytes(), list.Bytes()
}

// Damage changes the last byte of a release.
func (c *Channel) Damage(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	damaged := bytes.Clone(c.files[updatePath(version)])
	damaged[len(damaged)-1] ^= 1
	c.files[updatePath(version)] = damaged
}

func updatePath(version string) string { return "/updates/" + version + ".update" }
