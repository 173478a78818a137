package devices

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
	"agentsite/device/chip"
	"agentsite/device/gpio"
	"agentsite/device/guard"
	"agentsite/device/guard/proc"
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/node/history"
	"agentsite/transport/rpc"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/mmr"
	"periph.io/x/conn/v3/physic"
)

// thermometer is a bus with a TMP102 alone.
type thermometer struct{}

func (thermometer) String() string                  { return "thermometer" }
func (thermometer) SetSpeed(physic.Frequency) error { return errors.New("no speed here") }

func (thermometer) Tx(_ uint16, w, r []byte) error {
	if w[0] == 0 {
		copy(r, []byte{0x19, 0x40})
	} else {
		copy(r, []byte{0x68, 0xA0})
	}
	return nil
}

func benchSite(entry string) string { return head + "  x: " + entry + "\n" }

// benched is a site with one device, on a board of a test.
func benched(b testing.TB, entry string, on *board.Board) *config.Site {
	b.Helper()
	cfg, err := config.Parse("bench", []byte(benchSite(entry)), slices.Concat(gpio.Drivers(on), chip.Drivers(on)))
	if err != nil {
		b.Fatal(err)
	}
	return cfg
}

// offered returns the catalog of a site's one device.
func offered(b *testing.B, w *instance, outputs *proc.Keeper) (*tools.Catalog, *node.Hub) {
	b.Helper()
	past := history.New(map[string]device.Point{"x/temperature": {Kind: device.KindMeasurement}})
	hub := node.NewHub(nil, past, agents.PointURI)
	n := node.New(node.Parts{Hub: hub, Journal: unwritten{}})
	if err := n.Replace(node.Site{Name: "x", Devices: []node.Device{w.published()}, History: past, Outputs: outputs}); err != nil {
		b.Fatal(err)
	}
	return tools.New(n, n), hub
}

func ask(b *testing.B, catalog *tools.Catalog, tool string, args []byte) {
	b.Helper()
	if _, err := catalog.Call(b.Context(), ann, tools.Call{Tool: tool, Args: rpc.RawJSON(args), Note: func(tools.Note) {}}); err != nil {
		b.Fatal(err)
	}
}

// costs are the costs of one iteration of a benchmark.
type costs struct{ ns, allocs float64 }

// cost runs a benchmark, and returns the costs of an iteration of its last run.
func cost(b *testing.B, name string, do func(b *testing.B, i int)) (c costs) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		do(b, 0) // the first iteration allocates more
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b.ResetTimer()
		for i := range b.N {
			do(b, i)
		}
		b.StopTimer()
		runtime.ReadMemStats(&after)
		c = costs{float64(b.Elapsed().Nanoseconds()) / float64(b.N), float64(after.Mallocs-before.Mallocs) / float64(b.N)}
	})
	return c
}

// beside prints what the one costs more than the other; some limits are aimed at.
func beside(b *testing.B, name string, ours, bare costs, ns, allocs string) {
	b.Run(name, func(b *testing.B) {
		b.ReportMetric(ours.ns/bare.ns, "x-bare")
		b.ReportMetric((ours.ns-bare.ns)/1000, "added-µs"+ns)
		b.ReportMetric(ours.allocs-bare.allocs, "added-allocs"+allocs)
		b.ReportMetric(0, "ns/op")
	})
}

// fed is a device with given readings.
type fed struct{ emit chan func(device.Reading) }

func (f fed) Watch(ctx context.Context, emit func(device.Reading)) error {
	f.emit <- emit
	<-ctx.Done()
	return ctx.Err()
}

