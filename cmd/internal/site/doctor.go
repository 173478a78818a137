package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/host"
	"agentsite/device/kernel"
	"agentsite/device/scan"
	"agentsite/node/config"
	"agentsite/node/devices"
	"agentsite/node/state"
	"agentsite/transport/owner"
)

// DoctorOptions are what doctor is told.
type DoctorOptions struct {
	Config string // a file; "" for agentsite.yaml, where there is one
	Folder state.Folder
	Root   string // "" is the machine; a test's tree of files
}

// Diagnosis is what doctor found.
type Diagnosis struct {
	Problems int              `json:"problems"` // how many of the findings are
	Findings []driver.Finding `json:"findings"`
}

// Warnings counts those of the findings that are warnings.
func (d Diagnosis) Warnings() (n int) {
	for _, f := range d.Findings {
		if f.Severity == driver.Warning {
			n++
		}
	}
	return n
}

// Doctor looks at this machine, the configuration and the data folder, asks the site
// that runs from the folder, and says what is not well, the worst first. It writes
// nothing but a file in the data folder, which it removes, and reads one byte from each
// address of I2C that the site has.
func Doctor(ctx context.Context, o DoctorOptions) Diagnosis {
	b := board.New().Below(o.Root)
	health, all, running := askSite(ctx, o.Folder)
	all = append([]driver.Finding{}, all...)
	cfg, file, text, err := config.LoadFile(o.configuration(health), AllDrivers())
	switch {
	case o.Config == "" && errors.Is(err, fs.ErrPermission):
		all = append(all, driver.Finding{Severity: driver.Warning, Subject: file, Says: "this user may not read it, so nothing is known of what the devices need", Do: "run agentsite doctor as the user who runs the site"})
		cfg = &config.Site{}
	case err != nil:
		all = append(all, driver.Finding{Severity: driver.Problem, Subject: file, Says: err.Error(), Do: "mend it; agentsite check shows the same"})
		cfg = &config.Site{}
	case text == nil:
		all = append(all, driver.Finding{Severity: driver.Note, Subject: file, Says: "there is no configuration here, so that run simulates a board", Do: "agentsite scan --write makes one of what is wired up"})
	default:
		if _, _, err := devices.Check(file, AllDrivers()); err != nil {
			all = append(all, driver.Finding{Severity: driver.Problem, Subject: file, Says: err.Error(), Do: "mend it; agentsite check shows the same"})
		}
	}
	all = slices.Concat(all, refused(o.Root), unprepared(cfg, o.Root), b.Findings(ctx, uses(cfg, running)), b.PowerOn(holds(cfg)), host.Findings(o.Root), kernel.Findings(o.Root, b.ConfigFile()), folderFindings(o.Folder, running), unseen(ctx, o.Folder, cfg), journalFindings(o.Folder))
	if !running && o.Root == "" {
		all = append(all, machineClock()...)
	}
	order := []driver.Severity{driver.Problem, driver.Warning, driver.Note}
	slices.SortStableFunc(all, func(a, b driver.Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	d := Diagnosis{Findings: all}
	for _, f := range all {
		if f.Severity == driver.Problem {
			d.Problems++
		}
	}
	return d
}

// uses are the devices that have something of the board. What the kernel drives
// for them is no use of theirs: it is unprepared, or well.
func uses(cfg *config.Site, running bool) []board.Use {
	var all []board.Use
	for _, d := range cfg.Devices {
		_, byKernel := d.Config.(driver.Preparer)
		if c, ok := d.Config.(driver.Claimer); ok && !byKernel {
			all = append(all, board.Use{Device: d.Name, Claims: c.Claims(), Running: running, Silent: scan.Silent(d.Driver)})
		}
	}
	return all
}

// holds are where the outputs' lines have to be from power-on.
func holds(cfg *config.Site) map[string][]board.Hold {
	all := make(map[string][]board.Hold)
	for _, d := range cfg.Devices {
		if h, ok := d.Config.(board.Holder); ok {
			all[d.Name] = h.Holds()
		}
	}
	return all
}

// unprepared are the devices that wait for agentsite prepare.
func unprepared(cfg *config.Site, root string) []driver.Finding {
	var all []driver.Finding
	for _, d := range cfg.Devices {
		p, ok := d.Config.(driver.Preparer)
		if !ok {
			continue
		}
		missing, err := p.Prepare(driver.Preparation{Root: root, Group: DefaultGroup, Ask: true})
		if err != nil {
			says, do, _ := strings.Cut(err.Error(), "; ")
			all = append(all, driver.Finding{Severity: driver.Problem, Subject: d.Name, Says: says, Do: do})
		}
		if len(missing) > 0 {
			all = append(all, driver.Finding{Severity: driver.Problem, Subject: d.Name, Says: "the superuser has not prepared it: " + strings.Join(missing, ", "), Do: "sudo agentsite prepare, before each start of the site"})
		}
	}
	return all
}

// clockFindings says that a running site does not know the time.
func clockFindings(a owner.Access) []driver.Finding {
	if a.Sure {
		return nil
	}
	says := "the site does not know the time, and refuses what may act until a time"
	if a.LastKnown {
		says = "the site does not know the time, and goes by the last that it knew, as its configuration says"
	}
	if a.Off != 0 {
		says += fmt.Sprintf("; it does not believe this machine's clock, which is %v from %s, when it last knew it", time.Duration(a.Off*float64(time.Second)).Round(time.Hour).Abs(), a.Time.Format(time.RFC3339))
	}
	return []driver.Finding{{Severity: driver.Warning, Subject: "clock", Says: says, Do: "look whether date is right, then run agentsite clock --set; where no network tells the time, clock: last-known in the configuration has the site go on after a start"}}
}

// folderFindings are what an owner should know about the data folder.
func folderFindings(f state.Folder, running bool) []driver.Finding {
	info, err := os.Stat(string(f))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []driver.Finding{{Severity: driver.Note, Subject: string(f), Says: "there is no data folder yet", Do: "agentsite run makes it"}}
	case err == nil && !info.IsDir():
		err = errors.New("it is a file")
		fallthrough
	case err != nil:
		return []driver.Finding{{Severity: driver.Problem, Subject: string(f), Says: "the data folder cannot be used: " + err.Error(), Do: "give one that you may write to with --data"}}
	}
	all := spaceFindings(f, running)
	if info, err := os.Stat(f.Path(state.TokenFile)); err == nil && state.OthersCanRead(info.Mode()) {
		all = append(all, driver.Finding{Severity: driver.Problem, Subject: f.Path(state.TokenFile), Says: "others can read the site's token", Do: "chmod 600 " + f.Path(state.TokenFile)})
	}
	return all
}

// PrepareOptions are what prepare is told.
type PrepareOptions struct {
	Config string       // a file, which is made or brought where there is none; "" for agentsite.yaml, where there is one
	Folder state.Folder // of the site
	Boot   string       // where the boot partition is mounted; "" for where a Raspberry Pi has it
	Group  string       // who may use what is made
	Root   string       // "" is the machine; a test's tree of files, which anybody may prepare

	board *board.Board // nil is this machine's
}

// DefaultGroup is the one that Raspberry Pi OS gives its own PWM channels to.
const DefaultGroup = "gpio"

func superuser(o PrepareOptions) error {
	if o.Root == "" && os.Geteuid() != 0 {
		return device.Faultf(device.Denied, "this needs the superuser, because it tells the kernel what is wired up: sudo agentsite prepare")
	}
	return nil
}

// Prepare does before a site starts what takes the superuser, and says what it did, a line
// each: with a named configuration what a first boot needs, and then what its devices
// need of the kernel. What is done already stays. After an error it goes on with the rest.
func Prepare(ctx context.Context, o PrepareOptions) (did []string, err error) {
	if err := superuser(o); err != nil {
		return nil, err
	}
	var errs []error
	if o.Config != "" {
		did, err = firstBoot(ctx, o)
		errs = append(errs, err)
	}
	cfg, file, _, err := config.LoadFile(o.Config, AllDrivers())
	if err != nil {
		return did, errors.Join(append(errs, err)...)
	}
	for _, d := range cfg.Devices {
		p, ok := d.Config.(driver.Preparer)
		if !ok {
			continue
		}
		lines, err := p.Prepare(driver.Preparation{Root: o.Root, Group: o.Group})
		for _, line := range lines {
			did = append(did, d.Name+": "+line)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", filepath.Base(file), d.Name, err))
		}
	}
	return did, errors.Join(errs...)
}
