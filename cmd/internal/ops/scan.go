package ops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/scan"
	"agentsite/device/sysfs"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/state"
)

// ScanOptions are the options of Scan.
type ScanOptions struct {
	Config  string // a file; "" for agentsite.yaml, where there is one
	Drivers []driver.Driver
	Folder  state.Folder // of the site that may be running
	Bus     string       // only this one; "" for all
	Probe   []uint16
	Root    string                 // "" is the machine; a test's tree of files
	Board   *board.Board           // of a running site; nil makes one
	Wired   bool                   // only what is wired to the board, and nothing by a network or by radio
	Waiting func(drivers []string) // see scan.Scan
}

// ScanResult is the result of a scan.
type ScanResult struct {
	Found   []scan.Found
	Trouble []driver.Finding
	Notes   []string // why something on the network or by radio was not looked for
	// Add are the devices that can be written into the file as they are. Maybe are those that a
	// person has to choose or complete.
	Add, Maybe []config.Entry
	Running    bool // a site runs; its devices were left alone, as far as its file was read

	File    string // the configuration
	text    []byte // of it; empty where there is none
	drivers []driver.Driver
}

// Scan finds the parts that are wired up and not in the configuration yet. It fails
// before it touches a bus when the file has mistakes, because it has to know which
// parts are in use.
func Scan(ctx context.Context, o ScanOptions) (*ScanResult, error) {
	cfg, file, text, err := config.LoadFile(o.Config, o.Drivers)
	if err != nil {
		return nil, err
	}
	b := cmp.Or(o.Board, board.On(board.Machine{Root: o.Root}))
	s := scan.Scan{Board: b, Root: sysfs.Root(o.Root), Probe: o.Probe, Taken: claimed(cfg), Drivers: o.Drivers, Wired: o.Wired || o.Root != "", Waiting: o.Waiting}
	if o.Bus != "" {
		s.Buses = []string{o.Bus}
	}
	out := &ScanResult{Running: o.Folder.Running(), File: file, text: text, drivers: o.Drivers}
	if err := checkProbe(s, out.Running && text == nil); err != nil {
		return nil, err
	}
	found, trouble := s.Run(ctx)
	out.Found = found
	for _, t := range trouble {
		switch {
		case t.Severity != driver.Note:
			out.Trouble = append(out.Trouble, t)
		case !slices.Contains(out.Notes, t.Says):
			out.Notes = append(out.Notes, t.Says)
		}
	}
	out.Found = slices.DeleteFunc(out.Found, func(f scan.Found) bool { return len(f.Devices) > 0 && inUse(cfg, s, f) })
	var names []string
	for _, d := range cfg.Devices {
		names = append(names, d.Name)
	}
	scan.Unique(out.Found, names)
	for _, f := range out.Found {
		for _, d := range f.Devices {
			e := config.Entry(d)
			if f.Confidence == scan.Candidate || !complete(e, o.Drivers) {
				out.Maybe = append(out.Maybe, e)
			} else {
				out.Add = append(out.Add, e)
			}
		}
	}
	return out, nil
}

// Answer returns the result as a site answers it. An entry that cannot be read is left out.
func (s *ScanResult) Answer() acts.Scanned {
	out := acts.Scanned{Found: []acts.FoundPart{}}
	for _, f := range s.Found {
		p := acts.FoundPart{Where: f.Where, What: f.What, Confidence: string(f.Confidence), Says: f.Says}
		for _, d := range f.Devices {
			if keys, err := config.EntrySettings(config.Entry(d)); err == nil {
				p.Drafts = append(p.Drafts, acts.Draft{Device: d.Name, Set: keys})
			}
		}
		out.Found = append(out.Found, p)
	}
	for _, t := range s.Trouble {
		out.Trouble = append(out.Trouble, t.Says)
	}
	out.Trouble = append(out.Trouble, s.Notes...)
	return out
}

// claimed maps what the devices claim to their names. A part behind a multiplexer also
// answers at its address on the bus itself while its channel is open.
func claimed(cfg *config.Site) map[string]string {
	all := make(map[string]string)
	for _, d := range cfg.Devices {
		if c, ok := d.Config.(driver.ResourceUser); ok {
			for _, claim := range c.Resources() {
				all[claim.Name] = d.Name
				if path := strings.Split(claim.Name, "/"); len(path) == 3 {
					all[path[0]+"/"+path[2]] = d.Name
				}
			}
		}
	}
	return all
}

