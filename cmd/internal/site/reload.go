package site

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/guard/proc"
	"agentsite/node/config"
)

// Reload reads the configuration again and changes what has changed in it: devices
// that are new, different or gone. It blocks until that is done, ctx ends or the site
// does. A file with a mistake, or with what only a restart can change, changes
// nothing: the error is *config.Error or an Invalid fault. An Offline fault says what
// did not go well although the new configuration holds.
func (w *wiring) Reload(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case w.reloads <- answer:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reloadOn reloads at each signal until ctx ends. The log says what came of it.
func (w *wiring) reloadOn(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			w.Reload(ctx)
		}
	}
}

func (w *wiring) reload(ctx context.Context) error {
	cfg, next, err := w.load()
	if err != nil {
		slog.Error("the configuration is not reloaded; all stays as it was", "err", err)
		return err
	}
	var added, changed, removed, problems []string

	// Close before reopen: what one device leaves another may take.
	var kept []*wired
	for _, d := range w.devices {
		i := slices.IndexFunc(cfg.Devices, func(c config.Device) bool { return c.Name == d.Name })
		switch {
		case i >= 0 && d.Same(cfg.Devices[i]):
			kept = append(kept, d)
			continue
		case i >= 0:
			changed = append(changed, d.Name)
		default:
			removed = append(removed, d.Name)
		}
		if err := w.remove(d); err != nil {
			slog.Error("a device did not go well; look whether its outputs are safe", "device", d.Name, "err", err)
			problems = append(problems, fmt.Sprintf("%s did not go well, look whether its outputs are safe: %v", d.Name, err))
		}
	}
	var refused error
	if !next.same(w.plan) {
		swapped := false
		err := w.keeper.Change(ctx, proc.Change{
			Policies: next.policies, Before: w.plan.text, Between: w.plan.between(next), After: next.text,
			Swap: func() error {
				err := w.install()
				swapped = err == nil
				return err
			},
		})
		switch {
		case !swapped: // the file says what does not hold, and the next reload tries again
			slog.Error("the configuration of before goes on", "err", err)
			refused, cfg = err, w.cfg
		case err != nil:
			slog.Error("the outputs did not go well; look whether they are safe", "err", err)
			problems = append(problems, fmt.Sprintf("the outputs did not go well, look whether they are safe: %v", err))
		}
		if swapped {
			w.plan = next
		}
		settling, cancel := context.WithTimeout(ctx, settleFor)
		if err := w.keeper.Settle(settling); err != nil {
			problems = append(problems, err.Error())
		}
		cancel()
	}
	w.cfg, w.devices = cfg, nil
	w.past.Keep(measured(kept)) // what is set up anew begins anew
	var opened []*wired
	var fresh []config.Device
	for _, c := range cfg.Devices {
		if !slices.ContainsFunc(kept, func(d *wired) bool { return d.Name == c.Name }) {
			fresh = append(fresh, c)
		}
	}
	all, errs := w.opens.open(ctx, fresh)
	for _, c := range cfg.Devices {
		if i := slices.IndexFunc(kept, func(d *wired) bool { return d.Name == c.Name }); i >= 0 {
			kept[i].Device = c // it may stand in another line
			w.devices = append(w.devices, kept[i])
			continue
		}
		if !slices.Contains(changed, c.Name) {
			added = append(added, c.Name)
		}
		d, err := all[len(opened)], errs[len(opened)]
		if err != nil {
			d = standIn(c, err)
			problems = append(problems, fmt.Sprintf("%s is missing: %v", c.Name, d.missing))
		}
		opened = append(opened, d)
		w.devices = append(w.devices, d)
	}
	if refused == nil && added == nil && changed == nil && removed == nil {
		slog.Info("the configuration is reloaded and says what it said before")
		return nil // and nobody has to list the tools again
	}
	err = w.publish()
	for _, d := range opened { // once its readings are kept
		w.sample(ctx, d)
	}
	if err != nil {
		return err
	}
	if refused != nil {
		return device.Faultf(device.Unavailable, "the configuration of before goes on; see to the data folder and reload again: %w", refused)
	}
	slog.Info("the configuration is reloaded", "added", added, "changed", changed, "removed", removed)
	if problems != nil {
		return device.Faultf(device.Offline, "the new configuration holds, but %s", strings.Join(problems, "; "))
	}
	return nil
}

// load is the configuration as the file has it now, if this site can take it on,
// and the guard's part of it, staged.
func (w *wiring) load() (*config.Site, plan, error) {
	cfg, err := w.read()
	switch {
	case err != nil:
		return nil, plan{}, err
	case cfg.Name != w.cfg.Name:
		return nil, plan{}, device.Faultf(device.Invalid, "site.name was %s and is %s: restart to change it", w.cfg.Name, cfg.Name)
	case cfg.Owner != w.cfg.Owner:
		return nil, plan{}, device.Faultf(device.Invalid, "owner is not what it was: restart to change it")
	case cfg.Watchdog != w.cfg.Watchdog:
		return nil, plan{}, device.Faultf(device.Invalid, "site.watchdog is not what it was: restart to change it")
	case cfg.Claim != w.cfg.Claim:
		return nil, plan{}, device.Faultf(device.Invalid, "claim is not what it was: restart to change it")
	case cfg.Found != w.cfg.Found:
		return nil, plan{}, device.Faultf(device.Invalid, "discovery is not what it was: restart to change it")
	case cfg.LastKnown != w.cfg.LastKnown:
		return nil, plan{}, device.Faultf(device.Invalid, "clock is not what it was: restart to change it")
	case !reflect.DeepEqual(cfg.Internet, w.cfg.Internet):
		return nil, plan{}, device.Faultf(device.Invalid, "internet is not what it was: restart to change it")
	case !reflect.DeepEqual(cfg.HTTP, w.cfg.HTTP):
		return nil, plan{}, device.Faultf(device.Invalid, "http is not what it was: restart to change it")
	}
	if err := survey(cfg, w.board); err != nil {
		return nil, plan{}, err
	}
	next, err := newPlan(cfg)
	if err != nil {
		return nil, plan{}, err
	}
	if next.same(w.plan) {
		return cfg, next, nil
	}
	return cfg, next, w.stage(next.text)
}

// reader reads the file that the site was started with, and no other. What it brings is on
// the board of the devices that are there already.
func reader(b *board.Board, file string) func() (*config.Site, error) {
	return func() (*config.Site, error) {
		if file == "" {
			return nil, device.Faultf(device.Invalid, "the demonstration has no file to read again: write %s and start with it", config.DefaultFile)
		}
		cfg, _, err := check(b, file)
		return cfg, err
	}
}
