//go:build e2e

// Package bench compares the program with bare servers in the same run.
package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
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

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/transport/rpc"
)

// BenchmarkToolsCall is a tools/call from a client's socket and back: processor
// time per call of the server's process, at one and at sixteen callers. The
// servers take turns, and each figure is the median of the turns.
func BenchmarkToolsCall(b *testing.B) {
	b.Setenv("GOMAXPROCS", "1") // of the servers: with more, idle threads of theirs look for work
	servers := []struct {
		name string
		site *harness.Site
	}{
		{"echo", baseline(b, "echo")},
		{"agentsite", harness.Start(b, "", harness.Need(b, "the program", harness.Program))},
		{"sdk", baseline(b, "sdk")},
	}
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			cpu := make(map[string][]float64)
			wall := make(map[string][]float64)
			// Short turns and their ratios, because the machine is faster in one minute than in another.
			xEcho, xSDK := make([]float64, 25), make([]float64, 25)
			for turn := range xEcho {
				used := make(map[string]float64)
				for _, s := range servers {
					c, w := load(b, s.site, callers, 400*time.Millisecond, toolCall(b, s.site, rpc.JSON, "read_points", `{"points":["greenhouse/temperature"]}`))
					cpu[s.name] = append(cpu[s.name], c)
					wall[s.name] = append(wall[s.name], w)
					used[s.name] = c
				}
				xEcho[turn], xSDK[turn] = used["agentsite"]/used["echo"], used["agentsite"]/used["sdk"]
			}
			for _, s := range servers {
				b.ReportMetric(median(cpu[s.name]), s.name+"-cpu-µs/call")
				b.ReportMetric(median(wall[s.name]), s.name+"-µs/call")
			}
			b.ReportMetric(median(xEcho), "cpu-x-echo(≤1.3)")
			b.ReportMetric(median(xSDK), "cpu-x-sdk(≤0.125)")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// baseline runs one of the servers in servers_test.go.
func baseline(b testing.TB, which string) *harness.Site {
	b.Helper()
	r := &harness.Site{Token: "none", Log: &harness.LogBuffer{}, Ended: make(chan error, 1)}
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
	r.URL = string(harness.AddressPattern.FindSubmatch(line)[1])
	return r
}

// toolCall is a whole HTTP request that calls a tool.
func toolCall(b testing.TB, r *harness.Site, codec rpc.Codec, tool, args string) []byte {
	b.Helper()
	var body bytes.Buffer
	if err := codec.Encode(&body, rpc.RawJSON([]byte(harness.ToolCall(tool, args)))); err != nil {
		b.Fatal(err)
	}
	return fmt.Appendf(nil, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\n"+
		"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\n"+
		"Content-Length: %d\r\n\r\n%s", strings.TrimPrefix(r.URL, "http://"), r.Token, codec.ContentType(), tool, body.Len(), body.Bytes())
}

// load sends a request from callers for a time over connections that stay open, and returns the
// server's processor time and the wall time per call, in µs.
func load(b testing.TB, r *harness.Site, callers int, length time.Duration, message []byte) (cpu, wall float64) {
	b.Helper()
	var calls atomic.Int64
	var all sync.WaitGroup
	before, begun := harness.CPUTime(b, r.Cmd.Process.Pid), time.Now()
	for range callers {
		all.Go(func() {
			conn, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
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
	return float64((harness.CPUTime(b, r.Cmd.Process.Pid) - before).Microseconds()) / n, float64(time.Since(begun).Microseconds()) / n
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

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// BenchmarkFootprint measures the costs of a site at rest, with thirty devices and with the
// demonstration: its process and its guard's together, and beside them a bare net/http server. They
// run one after the other, because shared memory of two sites would count as half.
func BenchmarkFootprint(b *testing.B) {
	b.Run("thirty", func(b *testing.B) {
		site := harness.Start(b, harness.ThirtyDevices("10s"), harness.Need(b, "the program", harness.Program))
		_, list := site.Post(b, strings.Replace(harness.ToolCall("x", "{}"), `"tools/call","params":{"name":"x","arguments":{},`, `"tools/list","params":{`, 1),
			"Mcp-Method", "tools/list", "Mcp-Name", "")
		if !strings.Contains(list, `"read_points"`) {
			b.Fatalf("no list of tools: %.300s", list)
		}
		b.ReportMetric(float64(len(list)), "tools/list-bytes(≤8192)")
		b.ReportMetric(0, "ns/op")
		atRest(b, site, "(≤1.5)", "(≤11)", "(≤25)")
	})
	b.Run("demo", func(b *testing.B) {
		atRest(b, harness.Start(b, "", harness.Need(b, "the program", harness.Program)), "(≤3)", "", "")
	})
}

// atRest reports what a site costs, and its guard's part of it. The limits are those of
// the sums of switches, anonymous and proportional memory.
func atRest(b *testing.B, site *harness.Site, switches, anonymous, proportional string) {
	bare := exec.Command(harness.Need(b, "the bare program", os.Getenv("BARE_HTTP")), "127.0.0.1:"+harness.FreePort(b))
	if err := bare.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { bare.Process.Kill(); bare.Wait() }()
	http.DefaultClient.CloseIdleConnections()
	time.Sleep(10 * time.Second)   // let the start settle; what follows is at rest
	const rest = 150 * time.Second // the runtime collects garbage every two minutes
	pids := []int{site.Cmd.Process.Pid, site.Guard(b), bare.Process.Pid}
	var woken, cpu [3]float64
	for i, pid := range pids {
		woken[i], cpu[i] = harness.VoluntarySwitches(b, pid), harness.CPUTime(b, pid).Seconds()
	}
	time.Sleep(rest)
	memory := func(file, key string) (MB [3]float64) {
		for i, pid := range pids {
			MB[i] = harness.StatusFile(b, fmt.Sprintf("/proc/%d/%s", pid, file), key) / 1024
		}
		return MB
	}
	report := func(sums [3]float64, unit, limit, guardLimit string) {
		b.ReportMetric(sums[0]+sums[1], "both-"+unit+limit)
		b.ReportMetric(sums[1], "guard-"+unit+guardLimit)
		b.ReportMetric(sums[2], "bare-"+unit)
	}
	for i, pid := range pids {
		woken[i] = (harness.VoluntarySwitches(b, pid) - woken[i]) / rest.Seconds()
		cpu[i] = (harness.CPUTime(b, pid).Seconds() - cpu[i]) * 1000 / rest.Seconds()
	}
	report(woken, "voluntary-switches/s", switches, "")
	report(cpu, "cpu-ms/s", "", "")
	report(memory("status", "RssAnon:"), "anonymous-MB", anonymous, "(≤6)")
	report(memory("smaps_rollup", "Pss:"), "proportional-MB", proportional, "")
	report(memory("smaps_rollup", "Locked:"), "locked-MB", "", "")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkStart is the time from starting the program to its first answer,
// beside a bare net/http program's.
func BenchmarkStart(b *testing.B) {
	harness.Need(b, "the program", harness.Program)
	var ours, bare []float64
	for range 11 {
		bare = append(bare, untilAnswer(b, "echo"))
		ours = append(ours, untilAnswer(b, ""))
	}
	b.ReportMetric(median(ours), "agentsite-ms")
	b.ReportMetric(median(bare), "bare-ms")
	b.ReportMetric(median(ours)/median(bare), "x-bare(≤8)")
	b.ReportMetric(0, "ns/op")
}

// untilAnswer starts a program and returns the milliseconds to its first answer.
// The bare one is built from testdata/bare.
func untilAnswer(b *testing.B, which string) float64 {
	b.Helper()
	dir := harness.TempDir(b)
	token := strings.Repeat("ab", 32)
	for name, text := range map[string]string{"token": token, "armed": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	port := harness.FreePort(b)
	cmd := exec.Command(harness.Program, "run", "--data", dir, "--listen", "127.0.0.1:"+port)
	if which != "" {
		cmd = exec.Command(harness.Need(b, "the bare program", os.Getenv("BARE_HTTP")), "127.0.0.1:"+port)
	}
	cmd.Dir = dir
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { cmd.Process.Signal(os.Interrupt); cmd.Wait() }()
	body := harness.ToolCall("read_points", "{}")
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