// checkProbe refuses to probe an address that a device has, and one on an unnamed bus of
// several.
func checkProbe(s scan.Scan, unknown bool) error {
	if len(s.Probe) == 0 {
		return nil
	}
	if unknown {
		return device.Faultf(device.Busy, "a site is running with an unknown configuration: name its file with --config")
	}
	buses := s.I2C()
	switch len(buses) {
	case 0:
		return device.Faultf(device.Offline, "there is no I2C bus here; agentsite doctor shows how to switch it on")
	case 1:
	default:
		return device.Faultf(device.Invalid, "an address may be safe to probe on one bus only: choose the bus with --bus (%s)", strings.Join(buses, ", "))
	}
	for _, addr := range s.Probe {
		if name, ok := s.Taken[fmt.Sprintf("%s/%#02x", buses[0], addr)]; ok {
			return device.Faultf(device.Busy, "%#02x on %s is not probed: it is the device %s of this site; remove that from the configuration first", addr, buses[0], name)
		}
	}
	return nil
}

// inUse reports whether a part that was found is a device of the site: by its place, or
// because its configuration is the same.
func inUse(cfg *config.Site, s scan.Scan, f scan.Found) bool {
	if _, ok := s.Taken[f.Where]; ok {
		return true
	}
	return slices.ContainsFunc(f.Devices, func(d scan.Device) bool {
		found := parseEntry(config.Entry(d), s.Drivers)
		return found != nil && slices.ContainsFunc(cfg.Devices, func(d config.Device) bool {
			return d.Driver == found.Driver && reflect.DeepEqual(d.Config, found.Config)
		})
	})
}

// parseEntry returns the device as the only one of a site, nil when that has mistakes.
func parseEntry(e config.Entry, drivers []driver.Driver) *config.Device {
	text, err := config.Add("", nil, "x", []config.Entry{e}, drivers)
	if err != nil {
		return nil
	}
	cfg, err := config.Parse("", text, drivers)
	if err != nil {
		return nil
	}
	return &cfg.Devices[0]
}

// complete reports whether a device can be used as it is: it has no mistake and no
// output, whose safe value only the owner knows.
func complete(e config.Entry, drivers []driver.Driver) bool {
	d := parseEntry(e, drivers)
	if d == nil {
		return false
	}
	desc, ok := d.Config.(driver.Describer)
	return !ok || !slices.ContainsFunc(desc.Describe().Points, func(p device.Point) bool { return p.Kind.Output() })
}

// Write adds the devices in Add to the configuration and creates it where there is none.
// It replaces the file atomically, and fails when the new one would have mistakes or the
// old one has changed since the scan began.
func (s *ScanResult) Write() error {
	text, err := config.Add(s.File, s.text, SiteName(), s.Add, s.drivers)
	if err != nil {
		return err
	}
	return WriteConfig(s.File, s.text, text)
}

// WriteConfig replaces the configuration before, whose text is nil where there is none, as state.Rewrite does.
// It fails when the file is not as before.
func WriteConfig(file string, before, text []byte) error {
	now, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the configuration cannot be read: %w", err)
	}
	if !bytes.Equal(now, before) {
		return device.Faultf(device.Busy, "%s was changed meanwhile and is not written; run this again", file)
	}
	path, linked := filepath.EvalSymlinks(file) // a link stays one
	if linked == nil {
		err = state.Rewrite(path, before, text)
	} else {
		err = state.WriteAtomic(file, text, 0o644)
	}
	switch {
	case errors.Is(err, state.ErrChanged):
		return device.Faultf(device.Busy, "%s was changed meanwhile and is not written; run this again", file)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the configuration cannot be written: %w; run this as a user who may write it", err)
	case err != nil:
		return fmt.Errorf("the configuration cannot be written: %w", err)
	}
	return nil
}

// SiteName returns the machine's own name, or my-site when that is no name of a site.
func SiteName() string {
	name, _ := os.Hostname()
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	if device.CheckName(name) != nil {
		return "my-site"
	}
	return name
}
