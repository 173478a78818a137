//go:build e2e && linux

package bench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery"
	"agentsite/discovery/bed"
	"agentsite/node/state"

	"github.com/go-json-experiment/json"
)

const warm, rest = 45 * time.Second, time.Minute

// BenchmarkPeers measures the costs at rest of a site in the global network, with sixteen peers.
// Its threads have the timer slack of the service.
func BenchmarkPeers(b *testing.B) {
	b.Run("home", func(b *testing.B) { // behind its router: four relays, and twelve sites of its realm elsewhere
		harness.AsService(b)
		const relays, sites = 4, 12
		w := bed.NewWorld(b)
		realm, at := newRealm(b), []string(nil)
		var peers []string
		for range relays {
			r := harness.PublicRelay{Folder: harness.TempDir(b)}
			r.Host, r.IP = w.Public()
			r.Start(b)
			at, peers = append(at, r.Addresses...), append(peers, r.IP)
		}
		for i := range sites {
			on, ip := w.Public()
			inRealm(b, harness.TempDir(b), fmt.Sprint("other", i), on, realm, at)
			peers = append(peers, ip)
		}
		home := w.Home(bed.Preserving)
		r := inRealm(b, harness.TempDir(b), "shed", home.Host(), realm, at)
		for _, ip := range peers {
			home.Sent(ip) // is counted from now on
		}
		idle(b, r.Cmd.Process.Pid)
		there := 0
		for _, ip := range peers {
			if home.Sent(ip) > 0 {
				there++
			}
		}
		b.ReportMetric(float64(there), "peers")
	})
	b.Run("relays", func(b *testing.B) { // eight of its own, and eight that have come to it
		harness.AsService(b)
		const peers, own = 16, 8
		net := bed.New(b)
		var addresses []string
		for i := range peers {
			addresses = append(addresses, fmt.Sprintf("5.5.5.%d/24", 10+i))
		}
		world, home := net.Host(strings.Join(addresses, " ")), net.Host("5.5.5.2/24")
		folder := harness.TempDir(b)
		id, err := state.Folder(folder).Identity()
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
		idle(b, inRealm(b, folder, "shed", home, newRealm(b), relays).Cmd.Process.Pid)
	})
}

func newRealm(b *testing.B) string {
	b.Helper()
	r, err := discovery.NewRealm("bench")
	if err != nil {
		b.Fatal(err)
	}
	return r.String()
}

// inRealm starts a site on a host, in a realm that meets at relays.
func inRealm(b *testing.B, folder, name, on, realm string, relays []string) *harness.Site {
	b.Helper()
	return harness.StartIn(b, folder, fmt.Sprintf("site: { name: %s }\ninternet: { realm: %q, relays: [%s] }\ndevices:\n  den: { driver: sim, model: climate }\n",
		name, realm, strings.Join(relays, ", ")), nil, bed.On(on, harness.Program, "run", "--listen-peers", ":8475")...)
}

// idle measures a process that nobody asks for anything.
func idle(b *testing.B, pid int) {
	b.Helper()
	time.Sleep(warm)
	woken, cpu, bytes := harness.VoluntarySwitches(b, pid), harness.CPUTime(b, pid), onWire(b, pid)
	time.Sleep(rest)
	woken, cpu, bytes = harness.VoluntarySwitches(b, pid)-woken, harness.CPUTime(b, pid)-cpu, onWire(b, pid)-bytes
	b.ReportMetric(woken/rest.Seconds(), "voluntary-switches/s(≤12)")
	b.ReportMetric(float64(cpu.Milliseconds())/rest.Seconds(), "cpu-ms/s")
	b.ReportMetric(bytes/rest.Minutes(), "wire-B/min")
	b.ReportMetric(harness.Status(b, pid, "VmRSS:")/1024, "resident-MB(≤32)")
	b.ReportMetric(harness.Status(b, pid, "RssAnon:")/1024, "anonymous-MB")
	b.ReportMetric(0, "ns/op")
}

// startRelaying runs a relay on a host, and returns its address by QUIC.
func startRelaying(t testing.TB, host string, words ...string) string {
	t.Helper()
	argv := append(bed.On(host, harness.Need(t, "the program", harness.Program)), append(words, "--data", harness.TempDir(t))...)
	cmd := exec.Command(argv[0], argv[1:]...)
	log := &harness.LogBuffer{}
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
