//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkToolsCall is a tools/call from a client's socket and back: processor
// time per call of the server's process, at one and at sixteen callers. The
// servers take turns, and each figure is the median of the turns.
func BenchmarkToolsCall(b *testing.B) {
	servers := []struct {
		name string
		site *running
	}{
		{"echo", baseline(b, "echo")},
		{"agentsite", start(b, "", need(b, "the program", program))},
		{"sdk", baseline(b, "sdk")},
	}
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			cpu := make(map[string][]float64)
			wall := make(map[string][]float64)
			for range 5 {
				for _, s := range servers {
					c, w := load(b, s.site, callers, 2*time.Second)
					cpu[s.name] = append(cpu[s.name], c)
					wall[s.name] = append(wall[s.name], w)
				}
			}
			for _, s := range servers {
				b.ReportMetric(median(cpu[s.name]), s.name+"-cpu-µs/call")
				b.ReportMetric(median(wall[s.name]), s.name+"-µs/call")
			}
			ours := median(cpu["agentsite"])
			b.ReportMetric(ours/median(cpu["echo"]), "cpu-x-echo(≤1.6)")
			b.ReportMetric(ours/median(cpu["sdk"]), "cpu-x-sdk(≤0.125)")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// baseline runs one of the servers in bench_servers_test.go.
func baseline(b testing.TB, which string) *running {
	b.Helper()
	r := &running{Token: "none", Log: &logged{}, ended: make(chan error, 1)}
	r.Cmd = exec.Command(os.Args[0])
	r.Cmd.Env = append(os.Environ(), "BASELINE="+which)
	out, err := r.Cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := r.Cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.Cmd.Process.Kill(); r.Cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		b.Fatal(err)
	}
	r.URL = string(address.FindSubmatch(line)[1])
	return r
}

// load has callers call for a time over connections that stay open, and returns
// the server's processor time and the wall time per call, in µs.
func load(b testing.TB, r *running, callers int, length time.Duration) (cpu, wall float64) {
	b.Helper()
	host := strings.TrimPrefix(r.URL, "http://")
	body := call("read_points", `{"points":["greenhouse/temperature"]}`)
	message := fmt.Appendf(nil, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: read_points\r\n"+
		"Content-Length: %d\r\n\r\n%s", host, r.Token, len(body), body)
	var calls atomic.Int64
	var all sync.WaitGroup
	before, begun := cpuTime(b, r.Cmd.Process.Pid), time.Now()
	for range callers {
		all.Go(func() {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				b.Error(err)
				return
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			for time.Since(begun) < length {
				if _, err := conn.Write(message); err != nil {
					b.Error(err)
					return
				}
				if err := skipAnswer(in); err != nil {
					b.Error(err)
					return
				}
				calls.Add(1)
			}
		})
	}
	all.Wait()
	n := float64(calls.Load())
	return float64((cpuTime(b, r.Cmd.Process.Pid) - before).Microseconds()) / n, float64(time.Since(begun).Microseconds()) / n
}

// skipAnswer reads one HTTP answer with the least effort of the client's.
func skipAnswer(in *bufio.Reader) error {
	length := -1
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.Contains(line, []byte(" 200 ")) {
			return fmt.Errorf("answered %s", line)
		}
		if v, ok := bytes.CutPrefix(bytes.ToLower(line), []byte("content-length:")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(v))); err != nil {
				return err
			}
		}
		if len(line) <= 2 {
			break
		}
	}
	if length < 0 {
		return errors.New("an answer without a length")
	}
	_, err := in.Discard(length)
	return err
}

