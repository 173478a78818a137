package ops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	changed, gone, err := writeUnits(folder, wanted)
	if errs = append(errs, err); len(changed) == 0 && len(gone) == 0 {
		return nil, errors.Join(errs...)
	}
	if o.Root == "" {
		errs = append(errs, restartUnits(ctx, changed, gone))
	}
	for _, name := range changed {
		did = append(did, "unit "+name+" written")
	}
	for _, name := range gone {
		did = append(did, "unit "+name+" removed")
	}
	return did, errors.Join(errs...)
}

func unitsOf(c config.Agent, secrets string) (map[string]string, error) {
	a := mcp.New(mcp.World{})
	a.SetName(c.Name)
	if err := c.Decode(a); err != nil {
		return nil, err
	}
	if _, err := a.Define(); err != nil {
		return nil, err
	}
	program, err := exec.LookPath(a.Command[0])
	if err != nil || !filepath.IsAbs(program) {
		return nil, fmt.Errorf("there is no program %.100q in PATH, or nobody may run it", a.Command[0])
	}
	return a.Units(program, secrets), nil
}

// writeUnits makes the folder have the wanted units of children and no others.
func writeUnits(folder string, wanted map[string]string) (changed, gone []string, err error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, f := range files {
		if _, ok := wanted[f.Name()]; ok || !strings.HasPrefix(f.Name(), mcp.UnitPrefix) || !f.Type().IsRegular() {
			continue
		}
		if err := os.Remove(filepath.Join(folder, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		gone = append(gone, f.Name())
	}
	for name, text := range wanted {
		path := filepath.Join(folder, name)
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, []byte(text)) {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			errs = append(errs, err)
			continue
		}
		changed = append(changed, name)
	}
	slices.Sort(changed)
	return changed, gone, errors.Join(errs...)
}

// restartUnits has the service manager take up the units. It waits for no job: the service that
// runs this may be one that others wait for.
func restartUnits(ctx context.Context, changed, gone []string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	run := func(args ...string) error {
		out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("systemctl %s: %w: %.200s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	errs := []error{run("daemon-reload")}
	for _, name := range slices.Concat(gone, changed) {
		verb, unit := "stop", strings.Replace(name, "@.service", "@*.service", 1) // what runs of it
		if strings.HasSuffix(name, ".socket") && slices.Contains(changed, name) {
			verb = "restart"
		}
		errs = append(errs, run("--no-block", verb, unit))
	}
	return errors.Join(errs...)
}
