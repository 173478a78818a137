package devices

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/guard"
	"agentsite/device/guard/proc"
	"agentsite/node/config"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if latch := os.Getenv("BENCH_GUARD"); latch != "" {
		if err := benchGuard(latch); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if mark := os.Getenv("SAFE_MARK"); mark != "" { // this is agentsite safe
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// bench is a driver whose devices count their opening and closing.
type bench struct {
	mu             sync.Mutex
	opened, closed []string
	desc           map[string]device.Description // by what
}

type benchConfig struct {
	What string `json:"what"`
	b    *bench
}

// benchSwitch is a driver that describes its output before Open.
type benchSwitch struct{ benchConfig }

func (c *benchSwitch) Describe() device.Description { return c.b.desc["switch"] }

func (b *bench) drivers() []driver.Driver {
	return []driver.Driver{
		{Name: "bench", Doc: "for tests", Config: func() driver.Config { return &benchConfig{b: b} }},
		{Name: "switch", Doc: "for tests", Config: func() driver.Config { return &benchSwitch{benchConfig{What: "switch", b: b}} }},
	}
}

func (c *benchConfig) Open(context.Context) (device.Device, error) {
	if c.What == "twice" {
		return nil, device.Faultf(device.Invalid, "there are two of them; write which")
	}
	if c.What == "damaged" {
		return nil, errors.New("worn out")
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.b.opened = append(c.b.opened, c.What)
	d := benchDevice{c.b, c.What}
	if c.What == "switch" {
		return benchActuator{d}, nil
	}
	return d, nil
}

type benchDevice struct {
	b    *bench
	what string
}

func (d benchDevice) Describe() device.Description { return d.b.desc[d.what] }
func (d benchDevice) Close() error {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	d.b.closed = append(d.b.closed, d.what)
	return errors.New("it is stuck")
}

// allClosed: each that was opened, in any order.
func (b *bench) allClosed() bool {
	return slices.Equal(slices.Sorted(slices.Values(b.closed)), slices.Sorted(slices.Values(b.opened)))
}

type benchActuator struct{ benchDevice }

func (benchActuator) Apply(context.Context, string, device.Value) error { return nil }

func TestOpenDevices(t *testing.T) {
	out := device.Description{Points: []device.Point{{Name: "p", Kind: device.KindSwitch, Safe: device.Bool(false)}}}
	for _, tt := range []struct {
		name, devices string
		opened        string
		says          string // prefix of the error; then all are closed
		missing       string // part of the reason why b is missing
	}{
		{"good", "a: { driver: bench, what: sensor }\n  b: { driver: switch, lease: 5s, max_on: 1m, min_off: 2s }", "sensor", "", ""},
		{"one is damaged", "a: { driver: bench, what: sensor }\n  b: { driver: bench, what: damaged }\n  c: { driver: bench, what: switch }", "sensor switch", "", "worn out"},
		{"one is not as its owner wrote", "a: { driver: bench, what: sensor }\n  b: { driver: bench, what: twice }", "sensor", "", "two of them"},
		{"one describes nonsense", "a: { driver: bench, what: sensor }\n  b: { driver: bench, what: nonsense }", "nonsense sensor", "", `"No Name"`},
		{"outputs that come late", "a: { driver: bench, what: sensor }\n  b: { driver: bench, what: switch }", "sensor switch", "", "only after Open"},
		{"the owner's keys do not fit", "a: { driver: bench, what: sensor }\n  b: { driver: bench, what: switch, range: 0..5 }", "sensor switch", "", "range"},
		{"keys for outputs that are not there", "a: { driver: bench, what: sensor }\n  b: { driver: bench, what: sensor, safe: off }", "sensor sensor", "", "safe"},
		{"a min_on beyond the default max_on", "a: { driver: switch, min_on: 1h }", "", "test:3:24: a/p: min_on 1h is longer than max_on 10m", ""},
		{"a slew of a switch", "a: { driver: switch, slew: 1/s }", "", "test:3:24: a/p: slew is for levels", ""},
		{"a lease beyond the default max_on", "a: { driver: switch, lease: 1h }", "", "test:3:24: a/p: lease 1h is longer than max_on 10m", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &bench{desc: map[string]device.Description{
				"sensor": {Points: []device.Point{{Name: "t", Kind: device.KindMeasurement}, {Name: "s", Kind: device.KindState}}},
				"switch": out, "nonsense": {Points: []device.Point{{Name: "No Name", Kind: device.KindState}}},
			}}
			cfg, err := config.Parse("test", []byte("site: { name: x }\ndevices:\n  "+tt.devices+"\n"), b.drivers())
			if err != nil {
				t.Fatal(err)
			}
			all, err := openDevices(t.Context(), cfg, board.New(), newOpener(proc.NewKeeper(nil, guard.Latch{}, nil)))
			if got := strings.Join(slices.Sorted(slices.Values(b.opened)), " "); got != tt.opened {
				t.Errorf("opened %q, want %q", got, tt.opened)
			}
			if tt.says != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.says) {
					t.Errorf("%v, want %s", err, tt.says)
				}
				if !b.allClosed() {
					t.Errorf("closed %q of %q", b.closed, b.opened)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.missing != "" {
				if len(all) < 2 || all[0].missing != nil || all[1].missing == nil || !strings.Contains(all[1].missing.Error(), tt.missing) || len(all[1].policies) > 0 {
					t.Errorf("%+v", all)
				}
				if len(b.closed) != len(b.opened)-1 { // all but a
					t.Errorf("closed %q of %q", b.closed, b.opened)
				}
				return
			}
			if len(all) != 2 || b.closed != nil || all[0].Name != "a" || all[0].missing != nil || !slices.Equal(slices.Sorted(maps.Keys(points(all))), []string{"a/s", "a/t", "b/p"}) {
				t.Errorf("%+v", all)
			}
			planned, err := NewPlan(cfg)
			if err != nil || len(planned.policies) != 1 || strings.Contains(string(planned.text), "sensor") {
				t.Fatalf("%+v, %v", planned, err)
			}
			if p := planned.policies[0]; p.Output != "b/p" || p.Lease.Seconds() != 5 || p.MaxOn.Seconds() != 60 || p.MinOff.Seconds() != 2 {
				t.Errorf("%+v", p)
			}
			if err := closeDevices(all); err == nil || err.Error() != "a: it is stuck" || !b.allClosed() {
				t.Errorf("%v, closed %q", err, b.closed)
			}
		})
	}
}

// stuck is a device that hangs in Close until it is released.
type stuck struct{ let chan struct{} }

func (s stuck) Describe() device.Description { return device.Description{} }
func (s stuck) Close() error                 { <-s.let; return nil }

// A hanging device delays neither the site's end nor the closing of others.
func TestCloseBesideAStuckDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		b := &bench{}
		var all []*instance
		for i, dev := range []device.Device{stuck{let}, benchDevice{b, "sensor"}, stuck{let}} {
			all = append(all, &instance{Device: config.Device{Name: string(rune('a' + i))}, device: dev})
		}
		begun := time.Now()
		err := closeDevices(all)
		if took := time.Since(begun); took > closeTimeout+time.Second {
			t.Errorf("it took %v", took)
		}
		if err == nil || err.Error() != "a: "+errHung.Error()+"\nb: it is stuck\nc: "+errHung.Error() {
			t.Error(err)
		}
		if !slices.Equal(b.closed, []string{"sensor"}) {
			t.Errorf("closed %q", b.closed)
		}
		close(let)
	})
}
