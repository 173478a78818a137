package host

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/device/devicetest"
	"agentsite/device/driver"
)

func TestConformance(t *testing.T) {
	machines := map[string]func(t *testing.T) (device.Device, error){
		"this machine": func(t *testing.T) (device.Device, error) { return Driver().Config().Open(t.Context()) },
	}
	for name, files := range map[string]tree{"pi": pi, "mainline pi": mainlinePi, "pc": pc, "bare": {}} {
		machines[name] = func(t *testing.T) (device.Device, error) { return open(files.write(t), "") }
	}
	for name, open := range machines {
		t.Run(name, func(t *testing.T) {
			devicetest.Run(t, func(t *testing.T) device.Device {
				dev, err := open(t)
				if err != nil {
					t.Fatal(err)
				}
				return dev
			})
		})
	}
}

func TestReadings(t *testing.T) {
	everyLinux := map[string]device.Value{
		"load_1m":          device.Number(0.52),
		"cpu_usage":        device.Number(20), // since boot: 200 ticks of 1000
		"boot_time":        device.Number(1763690000),
		"memory_used":      device.Number(25),
		"memory_available": device.Number(330000 * 1024),
		"uptime":           device.Number(35007.54),
		"network_received": device.Number(1030),
		"network_sent":     device.Number(204),
	}
	tests := []struct {
		name  string
		files tree
		more  map[string]device.Value
	}{
		{"linux", linux, nil},
		{"pi", pi, map[string]device.Value{
			"cpu_temperature":  device.Number(48.312),
			"under_voltage":    device.Bool(true),
			"frequency_capped": device.Bool(false),
			"throttled":        device.Bool(true),
		}},
		{"mainline pi", mainlinePi, map[string]device.Value{
			"cpu_temperature": device.Number(51),
			"under_voltage":   device.Bool(true),
		}},
		{"pc", pc, map[string]device.Value{"cpu_temperature": device.Number(61)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := maps.Clone(everyLinux)
			maps.Copy(want, tt.more)
			got := sample(t, openTree(t, tt.files.write(t)))
			for _, name := range []string{"disk_used", "disk_free"} { // of the machine that the test runs on
				delete(got, name)
			}
			for name, r := range got {
				if r.Quality != device.Good || r.Value != want[name] {
					t.Errorf("%s = %v (%s %s), want %v", name, r.Value, r.Quality, r.Why, want[name])
				}
				delete(want, name)
			}
			if len(want) > 0 {
				t.Errorf("not read: %v", want)
			}
		})
	}
}

func TestThrottledBits(t *testing.T) {
	tests := []struct {
		word                  string
		under, capped, slowed bool
	}{
		{"0\n", false, false, false},
		{"1", true, false, false},
		{"2", false, true, false},
		{"0x4\n", false, false, true},
		{"8", false, false, false},     // the soft temperature limit
		{"f0000", false, false, false}, // since boot, and over
		{"50005", true, false, true},
	}
	for _, tt := range tests {
		values := make([]float64, 3)
		parseThrottled([]byte(tt.word), values)
		if got := [3]bool{values[0] == 1, values[1] == 1, values[2] == 1}; slices.ContainsFunc(values, math.IsNaN) || got != [3]bool{tt.under, tt.capped, tt.slowed} {
			t.Errorf("%q: got %v, want %v", tt.word, got, tt)
		}
	}
}

// TestThrottledOnANewerPi has the firmware below a soc with an address.
func TestThrottledOnANewerPi(t *testing.T) {
	root := linux.with(tree{"sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled": "2\n"}).write(t)
	if r := sample(t, openTree(t, root))["frequency_capped"]; !r.Value.Bool() {
		t.Errorf("frequency_capped = %v, want on", r.Value)
	}
}

func TestUsageIsOfTheTimeBetween(t *testing.T) {
	root := linux.write(t)
	m := openTree(t, root)
	for _, tt := range []struct {
		ticks string
		want  float64
	}{
		{"100 0 100 700 100 0 0 0", 20},
		{"150 0 125 700 125 0 0 0", 75},
		{"150 0 125 700 125 0 0 0", 75}, // the same tick: nothing new
		{"150 0 125 900 125 0 0 0 0 0", 0},
		{"250 0 125 900 125 0 0 0 50 0", 100}, // guests are in user already
	} {
		rewrite(t, root, "proc/stat", "cpu  "+tt.ticks+"\nbtime 1763690000\n")
		if got := sample(t, m)["cpu_usage"].Value; got != device.Number(tt.want) {
			t.Errorf("after %q: cpu_usage = %v, want %v", tt.ticks, got, tt.want)
		}
	}
}

