package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device/driver"
	"agentsite/device/host"
	"agentsite/node/acts"
	"agentsite/transport/owner/client"
)

// RunningSite is a connection to the site that runs from the data folder.
type RunningSite struct {
	Owner *client.Client // calls the owner's methods
	Site  statusReader
	io.Closer
}

// statusReader is the operation of an agents.Site that Diagnose uses.
type statusReader interface {
	Status(ctx context.Context, p agents.Principal, r agents.SiteRequest) (agents.Answers[agents.Status], error)
}

// answers holds a running site's answers; missing ones are zero.
type answers struct {
	health   acts.Health
	carriers []acts.Carrier
}

// statusTimeout bounds the questions about the site's state, and carriersTimeout the one
// about where it listens, which a site may answer that is not well.
const (
	statusTimeout   = 3 * time.Second
	carriersTimeout = time.Second
)

// askSite asks the running site for its state, and reports what is wrong with it. A site that
// does not answer is a finding.
func askSite(ctx context.Context, o DoctorOptions) (a answers, all []driver.Finding) {
	access := acts.Access{Sure: true} // of a site that does not answer nothing is known
	var status agents.Status
	var public acts.PublicState
	site, err := o.Dial()
	if err == nil {
		defer site.Close()
		asking, cancel := context.WithTimeout(ctx, statusTimeout)
		defer cancel()
		health, err1 := client.Call(asking, site.Owner, acts.HealthAct, acts.None{})
		a.health = health
		known, err2 := site.Owner.Access(asking)
		if err2 == nil {
			access = known.Access
		}
		now, err3 := site.Site.Status(asking, agents.Principal{}, agents.SiteRequest{})
		if len(now.Sites) == 1 {
			status = now.Sites[0]
		}
		err = errors.Join(err1, err2, err3)
		a.carriers = readCarriers(ctx, site.Owner)
		public, _ = client.Call(ctx, site.Owner, acts.PublicAct, acts.LookAtPublic{}) // an error where there is none
	}
	if err != nil {
		all = append(all, driver.Finding{Severity: driver.Problem, Subject: string(o.Folder), Says: "the site in this folder does not report its state: " + err.Error(), Do: "check its log; restart it if it is an older version"})
	}
	all = append(all, clockFindings(access)...)
	for _, says := range public.Alarms {
		all = append(all, driver.Finding{Severity: driver.Problem, Subject: "public name", Says: says, Do: "agentsite grants lists the programs that signed in under it"})
	}
	for _, says := range public.Problems {
		all = append(all, driver.Finding{Severity: driver.Warning, Subject: "public name", Says: says, Do: "agentsite public shows it step by step"})
	}
	if status.Stopped {
		all = append(all, driver.Finding{Severity: driver.Warning, Subject: "emergency stop", Says: "it is latched, and no output moves", Do: "when it is safe, run agentsite reset"})
	}
	for _, d := range status.Devices {
		if len(d.Faults) > 0 {
			all = append(all, driver.Finding{Severity: driver.Problem, Subject: d.Device, Says: strings.Join(d.Faults, "; "), Do: "agentsite doctor shows whether it answers again"})
		}
	}
	for _, o := range slices.Concat(status.Moved, status.Blocked) {
		if o.Effect == agents.EffectFailed {
			do := "check what it drives, and the sensor"
			if o.Latched {
				do += "; it does not move before you run agentsite reset"
			}
			all = append(all, driver.Finding{Severity: driver.Warning, Subject: o.Output, Says: "it had not the effect that " +
				"its expect says, the last time that it was moved", Do: do})
		}
	}
	for _, o := range status.Moved {
		if o.Fault != "" {
			all = append(all, driver.Finding{Severity: driver.Problem, Subject: o.Output, Says: "it is not known to be at its safe value: " + o.Fault, Do: "check the output itself; the site drives it to safe until it can be read back"})
		}
	}
	if o.Itself {
		return a, all
	}
	says := "a site is running from this folder"
	for i, c := range a.carriers {
		if i == 0 {
			says += " and listens at " + c.Address
		} else {
			says += ", " + c.Address
		}
	}
	return a, append(all, driver.Finding{Severity: driver.Note, Subject: string(o.Folder), Says: says})
}

// readCarriers returns where the site listens, nil when it does not answer in time.
func readCarriers(ctx context.Context, site *client.Client) []acts.Carrier {
	ctx, cancel := context.WithTimeout(ctx, carriersTimeout)
	defer cancel()
	routes, _ := client.Call(ctx, site, acts.RoutesAct, acts.None{})
	return routes.Carriers
}

// clockFindings reports a running site that does not know the time.
func clockFindings(a acts.Access) []driver.Finding {
	if a.Sure {
		return nil
	}
	says := "the clock is not set, and the site refuses permissions that end at a time"
	if a.LastKnown {
		says = "the clock is not set, and the site uses the last known time, as configured"
	}
	if a.Off != 0 {
		says += fmt.Sprintf("; it rejects this machine's clock, which is %v from the last known time, %s", time.Duration(a.Off*float64(time.Second)).Round(time.Hour).Abs(), a.Time.Format(time.RFC3339))
	}
	return []driver.Finding{{Severity: driver.Warning, Subject: "clock", Says: says, Do: "check date, then run agentsite clock --set; without network time, set clock: last-known in the configuration"}}
}

// systemClockFindings reports a clock that nothing synchronises. It is for when no site runs,
// which would know the time better.
func systemClockFindings() []driver.Finding {
	if _, synchronised := host.SystemClock(); synchronised {
		return nil
	}
	return []driver.Finding{{Severity: driver.Warning, Subject: "clock", Says: "this machine's clock is not synchronised; a site without the time refuses permissions that end at a time", Do: "let NTP set it (timedatectl shows it), or run agentsite clock --set when the site runs"}}
}
