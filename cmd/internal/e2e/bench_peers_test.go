//go:build e2e && linux

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/site"
	"agentsite/discovery"
	"agentsite/discovery/bed"

	"github.com/go-json-experiment/json"
)

// BenchmarkPeers is what a site costs at rest that is in the global network: with sixteen
// peers, which are relays, eight of its own and eight that have come to it.
func BenchmarkPeers(b *testing.B) {
	const peers, own, warm, rest = 16, 8, 45 * time.Second, time.Minute
	net := bed.New(b)
	var addresses []string
	for i := range peers {
		addresses = append(addresses, fmt.Sprintf("5.5.5.%d/24", 10+i))
	}
	world, home := net.Host(strings.Join(addresses, " ")), net.Host("5.5.5.2/24")
	realm, err := discovery.NewRealm("bench")
	if err != nil {
		b.Fatal(err)
	}
	folder := folder(b)
	id, err := site.SiteIdentity(site.Folder(folder))
	if err != nil {
		b.Fatal(err)
	}
	var relays []string
	for i := range peers {
		words := []string{"relay", "--listen", fmt.Sprintf("5.5.5.%d:8475", 10+i), "--json"}
		if i >= own {
			words = append(words, "--other", "/ip4/5.5.5.2/udp/8475/quic-v1/p2p/"+id.Peer)
		}
		at := startRelaying(b, world, words...)
		if i < own {
			relays = append(relays, at)
		}
	}
	r := startIn(b, folder, fmt.Sprintf("site: { name: shed }\ninternet: { realm: %q, relays: [%s] }\ndevices:\n  den: { driver: sim, model: climate }\n", realm, strings.Join(relays, ", ")), nil,
		append(bed.On(home), program, "run", "--listen-peers", "5.5.5.2:8475")...)
	pid := r.Cmd.Process.Pid
	time.Sleep(warm)
	woken, cpu, bytes := voluntary(b, pid), cpuTime(b, pid), onWire(b, pid)
	time.Sleep(rest)
	woken, cpu, bytes = voluntary(b, pid)-woken, cpuTime(b, pid)-cpu, onWire(b, pid)-bytes
	b.Run("site", func(b *testing.B) {
		b.ReportMetric(woken/rest.Seconds(), "voluntary-switches/s(≤15)")
		b.ReportMetric(float64(cpu.Milliseconds())/rest.Seconds(), "cpu-ms/s")
		b.ReportMetric(bytes/rest.Minutes(), "wire-B/min")
		b.ReportMetric(status(b, pid, "VmRSS:")/1024, "resident-MB(≤32)")
		b.ReportMetric(status(b, pid, "RssAnon:")/1024, "anonymous-MB")
		b.ReportMetric(0, "ns/op")
	})
}

// startRelaying runs a relay on a host, and returns its address by QUIC.
func startRelaying(t testing.TB, host string, words ...string) string {
	t.Helper()
	argv := append(bed.On(host, need(t, "the program", program)), append(words, "--data", folder(t))...)
	cmd := exec.Command(argv[0], argv[1:]...)
	log := &logged{}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the relay ended with %v\n%s", err, log)
		}
	})
	var ready struct {
		Addresses []string `json:"addresses"`
	}
	line, err := bufio.NewReader(out).ReadBytes('\n') // the only one
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	for _, at := range ready.Addresses {
		if strings.Contains(at, "/quic-v1/") {
			return at
		}
	}
	t.Fatalf("no address by QUIC in %q", ready.Addresses)
	return ""
}
