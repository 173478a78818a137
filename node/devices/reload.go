package devices

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"

	"agentsite/device"
	"agentsite/device/guard/proc"
	"agentsite/node/config"
)

// Reload reads the configuration again and applies what has changed in it: devices that are
// new, different or gone. It blocks until Run has done that, or ctx ends. A file with a
// mistake, or with a change that needs a restart, changes nothing: the error is
// *config.Error or an Invalid fault. An Offline fault says what failed although the new
// configuration is in use, and wraps that alone. Once Run has ended it fails with an Unavailable fault.
func (m *Manager) Reload(ctx context.Context) error { return m.ask(ctx, true, m.reload) }

// Accepts returns what Reload would return for a mistake in cfg, or what also returns for it and the
// configuration in use, and else an error with config.ErrRestart for a change that needs a restart. It changes nothing.
func (m *Manager) Accepts(ctx context.Context, cfg *config.Site, also func(cfg, was *config.Site) error) error {
	return m.ask(ctx, false, func(context.Context) error {
		_, err := m.fits(cfg)
		if err == nil {
			err = also(cfg, m.Config)
		}
		return cmp.Or(err, m.needsRestart(cfg))
	})
}

// request is a function that Run calls.
type request struct {
	changes bool // the devices
	do      func(context.Context) error
	answer  chan<- error
}

func (m *Manager) ask(ctx context.Context, changes bool, do func(context.Context) error) error {
	answer := make(chan error, 1)
	select {
	case m.requests <- request{changes, do, answer}:
	case <-m.ended:
		return device.Faultf(device.Unavailable, "the site is ending")
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

// ReloadOnSignal reloads at each signal until ctx ends, and logs the outcome.
func (m *Manager) ReloadOnSignal(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			m.Reload(ctx)
		}
	}
}

func (m *Manager) reload(ctx context.Context) error {
	cfg, next, err := m.load()
	if err != nil {
		slog.Error("the configuration is not reloaded; all stays as it was", "err", err)
		return err
	}
	var added, changed, removed, problems []string

	// Close before reopen: another device may need the same line.
	var kept []*instance
	for _, d := range m.devices {
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
		if err := m.remove(d); err != nil {
			slog.Error("removing a device failed; check its outputs", "device", d.Name, "err", err)
			problems = append(problems, fmt.Sprintf("%s: removing it failed (%v); check that its outputs are safe", d.Name, err))
		}
	}
	var refused error
	if !next.equal(m.Plan) {
		unsafe, swapped := m.unsafe(kept), false
		err := m.Outputs.Change(ctx, proc.Change{
			Policies: next.policies, Before: m.Plan.text, Between: m.Plan.transition(next), After: next.text,
			Swap: func() error {
				err := m.install()
				swapped = err == nil
				return err
			},
		})
		switch {
		case !swapped: // so that the next reload tries again
			slog.Error("configuration refused; the previous one stays in use", "err", err)
			refused, cfg = err, m.Config
		case err != nil:
			slog.Error("changing outputs failed; check them", "err", err)
			problems = append(problems, fmt.Sprintf("changing the outputs failed (%v); check that they are safe", err))
		}
		if swapped {
			m.Plan = next
		}
		settling, cancel := context.WithTimeout(ctx, SettleTimeout)
		if err := m.Outputs.Settle(settling, unsafe...); err != nil {
			problems = append(problems, err.Error())
		}
		cancel()
	}
	others := m.reloaded != nil && (!slices.EqualFunc(cfg.Agents, m.taken.Agents, config.Agent.Same) || !reflect.DeepEqual(cfg.Place, m.taken.Place) ||
		!slices.EqualFunc(cfg.Devices, m.taken.Devices, config.Device.Same)) // whose points agents may name
	if others {
		if err := m.reloaded(cfg); err != nil { // and the next reload tries again
			problems = append(problems, err.Error())
		} else {
			m.taken = cfg
		}
	}
	recorded := points(kept) // readings of a changed device until it is closed are of no use
	for address, p := range points(m.devices) {
		if p.Kind.Output() { // the keeper reports it all the time, and only what changes
			recorded[address] = p
		}
	}
	m.KeepHistory(recorded)
	m.Config, m.devices = cfg, nil
	var opened []*instance
	var fresh []config.Device
	for _, c := range cfg.Devices {
		if !slices.ContainsFunc(kept, func(d *instance) bool { return d.Name == c.Name }) {
			fresh = append(fresh, c)
		}
	}
	all, errs := m.opener.open(ctx, fresh)
	for _, c := range cfg.Devices {
		if i := slices.IndexFunc(kept, func(d *instance) bool { return d.Name == c.Name }); i >= 0 {
			kept[i].Device = c // it may stand in another line
			m.devices = append(m.devices, kept[i])
			continue
		}
		if !slices.Contains(changed, c.Name) {
			added = append(added, c.Name)
		}
		d, err := all[len(opened)], errs[len(opened)]
		if err != nil {
			d = newPlaceholder(c, err)
			problems = append(problems, fmt.Sprintf("%s is missing: %v", c.Name, d.missing))
		}
		opened = append(opened, d)
		m.devices = append(m.devices, d)
	}
	if refused == nil && added == nil && changed == nil && removed == nil && !others {
		slog.Info("configuration reloaded, unchanged")
		return nil // and nobody has to list the tools again
	}
	if err := m.publish(); err != nil {
		problems = append(problems, err.Error())
	}
	for _, d := range opened { // once its readings are kept
		m.sample(ctx, d)
	}
	if refused != nil {
		return device.Faultf(device.Unavailable, "the previous configuration stays in use; mend the data folder and reload again: %w", refused)
	}
	slog.Info("the configuration is reloaded", "added", added, "changed", changed, "removed", removed, "agents", others)
	if problems != nil {
		return device.Faultf(device.Offline, "the new configuration was taken, but %w",
			errors.New(strings.Join(problems, "; ")))
	}
	return nil
}

