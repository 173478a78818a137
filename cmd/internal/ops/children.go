package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentsite/agents/mcp"
	"agentsite/device"
	"agentsite/node/config"
)

// unitFolder has units until the machine restarts: each start of the service makes them anew.
const unitFolder = "/run/systemd/system"

// pendingUnits is a file with the names of units that were written, until the service manager has
// loaded them. If the program ends between the two, the files are correct but not loaded.
const pendingUnits = "agentsite-children.pending"

// prepareChildren writes the units of all children of a configuration, and removes those that are
// gone. It returns the completed steps.
func prepareChildren(ctx context.Context, o PrepareOptions, cfg *config.Site, file string) (did []string, err error) {
	folder := filepath.Join(o.Root, unitFolder)
	secrets, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	var errs []error
	wanted := make(map[string]string)
	for _, c := range cfg.Agents {
		if c.Kind != mcp.KindName {
			continue
		}
		units, err := unitsOf(c, secrets)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
		}
		for name, text := range units {
			wanted[name] = text
		}
	}
	if _, err := os.Stat(folder); err != nil {
		if len(wanted) > 0 {
			errs = append(errs, device.Faultf(device.Unavailable, "no systemd runs here, which children need; write \"isolation: none\" for one that you trust as yourself"))
		}
		return nil, errors.Join(errs...)
	}
	added, changed, gone, err := compareUnits(folder, wanted)
	if err != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	pending := filepath.Join(folder, pendingUnits)
	left, err := os.ReadFile(pending)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(append(errs, err)...)
	}
	for _, name := range strings.Fields(string(left)) {
		if wanted[name] != "" && !slices.Contains(added, name) && !slices.Contains(changed, name) {
			changed = append(changed, name)
		}
	}
	if written := slices.Concat(added, changed); len(written) > 0 {
		if err := os.WriteFile(pending, []byte(strings.Join(written, "\n")), 0o644); err != nil {
			return nil, errors.Join(append(errs, err)...)
		}
	}
	before := len(errs)
	m := manager{quiet: o.Root != ""}
	// Those that go end while the manager still knows how.
	errs = append(errs, m.run(ctx, "stop", instances(gone, "")...))
	for _, name := range gone {
		if err := os.Remove(filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		did = append(did, "unit "+name+" removed")
	}
	for _, name := range slices.Concat(added, changed) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(wanted[name]), 0o644); err != nil {
			errs = append(errs, err)
			continue
		}
		did = append(did, "unit "+name+" written")
	}
	if len(did) > 0 {
		errs = append(errs, m.run(ctx, "daemon-reload"))
	}
	// It waits for none of these jobs, because they may wait for the service that runs this.
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(wanted)), func(name string) bool { return slices.Contains(changed, name) })
	errs = append(errs,
		m.run(ctx, "start --no-block", instances(others, ".socket")...),
		m.run(ctx, "stop --no-block", instances(changed, ".service")...),
		m.run(ctx, "restart --no-block", instances(changed, ".socket")...))
	if errors.Join(errs[before:]...) == nil {
		if err := os.Remove(pending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return did, errors.Join(errs...)
}

func defineChild(c config.Agent) (*mcp.Agent, error) {
	a := mcp.New(mcp.World{})
	a.SetName(c.Name)
	err := c.Decode(a)
	if err == nil {
		_, err = a.Define()
	}
	return a, err
}

// unitsOf returns the units of a child whose program and secrets are there.
func unitsOf(c config.Agent, secrets string) (map[string]string, error) {
	a, err := defineChild(c)
	if err != nil {
		return nil, err
	}
	program, err := exec.LookPath(a.Command[0])
	if err != nil || !filepath.IsAbs(program) {
		return nil, fmt.Errorf("there is no program %.100q in PATH, or nobody may run it", a.Command[0])
	}
	for _, file := range slices.Sorted(maps.Values(a.Secrets)) {
		path := filepath.Join(secrets, file)
		if info, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("secrets: %w", err)
		} else if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
			return nil, fmt.Errorf("secrets: %s is readable by others, or not a file: chmod 600 %[1]s", path)
		}
	}
	return a.Units(program, secrets), nil
}

// compareUnits returns which of the wanted units of children a folder does not have, which it has
// otherwise, and which it has beside them.
func compareUnits(folder string, wanted map[string]string) (added, changed, gone []string, err error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, f := range files {
		if _, ok := wanted[f.Name()]; !ok && strings.HasPrefix(f.Name(), mcp.UnitPrefix) && f.Type().IsRegular() {
			gone = append(gone, f.Name())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		have, err := os.ReadFile(filepath.Join(folder, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			added = append(added, name)
		case err != nil || string(have) != wanted[name]:
			changed = append(changed, name)
		}
	}
	return added, changed, gone, nil
}

// instances returns the units with an ending, and for a template all that run of it.
func instances(units []string, ending string) (all []string) {
	for _, name := range units {
		if strings.HasSuffix(name, ending) {
			all = append(all, strings.Replace(name, "@.service", "@*.service", 1))
		}
	}
	return all
}

// manager is the service manager; a quiet one is told nothing.
type manager struct{ quiet bool }

// run runs a verb of systemctl on units. Without units, a verb that takes some is not run.
func (m manager) run(ctx context.Context, verb string, units ...string) error {
	if m.quiet || len(units) == 0 && verb != "daemon-reload" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemctl", append(strings.Fields(verb), units...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s: %w: %.200s", verb, err, out)
	}
	return nil
}
