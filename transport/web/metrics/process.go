package metrics

import (
	"bytes"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
)

// ticks is the unit of times in /proc/self/stat, of which there are so many in a second: USER_HZ is 100 on
// all architectures that Go has (man 5 proc, man 3 sysconf).
const ticks = 100

// process writes the metrics that client libraries have under these names, of the site's process:
// prometheus.io/docs/instrumenting/writing_clientlibs#process-metrics. Those of /proc are left out where it
// cannot be read. The start is by the site's clock, as all times here.
func (t *text) process(started float64) {
	t.one("process_start_time_seconds", gauge, "When the process started, by the site's clock.", started)
	if b, err := os.ReadFile("/proc/self/stat"); err == nil {
		// The name, in parentheses, may have spaces. The state, field 3, follows it.
		if f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]); len(f) > 21 {
			field := func(i int) float64 { n, _ := strconv.ParseFloat(string(f[i-3]), 64); return n }
			t.one("process_cpu_seconds_total", counter, "CPU time of the process.", (field(14)+field(15))/ticks)
			t.one("process_virtual_memory_bytes", gauge, "Virtual memory of the process.", field(23))
			t.one("process_resident_memory_bytes", gauge, "Resident memory of the process.", field(24)*float64(os.Getpagesize()))
		}
	}
	if n, err := openFiles(); err == nil {
		t.one("process_open_fds", gauge, "Open file descriptors.", float64(n))
	}
	if b, err := os.ReadFile("/proc/self/limits"); err == nil {
		_, after, _ := bytes.Cut(b, []byte("Max open files"))
		if f := bytes.Fields(after); len(f) > 0 {
			if n, err := strconv.ParseFloat(string(f[0]), 64); err == nil { // not "unlimited"
				t.one("process_max_fds", gauge, "Most file descriptors that may be open.", n)
			}
		}
	}
	t.begin("go_info", gauge, "The Go that built the program.")
	t.label("version", runtime.Version()).number(1)
	samples := make([]metrics.Sample, len(goMetrics))
	for i, m := range goMetrics {
		samples[i].Name = m.source
	}
	metrics.Read(samples)
	for i, m := range goMetrics {
		if samples[i].Value.Kind() == metrics.KindUint64 {
			t.one(m.name, m.kind, m.help, float64(samples[i].Value.Uint64()))
		}
	}
}

// goMetrics are metrics of the runtime under the names of Prometheus' client for Go. Reading them does not
// stop the program.
var goMetrics = [...]struct{ name, kind, help, source string }{
	{"go_goroutines", gauge, "Goroutines.", "/sched/goroutines:goroutines"},
	{"go_memstats_heap_alloc_bytes", gauge, "Heap in use.", "/memory/classes/heap/objects:bytes"},
	{"go_memstats_alloc_bytes_total", counter, "Heap ever allocated.", "/gc/heap/allocs:bytes"},
	{"go_memstats_sys_bytes", gauge, "Memory from the system.", "/memory/classes/total:bytes"},
	{"go_gc_cycles_total", counter, "Garbage collections.", "/gc/cycles/total:gc-cycles"},
}

// openFiles counts the open files, without the one that is open for it.
func openFiles() (int, error) {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	return len(names) - 1, err
}