// BenchmarkRead is read_points, the sample that its reading comes from, and both,
// beside periph's bare call on the same fake bus.
func BenchmarkRead(b *testing.B) {
	bus := thermometer{}
	cfg := benched(b, "{ driver: tmp102 }", boardtest.I2C(bus))
	w, err := newOpener(nil).openOne(b.Context(), cfg.Devices[0])
	if err != nil {
		b.Fatal(err)
	}
	defer w.device.Close()
	catalog, hub := offered(b, w, nil)
	ctx, end := context.WithCancel(b.Context())
	var sampling sync.WaitGroup
	f := fed{make(chan func(device.Reading))}
	sampling.Go(func() { hub.Sample(ctx, nil, f) })
	defer sampling.Wait()
	defer end()
	put := <-f.emit

	sample := func(b *testing.B, _ int) { // as the hub does
		all, _, err := device.Call(b.Context(), w.device.(device.Sensor).Sample)
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range all {
			r.Point = device.Address(w.Name, r.Point)
			put(r)
		}
	}
	args := []byte(`{"points":["x/temperature"]}`)
	read := func(b *testing.B, _ int) { ask(b, catalog, "read_points", args) }

	chip := mmr.Dev8{Conn: &i2c.Dev{Bus: bus, Addr: 0x48}, Order: binary.BigEndian}
	bare := cost(b, "periph", func(b *testing.B, _ int) {
		if _, err := chip.ReadUint16(0); err != nil {
			b.Fatal(err)
		}
	})
	sampled := cost(b, "sample", sample)
	answered := cost(b, "read_points", func(b *testing.B, i int) {
		if i == 0 {
			sample(b, 0)
		}
		read(b, i)
	})
	both := cost(b, "both", func(b *testing.B, i int) { sample(b, i); read(b, i) })
	beside(b, "sample-beside-periph", sampled, bare, "", "")
	beside(b, "read_points-beside-periph", answered, bare, "(≤20)", "(≤10)")
	beside(b, "both-beside-periph", both, bare, "(≤20)", "")
}

const relayEntry = "{ driver: relay, pin: GPIO17, safe: off, min_off: 0s, max_on: 1h }"

// BenchmarkSwitch is switch_output through the guard's process, which has a fake
// board, beside the bare write of a line of another such board.
func BenchmarkSwitch(b *testing.B) {
	line, err := boardtest.Lines(boardtest.Header()).Output("GPIO17", board.OutputOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer line.Close()

	cfg := benched(b, relayEntry, boardtest.Lines(boardtest.Header()))
	plan, err := NewPlan(cfg)
	if err != nil {
		b.Fatal(err)
	}
	latch := guard.Latch{File: filepath.Join(b.TempDir(), "armed")}
	if err := latch.Reset(); err != nil {
		b.Fatal(err)
	}
	outputs := proc.NewKeeper(plan.policies, latch, func() (proc.Process, error) {
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stderr = append(os.Environ(), "BENCH_GUARD="+latch.File), os.Stderr
		conn, err := connectChild(cmd)
		if err != nil {
			return proc.Process{}, err
		}
		return proc.Process{Conn: conn, Kill: func() { cmd.Process.Kill() }, Wait: func() error { return cmd.Wait() }}, proc.StartRealtime(cmd.Start)
	})
	w, err := newOpener(outputs).openOne(b.Context(), cfg.Devices[0])
	if err != nil {
		b.Fatal(err)
	}
	ctx, end := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { outputs.Run(ctx) })
	defer running.Wait()
	defer end()
	if err := outputs.Settle(b.Context()); err != nil {
		b.Fatal(err)
	}
	catalog, _ := offered(b, w, outputs)

	args := [2][]byte{[]byte(`{"output":"x/relay","on":true,"for_seconds":60}`), []byte(`{"output":"x/relay","on":false}`)}
	bare := cost(b, "write", func(b *testing.B, i int) {
		if err := line.Set(i&1 == 0); err != nil {
			b.Fatal(err)
		}
	})
	ours := cost(b, "switch_output", func(b *testing.B, i int) { ask(b, catalog, "switch_output", args[i&1]) })
	beside(b, "switch_output-beside-write", ours, bare, "", "")
}

// benchGuard is the guard's process of BenchmarkSwitch.
func benchGuard(latch string) error {
	conn, err := GuardConn()
	if err != nil {
		return err
	}
	proc.Realtime() // where it may
	on := boardtest.Lines(boardtest.Header())
	cfg, err := config.Parse("bench", []byte(benchSite(relayEntry)), gpio.Drivers(on))
	if err != nil {
		return err
	}
	return runGuard(context.Background(), cfg, guard.Latch{File: latch}, func(ctx context.Context, s *guardServer) error {
		return s.serve(ctx, conn, nil)
	})
}
