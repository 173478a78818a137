package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device/driver"
	"agentsite/device/host"
	"agentsite/node/config"
	"agentsite/node/state"
	"agentsite/transport/owner"
	ownerclient "agentsite/transport/owner/client"
	"agentsite/transport/rpc"
)

// siteStatus is what doctor reads of the tool site_status.
type siteStatus struct {
	Stopped bool `json:"emergency_stop"`
	Devices []struct {
		Device string   `json:"device"`
		Faults []string `json:"faults"`
	} `json:"devices"`
	Moved []struct {
		Output string `json:"output"`
		Fault  string `json:"fault"`
	} `json:"outputs_away_from_safe"`
}

const askPatience = 3 * time.Second

// askSite asks the site that runs from the folder how it is. ok is false where none
// runs; a site that does not answer is a finding.
func askSite(ctx context.Context, f state.Folder) (h owner.Health, found []driver.Finding, ok bool) {
	if !f.Running() {
		return owner.Health{}, nil, false
	}
	a := owner.Access{Sure: true} // of a site that does not answer nothing is known
	var status siteStatus
	asking, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	err := asOwner(f, func(c *ownerclient.Client) error {
		health, err := c.Health(asking)
		all, err2 := c.Access(asking)
		if h = health; err2 == nil {
			a = all.Access
		}
		return errors.Join(err, err2)
	})
	err = errors.Join(err, readStatus(asking, f, &status))
	if err != nil {
		found = append(found, driver.Finding{Severity: driver.Problem, Subject: string(f), Says: "the site that runs from this folder does not say how it is: " + err.Error(), Do: "look at its log; where it is of an older version, start it again"})
	}
	found = append(found, clockFindings(a)...)
	if status.Stopped {
		found = append(found, driver.Finding{Severity: driver.Warning, Subject: "emergency stop", Says: "it is in force, and no output moves", Do: "when it is safe: agentsite reset"})
	}
	for _, d := range status.Devices {
		if len(d.Faults) > 0 {
			found = append(found, driver.Finding{Severity: driver.Problem, Subject: d.Device, Says: strings.Join(d.Faults, "; "), Do: "agentsite read " + d.Device + " shows whether it comes back"})
		}
	}
	for _, o := range status.Moved {
		if o.Fault != "" {
			found = append(found, driver.Finding{Severity: driver.Problem, Subject: o.Output, Says: "it is not known to be at its safe value: " + o.Fault, Do: "look at the output itself; it is driven to safe until it can be read back"})
		}
	}
	return h, append(found, driver.Finding{Severity: driver.Note, Subject: string(f), Says: "a site runs from this folder" + listensWords(ctx, f)}), true
}

// readStatus calls site_status.
func readStatus(ctx context.Context, f state.Folder, answer *siteStatus) error {
	c, err := Dial(Target{Folder: f})
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := c.Call(ctx, agents.Principal{}, agents.Call{Tool: "site_status", Args: rpc.RawJSON([]byte("{}"))})
	if err != nil {
		return err
	}
	raw, ok := r.Value.(rpc.Raw)
	if !ok {
		return errors.New("it has no status")
	}
	return raw.Decode(answer)
}

// serviceConfig is the configuration of the package's service.
const serviceConfig = "/etc/agentsite/agentsite.yaml"

// configuration is the file that doctor looks at: the named one, that of the site which
// runs, the one in this folder, or the service's.
func (o DoctorOptions) configuration(h owner.Health) string {
	path := cmp.Or(o.Config, h.Configuration)
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

// little is when the card is nearly full: a history takes up to 64 MB.
const little = 64 << 20

// spaceFindings tries whether the folder takes data: a full card still makes files, and keeps
// nothing that is written to them.
func spaceFindings(f state.Folder, running bool) []driver.Finding {
	problem := func(err error) []driver.Finding {
		return []driver.Finding{{Severity: driver.Problem, Subject: string(f), Says: "the data folder cannot be written: " + err.Error(), Do: "make room on the disk, be the user who runs the site, or give another folder with --data"}}
	}
	tmp, err := os.CreateTemp(string(f), ".new-*")
	if running && errors.Is(err, fs.ErrPermission) {
		return []driver.Finding{{Severity: driver.Note, Subject: string(f), Says: "this user may not write to the data folder, so it is not known whether there is room", Do: "run agentsite doctor as the user who runs the site"}}
	}
	if err != nil {
		return problem(err)
	}
	_, err = tmp.Write(make([]byte, 64<<10))
	err = errors.Join(err, tmp.Sync(), tmp.Close(), os.Remove(tmp.Name()))
	if err != nil {
		return problem(err)
	}
	if free, err := host.Free(string(f)); err == nil && free < little {
		return []driver.Finding{{Severity: driver.Warning, Subject: string(f), Says: fmt.Sprintf("only %d MB are left for it", free>>20), Do: "make room: a full disk stops all moves away from safe"}}
	}
	return nil
}

// machineClock says that nothing keeps this machine's clock right, where no site runs
// that could say whether it knows the time.
func machineClock() []driver.Finding {
	if _, synchronised := systemClock(); synchronised {
		return nil
	}
	return []driver.Finding{{Severity: driver.Warning, Subject: "clock", Says: "nothing says that this machine's clock is right; a site that is not sure of the time refuses what may act until a time", Do: "let NTP set it (timedatectl shows it), or run agentsite clock --set once the site runs"}}
}
