//go:build e2e && linux

package mdns

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// used is the resource use of a process so far.
type used struct {
	cpu                     time.Duration
	switches, in, out, seen int // voluntary; bytes and packets of eth0
}

func (p *process) used() (u used) {
	pid := p.cmd.Process.Pid
	stat := strings.Fields(read(p.t, fmt.Sprintf("/proc/%d/stat", pid)))
	u.cpu = time.Duration(number(p.t, stat[13])+number(p.t, stat[14])) * 10 * time.Millisecond
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, f := range threads {
		b, _ := os.ReadFile(f)
		for line := range bytes.Lines(b) {
			if n, ok := bytes.CutPrefix(line, []byte("voluntary_ctxt_switches:")); ok {
				u.switches += number(p.t, string(bytes.TrimSpace(n)))
			}
		}
	}
	for line := range strings.Lines(read(p.t, fmt.Sprintf("/proc/%d/net/dev", pid))) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "eth0:"); ok {
			f := strings.Fields(n)
			u.in, u.seen, u.out = number(p.t, f[0]), number(p.t, f[1]), number(p.t, f[8])
		}
	}
	return u
}

// memory is the resident set, in KiB.
func (p *process) memory() int {
	for line := range strings.Lines(read(p.t, fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))) {
		if n, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return number(p.t, strings.Fields(n)[0])
		}
	}
	p.t.Fatal("a process has no memory")
	return 0
}

// costs logs what each of some processes uses a minute, and holds them to 1 % of a CPU.
func costs(t *testing.T, during time.Duration, list ...*process) {
	t.Helper()
	var before []used
	for _, p := range list {
		before = append(before, p.used())
	}
	time.Sleep(during)
	var cpu, switches, in, out, seen []int
	for i, p := range list {
		u, b := p.used(), before[i]
		minute := func(n int) int { return int(float64(n) / during.Minutes()) }
		cpu = append(cpu, minute(int((u.cpu - b.cpu).Milliseconds())))
		switches, seen = append(switches, minute(u.switches-b.switches)), append(seen, minute(u.seen-b.seen))
		in, out = append(in, minute(u.in-b.in)), append(out, minute(u.out-b.out))
	}
	for what, n := range map[string][]int{"ms of CPU": cpu, "voluntary switches": switches, "bytes in": in, "bytes out": out, "packets in": seen} {
		slices.Sort(n)
		t.Logf("%s a minute: median %d, most %d", what, n[len(n)/2], n[len(n)-1])
	}
	t.Logf("resident: %d KiB", list[0].memory())
	if most := cpu[len(cpu)-1]; most > 600 {
		t.Errorf("an idle site uses %d ms of CPU a minute, which is more than 1 %%", most)
	}
}

func read(t *testing.T, name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
