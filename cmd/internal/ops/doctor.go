package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/host"
	"agentsite/device/kernel"
	"agentsite/device/scan"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/devices"
	"agentsite/node/state"
)

// DoctorOptions are the options of Diagnose.
type DoctorOptions struct {
	Config  string // a file; "" for agentsite.yaml, where there is one
	Drivers []driver.Driver
	Checks  []func(*config.Site) error // of parts other than devices
	// Doubts returns what may be a mistake in a configuration that is right; nil for nothing.
	Doubts func(cfg *config.Site, file string) []error
	Folder state.Folder
	// Dial connects to the site that runs from Folder. It is called only while one runs.
	Dial   func() (*RunningSite, error)
	Itself bool   // that site asks, and so knows that it runs
	Root   string // "" is the machine; a test's tree of files
}

// serviceConfig is the configuration of the package's service.
const serviceConfig = "/etc/agentsite/agentsite.yaml"

// configuration returns the file to diagnose: the named one, that of the running site, the one in
// this folder, or the service's.
func (o DoctorOptions) configuration(running string) string {
	path := cmp.Or(o.Config, running)
	if path != "" {
		return path
	}
	_, err := os.Stat(config.DefaultFile)
	service := filepath.Join(cmp.Or(o.Root, "/"), serviceConfig)
	if _, there := os.Stat(service); errors.Is(err, fs.ErrNotExist) && there == nil {
		return service
	}
	return ""
}

// Diagnosis is the result of Diagnose.
type Diagnosis struct {
	Problems int              `json:"problems"` // the number of findings with that severity
	Findings []driver.Finding `json:"findings"`
}

// Warnings returns the number of findings that are warnings.
func (d Diagnosis) Warnings() (n int) {
	for _, f := range d.Findings {
		if f.Severity == driver.Warning {
			n++
		}
	}
	return n
}

// Answer returns the findings as an owner gets them.
func (d Diagnosis) Answer() acts.Diagnosis {
	a := acts.Diagnosis{Findings: []acts.Finding{}}
	for _, f := range d.Findings {
		a.Findings = append(a.Findings,
			acts.Finding{Severity: string(f.Severity), Subject: f.Subject, Says: f.Says, Do: f.Do})
	}
	return a
}

// Diagnose checks this machine, the configuration, the data folder and the site that runs
// from it, and returns its findings, the worst first. It writes one file in the data folder
// and removes it, and reads one byte from each I2C address that the site has. It blocks for
// at most some seconds.
func Diagnose(ctx context.Context, o DoctorOptions) Diagnosis {
	b := board.On(board.Machine{Root: o.Root})
	all := []driver.Finding{}
	running := o.Folder.Running()
	var site SiteStatus
	if running {
		var wrong []driver.Finding
		site, wrong = askSite(ctx, o)
		all = append(all, wrong...)
	}
	cfg, file, text, err := config.LoadFile(o.configuration(site.Configuration), o.Drivers)
	switch {
	case o.Config == "" && errors.Is(err, fs.ErrPermission):
		all = append(all, driver.Finding{Severity: driver.Warning, Subject: file, Says: "this user may not read it, so the devices are not checked", Do: "run agentsite doctor as the user who runs the site"})
		cfg = &config.Site{}
	case err != nil:
		all = append(all, driver.Finding{Severity: driver.Problem, Subject: file, Says: err.Error(), Do: "correct it; agentsite check shows the same"})
		cfg = &config.Site{}
	case text == nil:
		all = append(all, driver.Finding{Severity: driver.Note, Subject: file, Says: "there is no configuration here, so agentsite run simulates a board", Do: "agentsite scan --write creates one with the connected parts"})
	default:
		checked, _, err := devices.Check(file, o.Drivers, o.Checks...)
		if err != nil {
			all = append(all, driver.Finding{Severity: driver.Problem, Subject: file, Says: err.Error(), Do: "correct it; agentsite check shows the same"})
		} else if o.Doubts != nil {
			for _, doubt := range o.Doubts(checked, file) {
				all = append(all, driver.Finding{Severity: driver.Warning, Subject: file, Says: doubt.Error(), Do: "look whether that is meant; agentsite check shows the same"})
			}
		}
	}
	all = slices.Concat(all, bootFindings(o.Root), unprepared(cfg, o.Root), b.Findings(ctx, uses(cfg, running)),
		b.PowerOn(holds(cfg)), host.Findings(o.Root), kernel.Findings(o.Root, b.ConfigFile()),
		folderFindings(o.Folder, running), networkFindings(ctx, o.Folder, cfg, site.carriers), journalFindings(o.Folder),
		powerFindings(cfg, o.Root))
	if !running && o.Root == "" {
		all = append(all, systemClockFindings()...)
	}
	worstFirst(all)
	d := Diagnosis{Findings: all}
	for _, f := range all {
		if f.Severity == driver.Problem {
			d.Problems++
		}
	}
	return d
}