// TestOneBadFileIsOneBadSource spoils each file in turn.
func TestOneBadFileIsOneBadSource(t *testing.T) {
	fed := map[string][]string{
		"proc/loadavg": {"load_1m"},
		"proc/uptime":  {"uptime"},
		"proc/stat":    {"boot_time", "cpu_usage"},
		"proc/meminfo": {"memory_available", "memory_used"},
		"proc/net/dev": {"network_received", "network_sent"},
		zone0 + "temp": {"cpu_temperature"},
		throttled:      {"frequency_capped", "throttled", "under_voltage"},
	}
	spoil := map[string]func(t *testing.T, root, path string){
		"gone":    func(t *testing.T, root, path string) { remove(t, root, path) },
		"garbled": func(t *testing.T, root, path string) { rewrite(t, root, path, "cpu x\nMemTotal: -\neth0: ?\n") },
	}
	for path, points := range fed {
		for how, spoil := range spoil {
			t.Run(path+" "+how, func(t *testing.T) {
				root := pi.write(t)
				m := openTree(t, root)
				spoil(t, root, path)
				var bad []string
				for name, r := range sample(t, m) {
					if r.Quality == device.Bad {
						bad = append(bad, name)
						if !strings.Contains(r.Why, filepath.Base(path)) {
							t.Errorf("%s: %q does not name the file", name, r.Why)
						}
					}
				}
				slices.Sort(bad)
				if !slices.Equal(bad, points) {
					t.Errorf("bad: %v, want %v", bad, points)
				}
			})
		}
	}
}

func TestAnotherSystemKnowsItsAge(t *testing.T) {
	m := openTree(t, tree{}.write(t))
	p, _ := m.Describe().Point("uptime")
	if !strings.Contains(p.Description, "this program") {
		t.Errorf("uptime is %q", p.Description)
	}
	if r := sample(t, m)["uptime"]; r.Quality != device.Good || r.Value.Number() < 0 {
		t.Errorf("uptime = %v (%s)", r.Value, r.Quality)
	}
}

func TestDisk(t *testing.T) {
	here := t.TempDir()
	if _, err := statVolume(here); err != nil {
		t.Skip(err)
	}
	dev, err := (&Config{Disk: here}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r := sample(t, dev.(*machine))["disk_free"]; r.Value.Number() <= 0 {
		t.Errorf("disk_free = %v", r.Value)
	}
	_, err = (&Config{Disk: filepath.Join(here, "none")}).Open(t.Context())
	if err == nil || device.AsFault(err).Kind != device.Offline {
		t.Errorf("a disk that is not there: %v", err)
	}
	_, err = driver.Open(t.Context(), &Config{Disk: "data"})
	if err == nil || device.AsFault(err).Kind != device.Invalid {
		t.Errorf("a relative path: %v", err)
	}
}

// TestALargeFileIsReadWhole has /proc/stat of a server with many interrupts.
func TestALargeFileIsReadWhole(t *testing.T) {
	stat := strings.Replace(linux["proc/stat"], "intr 1234", "intr 1234"+strings.Repeat(" 0", 50_000), 1)
	m := openTree(t, linux.with(tree{"proc/stat": stat}).write(t))
	if r := sample(t, m)["boot_time"]; r.Value != device.Number(1763690000) {
		t.Errorf("boot_time = %v (%s)", r.Value, r.Why)
	}
}

func FuzzParsers(f *testing.F) {
	for _, content := range pi {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, parse := range []func([]byte, []float64){firstNumber, parseMilli, parseMemory, parseNetwork, parseThrottled} {
			values := make([]float64, 3)
			if parse(b, values); slices.ContainsFunc(values, math.IsNaN) {
				continue
			}
			for _, v := range values {
				if !device.Number(v).Finite() {
					t.Errorf("%q is read as %v", b, v)
				}
			}
		}
		parseStat(b)
	})
}

func BenchmarkSample(b *testing.B) {
	m, err := open(pi.write(b), "")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m.Sample(b.Context())
	}
	b.ReportAllocs()
}

func openTree(t *testing.T, root string) *machine {
	t.Helper()
	m, err := open(root, "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func sample(t *testing.T, m *machine) map[string]device.Reading {
	t.Helper()
	readings, err := m.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]device.Reading)
	for _, r := range readings {
		all[r.Point] = r
	}
	return all
}

func rewrite(t *testing.T, root, path, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, root, path string) {
	t.Helper()
	if err := os.Remove(filepath.Join(root, path)); err != nil {
		t.Fatal(err)
	}
}
