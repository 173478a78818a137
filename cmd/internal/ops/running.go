package ops

import (
	"context"
	"fmt"
	"io"
	"time"

	"agentsite/agents"
	"agentsite/device/driver"
	"agentsite/device/host"
	"agentsite/node/acts"
	"agentsite/transport/owner/client"
)

// RunningSite is a connection to a running site.
type RunningSite struct {
	Owner *client.Client // calls the owner's methods
	Site  statusReader
	io.Closer
}

// statusReader is the operation of an agents.Site that ReadStatus uses.
type statusReader interface {
	Status(ctx context.Context, p agents.Principal, r agents.SiteRequest) (agents.Answers[agents.Status], error)
}

// statusTimeout bounds the questions about the site's state, and carriersTimeout the one
// about where it listens, which a site may answer that is not well.
const (
	statusTimeout   = 3 * time.Second
	carriersTimeout = time.Second
)

// askSite asks the running site for its state, and reports what is wrong with it. A site that
// does not answer is a finding.
func askSite(ctx context.Context, o DoctorOptions) (s SiteStatus, all []driver.Finding) {
	site, err := o.Dial()
	if err == nil {
		defer site.Close()
		s, err = ReadStatus(ctx, site)
	}
	if err != nil {
		all = append(all, driver.Finding{
			Severity: driver.Problem, Subject: string(o.Folder), Do: "check its log; restart it if it is an older version",
			Says: "the site in this folder does not report its state: " + err.Error(),
		})
	}
	all = append(all, s.Wrong...)
	if o.Itself {
		return s, all
	}
	says := "a site is running from this folder"
	for i, c := range s.carriers {
		if i == 0 {
			says += " and listens at " + c.Address
		} else {
			says += ", " + c.Address
		}
	}
	return s, append(all, driver.Finding{Severity: driver.Note, Subject: string(o.Folder), Says: says})
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
	remedy := "check date, then run agentsite clock --set"
	if a.LastKnown {
		says = "the clock is not set, and the site uses the last known time, as configured"
	} else {
		remedy += "; without network time, set clock: last-known in the configuration"
	}
	if a.Off != 0 {
		says += fmt.Sprintf("; it rejects this machine's clock, which is %v from the last known time, %s", time.Duration(a.Off*float64(time.Second)).Round(time.Hour).Abs(), a.Time.Format(time.RFC3339))
	}
	return []driver.Finding{{Severity: driver.Warning, Subject: "clock", Says: says, Do: remedy}}
}

// systemClockFindings reports a clock that nothing synchronises. It is for when no site runs,
// which would know the time better.
func systemClockFindings() []driver.Finding {
	if _, synchronised := host.SystemClock(); synchronised {
		return nil
	}
	return []driver.Finding{{Severity: driver.Warning, Subject: "clock", Says: "this machine's clock is not synchronised; a site without the time refuses permissions that end at a time", Do: "let NTP set it (timedatectl shows it), or run agentsite clock --set when the site runs"}}
}
