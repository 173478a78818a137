package devices

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/guard"
	"agentsite/device/guard/proc"
	"agentsite/node/config"
)

// guardMemory is the memory limit of the guard's process, which stays locked in memory and
// must be small on a small board. The limit includes the Go runtime's memory. If it is too small,
// the guard collects garbage all the time. With thirty devices and limits of 4, 6, 8 and 12 MiB, a
// move takes 5.4, 5.9, 0.6 and 0.5 ms of CPU. The process has 3.8, 3.8, 4.1 and 4.8 MB of anonymous
// memory (BenchmarkGuardMoves). 12 leaves room for more devices.
const guardMemory = 12 << 20

// Guard is the main function of the process that moves the outputs of the plan, for the site
// at the other end of conn. Each signal is an emergency stop. It blocks until conn or ctx
// ends, and returns when the outputs are safe; the error names those that are not known to
// be.
func Guard(ctx context.Context, f GuardFiles, drivers []driver.Driver, conn io.ReadWriteCloser, signals <-chan os.Signal) error {
	unlock, err := f.lock(ctx, false)
	if err != nil {
		return err
	}
	defer unlock()
	cfg, err := f.plan(drivers)
	if err != nil {
		return err
	}
	var dog *proc.Watchdog
	var refused error
	if cfg.Watchdog != "" {
		dog, refused = proc.OpenWatchdog(cfg.Watchdog)
	}
	var feeding sync.WaitGroup
	err = runGuard(ctx, cfg, f.Latch, func(ctx context.Context, s *guardServer) error {
		if refused != nil { // no output moves without the configured watchdog
			return refused
		}
		defer time.AfterFunc(time.Second, limitGuard).Stop() // later, because the site waits for a response now
		go StopOnSignal(ctx, signals, s.guard.Stop)
		if dog != nil {
			feeding.Go(func() { dog.Feed(ctx, s.guard.Alive) })
		}
		return s.serve(ctx, conn, drivers)
	})
	feeding.Wait()
	if dog != nil {
		err = errors.Join(err, dog.Close(err == nil))
	}
	return err
}

// limitGuard limits this process's memory, returns the memory that only the start needed, and locks
// the rest.
func limitGuard() {
	debug.SetGCPercent(25) // by default the heap grows to 4 MB before the first collection
	debug.SetMemoryLimit(guardMemory)
	debug.FreeOSMemory()
	if err := proc.Realtime(); err != nil {
		slog.Info("the guard may be late on a busy board", "why", err)
	}
}

// Safe drives every output of the plan to safe, after the process that moves them has ended,
// and returns how many there are. The error names those that are not known to be safe.
func Safe(ctx context.Context, f GuardFiles, drivers []driver.Driver) (outputs int, err error) {
	unlock, err := f.lock(ctx, true)
	if err != nil {
		return 0, err
	}
	defer unlock()
	cfg, err := f.plan(drivers)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return outputs, runGuard(ctx, cfg, f.Latch, func(_ context.Context, s *guardServer) error {
		outputs = len(s.guard.Status())
		return nil
	})
}

// plan reads the plan.
func (f GuardFiles) plan(drivers []driver.Driver) (*config.Site, error) {
	text, err := f.Read()
	if err == nil && text == nil {
		err = &fs.PathError{Op: "open", Path: f.Plan, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	return config.ParsePlan(f.Plan, text, drivers)
}

// guardServer is a guard and the devices of its plan, as the site's process uses them.
type guardServer struct {
	guard   *guard.Guard
	cfg     *config.Site
	devices []*instance
}

// runGuard runs a guard over the outputs of a plan while serve runs, and drives them to safe
// before and after.
func runGuard(ctx context.Context, cfg *config.Site, latch guard.Latch, serve func(context.Context, *guardServer) error) error {
	all, err := configureGuarded(cfg, nil)
	if err != nil {
		return err
	}
	s := &guardServer{cfg: cfg, devices: all}
	defer func() {
		if err := closeDevices(s.devices); err != nil {
			slog.Error("closing a device failed; its outputs may be on", "err", err)
		}
	}()
	s.guard, err = guard.New(actuators(all), latch)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	driven := make(chan error, 1)
	go func() { driven <- s.guard.Run(ctx) }()
	err = serve(ctx, s)
	end()
	return errors.Join(err, <-driven)
}

// serve serves the site at the other end of conn. It reads further plans with the drivers.
func (s *guardServer) serve(ctx context.Context, conn io.ReadWriteCloser, drivers []driver.Driver) error {
	devices, buttons := s.served()
	return proc.Serve(ctx, conn, s.guard, proc.Equipment{
		Devices: devices, Buttons: buttons,
		Follow: func(ctx context.Context, text []byte) (map[string]device.Device, error) {
			cfg, err := config.ParsePlan("the plan", text, drivers)
			if err != nil {
				return nil, err
			}
			if cfg.Simulated != s.cfg.Simulated {
				return nil, device.Faultf(device.Internal, "a simulated site stays one, and a real one real")
			}
			return s.changePlan(ctx, cfg)
		},
	})
}

// changePlan changes the plan. A device whose driver gets the same configuration stays open.
// After an error other than UnknownOutcome this process has to end: nothing else releases a
// device whose driver hangs.
func (s *guardServer) changePlan(ctx context.Context, cfg *config.Site) (map[string]device.Device, error) {
	next, err := configureGuarded(cfg, s.devices)
	if err != nil {
		return nil, err
	}
	failed := s.guard.Change(ctx, actuators(next))
	if failed != nil && device.AsFault(failed).Kind != device.UnknownOutcome {
		return nil, failed
	}
	gone := slices.DeleteFunc(slices.Clone(s.devices), func(d *instance) bool {
		return slices.ContainsFunc(next, func(n *instance) bool { return n.device == d.device })
	})
	switch err := closeDevices(gone); {
	case errors.Is(err, errHung):
		failed = device.Faultf(device.Offline, "%w", errors.Join(err, failed))
	case err != nil:
		failed = device.Faultf(device.UnknownOutcome, "%w", errors.Join(err, failed))
	}
	s.cfg, s.devices = cfg, next
	devices, _ := s.served()
	debug.FreeOSMemory() // reading the plan took memory
	return devices, failed
}

// served returns the devices that the site reads, by name, and the emergency stops.
func (s *guardServer) served() (map[string]device.Device, []proc.Button) {
	all := make(map[string]device.Device)
	for _, d := range s.devices {
		all[d.Name] = d.device
	}
	return all, takeStopButtons(s.cfg, all)
}

func actuators(devices []*instance) (all []guard.Actuated) {
	for _, d := range devices {
		if len(d.policies) > 0 {
			all = append(all, guard.Actuated{Actuator: d.device.(device.Actuator), Policies: d.policies})
		}
	}
	return all
}