// cpuTime is what a process has used, user and system (proc(5), stat 14 and 15,
// in ticks of 10 ms).
func cpuTime(b testing.TB, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// thirty is a site of thirty devices: twenty climate sensors with three points
// and ten relays.
func thirty(every string) string {
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

// BenchmarkFootprint is what a site of thirty devices costs at rest: the process that
// serves, and the one that drives the outputs. What both have mapped counts in each
// one's resident memory; proportional-MB is that of the two together.
func BenchmarkFootprint(b *testing.B) {
	r := start(b, thirty("10s"), need(b, "the program", program))
	_, list := r.post(b, strings.Replace(call("x", "{}"), `"tools/call","params":{"name":"x","arguments":{},`, `"tools/list","params":{`, 1),
		"Mcp-Method", "tools/list", "Mcp-Name", "")
	if !strings.Contains(list, `"read_points"`) {
		b.Fatalf("no list of tools: %.300s", list)
	}
	http.DefaultClient.CloseIdleConnections()
	time.Sleep(10 * time.Second) // let the start settle; what follows is at rest
	site, guard := r.Cmd.Process.Pid, r.guard(b)
	const rest = 150 * time.Second // the runtime collects garbage every two minutes
	woken, cpu := voluntary(b, site), cpuTime(b, site)
	guardWoken, guardCPU := voluntary(b, guard), cpuTime(b, guard)
	time.Sleep(rest)
	woken, cpu = voluntary(b, site)-woken, cpuTime(b, site)-cpu
	guardWoken, guardCPU = voluntary(b, guard)-guardWoken, cpuTime(b, guard)-guardCPU

	b.Run("site", func(b *testing.B) {
		b.ReportMetric(float64(len(list)), "tools/list-bytes(≤8192)")
		b.ReportMetric(woken/rest.Seconds(), "voluntary-switches/s(≤3)")
		b.ReportMetric(float64(cpu.Milliseconds())/rest.Seconds(), "cpu-ms/s")
		b.ReportMetric(status(b, site, "VmRSS:")/1024, "resident-MB(≤16)")
		b.ReportMetric(status(b, site, "VmHWM:")/1024, "most-MB")
		b.ReportMetric(status(b, site, "RssAnon:")/1024, "anonymous-MB")
		b.ReportMetric(0, "ns/op")
	})
	b.Run("guard", func(b *testing.B) {
		b.ReportMetric(guardWoken/rest.Seconds(), "voluntary-switches/s")
		b.ReportMetric(float64(guardCPU.Milliseconds())/rest.Seconds(), "cpu-ms/s")
		b.ReportMetric(status(b, guard, "VmRSS:")/1024, "resident-MB")
		b.ReportMetric(status(b, guard, "RssAnon:")/1024, "anonymous-MB(≤6)")
		b.ReportMetric(0, "ns/op")
	})
	b.Run("both", func(b *testing.B) {
		b.ReportMetric((woken+guardWoken)/rest.Seconds(), "voluntary-switches/s")
		b.ReportMetric((proportional(b, site)+proportional(b, guard))/1024, "proportional-MB")
		b.ReportMetric((status(b, site, "RssAnon:")+status(b, guard, "RssAnon:"))/1024, "anonymous-MB")
		b.ReportMetric(0, "ns/op")
	})
}

// proportional is a process's resident memory in kB, where what several have mapped
// is shared out among them.
func proportional(b testing.TB, pid int) float64 {
	b.Helper()
	return statusFile(b, fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss:")
}

// status is a line of /proc/PID/status, in its own unit.
func status(b testing.TB, pid int, key string) float64 {
	b.Helper()
	return statusFile(b, fmt.Sprintf("/proc/%d/status", pid), key)
}

func statusFile(b testing.TB, file, key string) float64 {
	b.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		return 0 // a thread that has ended
	}
	return statusLine(b, string(text), file, key)
}

func statusLine(b testing.TB, text, file, key string) float64 {
	b.Helper()
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == key {
			n, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatalf("no %s in %s", key, file)
	return 0
}

// voluntary is how often the process's threads went to sleep, all together.
func voluntary(b testing.TB, pid int) (sum float64) {
	b.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(tasks) == 0 {
		b.Fatalf("no threads: %v", err)
	}
	for _, task := range tasks {
		sum += statusFile(b, task, "voluntary_ctxt_switches:")
	}
	return sum
}

// BenchmarkStart is the time from starting the program to its first answer,
// beside a bare net/http program's.
func BenchmarkStart(b *testing.B) {
	need(b, "the program", program)
	var ours, bare []float64
	for range 11 {
		bare = append(bare, untilAnswer(b, "echo"))
		ours = append(ours, untilAnswer(b, ""))
	}
	b.ReportMetric(median(ours), "agentsite-ms")
	b.ReportMetric(median(bare), "bare-ms")
	b.ReportMetric(median(ours)/median(bare), "x-bare(≤15)")
	b.ReportMetric(0, "ns/op")
}

// untilAnswer starts a program and returns the milliseconds to its first answer.
// The bare one is built from bench_bare.
func untilAnswer(b *testing.B, which string) float64 {
	b.Helper()
	dir := folder(b)
	token := strings.Repeat("ab", 32)
	for name, text := range map[string]string{"token": token, "armed": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	port := freePort(b)
	cmd := exec.Command(program, "run", "--data", dir, "--listen", "127.0.0.1:"+port)
	if which != "" {
		cmd = exec.Command(need(b, "the bare program", os.Getenv("BARE_HTTP")), "127.0.0.1:"+port)
	}
	cmd.Dir = dir
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { cmd.Process.Signal(os.Interrupt); cmd.Wait() }()
	body := call("read_points", "{}")
	for time.Since(begun) < 20*time.Second {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			time.Sleep(200 * time.Microsecond)
			continue
		}
		fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: read_points\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", port, token, len(body), body)
		answer, err := io.ReadAll(conn)
		conn.Close()
		if err != nil || !bytes.Contains(answer, []byte(" 200 ")) {
			b.Fatalf("%s, %v", answer, err)
		}
		return float64(time.Since(begun).Microseconds()) / 1000
	}
	b.Fatal("no answer")
	return 0
}

// freePort is one that nobody listens on, below those that the kernel gives to
// connections, so that it stays free over a restart.
func freePort(t testing.TB) string {
	t.Helper()
	for range 20 {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		if ln, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			ln.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}