// uses returns the resources of the board that the devices use. It leaves out devices that the
// kernel drives: unprepared reports those.
func uses(cfg *config.Site, running bool) []board.Use {
	var all []board.Use
	for _, d := range cfg.Devices {
		_, byKernel := d.Config.(driver.Preparer)
		if c, ok := d.Config.(driver.ResourceUser); ok && !byKernel {
			all = append(all, board.Use{Device: d.Name, Resources: c.Resources(), Running: running, Silent: scan.Silent(d.Driver)})
		}
	}
	return all
}

// holds returns the levels that the outputs' lines must have from power-on.
func holds(cfg *config.Site) map[string][]board.PowerOnLevel {
	all := make(map[string][]board.PowerOnLevel)
	for _, d := range cfg.Devices {
		if h, ok := d.Config.(board.PowerOnLeveler); ok {
			all[d.Name] = h.PowerOnLevels()
		}
	}
	return all
}

// unprepared reports the devices that agentsite prepare has yet to prepare.
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
			all = append(all, driver.Finding{Severity: driver.Problem, Subject: d.Name, Says: "it is not prepared by the superuser: " + strings.Join(missing, ", "), Do: "sudo agentsite prepare, before each start of the site"})
		}
	}
	return all
}

// folderFindings reports a data folder that is missing, unusable or too open.
func folderFindings(f state.Folder, running bool) []driver.Finding {
	info, err := os.Stat(string(f))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []driver.Finding{{Severity: driver.Note, Subject: string(f), Says: "there is no data folder yet", Do: "agentsite run creates it"}}
	case err == nil && !info.IsDir():
		err = errors.New("it is a file")
		fallthrough
	case err != nil:
		return []driver.Finding{{Severity: driver.Problem, Subject: string(f), Says: "the data folder cannot be used: " + err.Error(), Do: "use a writable one with --data"}}
	}
	all := spaceFindings(f, running)
	if _, ours := state.Owner(info); ours { // the superuser looks at the folders of others, too
		if err := f.Check(); err != nil {
			all = append(all, driver.Finding{Severity: driver.Problem, Subject: string(f), Says: err.Error()})
		}
	}
	if info, err := os.Stat(f.Path(state.TokenFile)); err == nil && state.OthersCanRead(info.Mode()) {
		all = append(all, driver.Finding{Severity: driver.Problem, Subject: f.Path(state.TokenFile), Says: "other users can read the site's token", Do: "chmod 600 " + f.Path(state.TokenFile)})
	}
	return all
}

// minFree is the free space below which the card is nearly full: a history takes up to 64 MB.
const minFree = 64 << 20

// spaceFindings writes a file to the folder and removes it: on a full card files can be created,
// but not written.
func spaceFindings(f state.Folder, running bool) []driver.Finding {
	problem := func(err error) []driver.Finding {
		return []driver.Finding{{Severity: driver.Problem, Subject: string(f), Says: "the data folder cannot be written: " + err.Error(), Do: "free space on the disk, run this as the user who runs the site, or use another folder with --data"}}
	}
	tmp, err := os.CreateTemp(string(f), ".new-*")
	if running && errors.Is(err, fs.ErrPermission) {
		return []driver.Finding{{Severity: driver.Note, Subject: string(f), Says: "this user may not write to the data folder, so its free space is not checked", Do: "run agentsite doctor as the user who runs the site"}}
	}
	if err != nil {
		return problem(err)
	}
	_, err = tmp.Write(make([]byte, 64<<10))
	err = errors.Join(err, tmp.Sync(), tmp.Close(), os.Remove(tmp.Name()))
	if err != nil {
		return problem(err)
	}
	if free, err := host.Free(string(f)); err == nil && free < minFree {
		return []driver.Finding{{Severity: driver.Warning, Subject: string(f), Says: fmt.Sprintf("only %d MB are free", free>>20), Do: "free space: a full disk stops all moves away from safe"}}
	}
	return nil
}
