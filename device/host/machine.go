package host

import (
	"context"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/sysfs"
)

// machine is a Sensor and holds nothing open between samples.
type machine struct {
	desc    device.Description
	sources []source

	mu     sync.Mutex // one sample at a time: they share the reader
	reader sysfs.Reader
	values []float64 // room for the source with the most points
}

// source is one file, or one system call, and the points that it feeds.
type source struct {
	points []device.Point
	// read fills in one value for each point, in their order. A state is true
	// when its value is not 0.
	read func(r *sysfs.Reader, values []float64) error
}

// open finds the sources of the machine whose files are under root.
func open(root, disk string) (*machine, error) {
	m := &machine{desc: device.Description{Model: "this computer"}}
	volume, err := findDisk(root, disk)
	if err != nil {
		return nil, err
	}
	most := 0
	for _, found := range [][]source{
		findTemperature(root), findLoad(root), findStat(root), findMemory(root), volume,
		findUptime(root), findNetwork(root), findPower(root),
	} {
		for _, s := range found {
			m.sources = append(m.sources, s)
			m.desc.Points = append(m.desc.Points, s.points...)
			most = max(most, len(s.points))
		}
	}
	m.values = make([]float64, most)
	return m, nil
}

// Describe lists what this machine has; it was looked for once, by Open.
func (m *machine) Describe() device.Description { return m.desc }

// Sample reads at most seven small files and asks about one disk. A file that
// cannot be read makes its own points Bad, and no others. cpu_usage is the mean
// since the Sample before, and since boot in the first.
//
// The kernel offers no way to give up on a disk that hangs; the context is obeyed
// between two sources.
func (m *machine) Sample(ctx context.Context) ([]device.Reading, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	readings := make([]device.Reading, 0, len(m.desc.Points))
	for _, s := range m.sources {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		values := m.values[:len(s.points)]
		err := s.read(&m.reader, values)
		now := time.Now()
		for i, p := range s.points {
			r := device.Reading{Point: p.Name, Quality: device.Good, At: now}
			switch {
			case err != nil:
				r.Quality, r.Why = device.Bad, "the computer does not say: "+err.Error()
			case p.Kind == device.KindState:
				r.Value = device.Bool(values[i] != 0)
			default:
				r.Value = device.Number(values[i])
			}
			readings = append(readings, r)
		}
	}
	return readings, ctx.Err()
}

// Close does nothing.
func (m *machine) Close() error { return nil }
