package devices

import (
	"context"
	"log/slog"
	"os"
	"slices"

	"agentsite/device"
	"agentsite/device/guard/proc"
	"agentsite/node/config"
)

// StopOnSignal calls the emergency stop at each signal, until ctx ends.
func StopOnSignal(ctx context.Context, signals <-chan os.Signal, stop func(context.Context) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-signals:
			slog.Error("emergency stop: outputs go to their safe values and stay there", "why", s)
			if err := stop(ctx); err != nil {
				slog.Error("the emergency stop is not complete", "err", err)
			}
		}
	}
}

// checkStopButtons refuses an emergency stop without an output: without outputs there is
// no guard that would watch it.
func checkStopButtons(cfg *config.Site) error {
	i := slices.IndexFunc(cfg.Devices, func(d config.Device) bool { return stopState(d) != "" })
	if i < 0 || slices.ContainsFunc(cfg.Devices, hasOutputs) {
		return nil
	}
	d := cfg.Devices[i]
	return d.Errorf("", "driver", "%s: there is no output that it could stop; write one, or take driver: button, which stops nothing", d.Name)
}

// takeStopButtons returns the emergency stops among devices, for the guard to watch. It replaces
// them by devices that can only be read, because a device has one watcher at a time.
func takeStopButtons(cfg *config.Site, devices map[string]device.Device) []proc.Button {
	var all []proc.Button
	for _, d := range cfg.Devices {
		point := stopState(d)
		if point == "" {
			continue
		}
		dev := devices[d.Name].(*lazyDevice)
		all = append(all, proc.Button{Device: dev, Name: device.Address(d.Name, point), Point: point})
		devices[d.Name] = struct {
			device.Device
			device.Sensor
			proc.Simulated
		}{dev, dev, dev}
	}
	return all
}