// unsafe returns the outputs of kept devices that are not known to be safe and that nobody holds. They are no
// consequence of a reload, which does not wait for them.
func (m *Manager) unsafe(kept []*instance) (all []string) {
	for _, s := range m.Outputs.Status() {
		isOf := func(d *instance) bool { return strings.HasPrefix(s.Output, d.Name+"/") }
		if !s.Safe && s.Holder == "" && slices.ContainsFunc(kept, isOf) {
			all = append(all, s.Output)
		}
	}
	return all
}

// load reads the configuration, and stages the guard's plan if that has changed.
func (m *Manager) load() (*config.Site, Plan, error) {
	cfg, err := m.Read()
	if err != nil {
		return nil, Plan{}, err
	}
	next, err := m.accepts(cfg)
	if err != nil || next.equal(m.Plan) {
		return cfg, next, err
	}
	return cfg, next, m.Files.stage(next.text)
}

// accepts refuses changes that need a restart or cannot be wired. It returns the guard's plan.
func (m *Manager) accepts(cfg *config.Site) (Plan, error) {
	if err := m.needsRestart(cfg); err != nil {
		return Plan{}, err
	}
	return m.fits(cfg)
}

// fits refuses what cannot be wired. It returns the guard's plan.
func (m *Manager) fits(cfg *config.Site) (Plan, error) {
	if err := checkBoard(cfg, m.Board); err != nil {
		return Plan{}, err
	}
	return NewPlan(cfg)
}

// needsRestart refuses a change of what a running site keeps as it was at its start.
func (m *Manager) needsRestart(cfg *config.Site) error {
	if cfg.Name != m.Config.Name {
		return device.Faultf(device.Invalid, "site.name was %s and is %s: %w", m.Config.Name, cfg.Name, config.ErrRestart)
	}
	for _, k := range []struct {
		key     string
		is, was any
	}{
		{"owner", cfg.Owner, m.Config.Owner}, {"site.watchdog", cfg.Watchdog, m.Config.Watchdog}, {"claim", cfg.Claim, m.Config.Claim},
		{"discovery", cfg.Discovery, m.Config.Discovery}, {"clock", cfg.LastKnown, m.Config.LastKnown},
		{"internet", cfg.Internet, m.Config.Internet}, {"http", cfg.HTTP, m.Config.HTTP},
		{"history", cfg.History, m.Config.History}, {"approvals", cfg.Approvals, m.Config.Approvals},
	} {
		if !reflect.DeepEqual(k.is, k.was) {
			return device.Faultf(device.Invalid, "%s is not what it was: %w", k.key, config.ErrRestart)
		}
	}
	return nil
}
