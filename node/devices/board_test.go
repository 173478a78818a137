package devices

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/board/boardtest"
	"agentsite/device/guard"
	"agentsite/device/guard/proc"
	"agentsite/device/testbed"
	"agentsite/node"
	"agentsite/node/history"

	"periph.io/x/conn/v3/physic"
)

// multiplexer is an I2C bus with a PCA9548 at 0x70 and a thermometer on each channel, all
// at one address. As on a real bus, others can use it between two transfers.
type multiplexer struct {
	mu      sync.Mutex
	channel byte
	chips   map[byte]*testbed.MCP9808
}

func newMultiplexer(t *testing.T, channels int) *multiplexer {
	t.Helper()
	m := &multiplexer{chips: make(map[byte]*testbed.MCP9808)}
	for i := range channels {
		chip := testbed.NewMCP9808()
		if err := chip.SetInput("temperature", degrees(i)); err != nil {
			t.Fatal(err)
		}
		chip.Reset()
		m.chips[1<<i] = chip
	}
	return m
}

// degrees returns the temperature at a channel.
func degrees(channel int) float64 { return 10 + float64(channel) }

func (m *multiplexer) Tx(address uint16, w, r []byte) error {
	defer runtime.Gosched()
	m.mu.Lock()
	defer m.mu.Unlock()
	if address == 0x70 {
		m.channel = w[0]
		return nil
	}
	chip := m.chips[m.channel]
	if chip == nil || address != 0x18 {
		return testbed.ErrNoAnswer
	}
	if len(w) > 0 {
		chip.Write(w)
	}
	chip.Read(r)
	return nil
}

func (*multiplexer) String() string                    { return "i2c-1" }
func (*multiplexer) SetSpeed(f physic.Frequency) error { return nil }

// TestReloadKeepsTheBoard: devices from before a reload and new ones use their bus one at a
// time. Behind a multiplexer, overlapping transfers would reach another chip.
func TestReloadKeepsTheBoard(t *testing.T) {
	const channels, before, samples = 4, 2, 200
	b := boardtest.I2C(newMultiplexer(t, channels))
	file := filepath.Join(t.TempDir(), "agentsite.yaml")
	write := func(n int) {
		t.Helper()
		text := head
		for i := range n {
			text += fmt.Sprintf("  t%d: { driver: mcp9808, bus: \"i2c-1/0x70:%d\", address: 0x18, every: 1h }\n", i, i)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(before)
	drivers := drivers(b)
	cfg, _, err := Check(file, drivers)
	if err != nil {
		t.Fatal(err)
	}
	past := history.New(nil)
	m, err := Open(t.Context(), Options{
		Board: b, Config: cfg, Read: Reader(file, drivers), Files: testFiles(t.TempDir()),
		Outputs: proc.NewKeeper(nil, guard.Latch{File: filepath.Join(t.TempDir(), "armed")}, nil),
		Hub:     node.NewHub(nil, past, agents.PointURI), KeepHistory: past.Keep,
	})
	if err != nil {
		t.Fatal(err)
	}
	devices := m.devices
	if err := m.Publish(func([]node.Device) error { return nil }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	write(channels)
	if err := m.Reload(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	running.Wait()
	if len(m.devices) != channels || m.devices[0] != devices[0] || m.devices[before-1] != devices[before-1] {
		t.Fatalf("%d devices, or others than before", len(m.devices))
	}
	var sampling sync.WaitGroup
	for i, d := range m.devices {
		sampling.Go(func() {
			for n := range samples {
				all, err := d.device.(device.Sensor).Sample(t.Context())
				if err != nil || len(all) != 1 || all[0].Value != device.Number(degrees(i)) {
					t.Errorf("sample %d of %s: %+v %v, want %v", n, d.Name, all, err, degrees(i))
					return
				}
			}
		})
	}
	sampling.Wait()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
