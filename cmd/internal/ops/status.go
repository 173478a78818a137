package ops

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/node/acts"
	"agentsite/node/hosted"
	"agentsite/transport/owner/client"
)

// SiteStatus holds the state of a running site. What its texts say is the site's, and not to be trusted.
type SiteStatus struct {
	agents.Status
	Owned         bool             `json:"owned"` // the caller is an owner; for others the next fields are empty
	Key           string           `json:"did,omitzero"`
	Owners        int              `json:"owners,omitzero"`
	Addresses     []string         `json:"addresses,omitzero"`
	Configuration string           `json:"configuration,omitzero"` // its absolute path there; "" for the demonstration
	Agents        []hosted.Agent   `json:"agents,omitzero"`
	Waiting       []acts.Request   `json:"waiting,omitzero"`  // calls that wait for an owner's approval
	SignIns       []acts.SignIn    `json:"sign_ins,omitzero"` // programs that ask to sign in
	Wishes        []acts.Wish      `json:"wishes,omitzero"`   // what such programs were refused
	Wrong         []driver.Finding `json:"wrong"`             // the worst first

	carriers []acts.Carrier
}

// ReadStatus asks a site for its state. Its calls run at the same time, each for at most statusTimeout. A caller who
// is no owner gets what its permission covers. With an error, the status has what the site did answer.
func ReadStatus(ctx context.Context, site *RunningSite) (SiteStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var (
		s      SiteStatus
		known  = acts.Access{Sure: true} // nothing is known of a site that does not answer
		public acts.PublicState
		errs   [5]error
		asked  sync.WaitGroup
	)
	asked.Go(func() {
		now, err := site.Site.Status(ctx, agents.Principal{}, agents.SiteRequest{})
		if errs[0] = err; len(now.Sites) == 1 {
			s.Status = now.Sites[0]
		}
	})
	asked.Go(func() {
		h, err := client.Call(ctx, site.Owner, acts.HealthAct, acts.None{})
		s.Configuration, errs[1] = h.Configuration, err
	})
	asked.Go(func() {
		all, err := site.Owner.Access(ctx)
		if errs[2] = err; err == nil {
			known = all.Access
		}
	})
	asked.Go(func() {
		all, err := client.Call(ctx, site.Owner, acts.RequestsAct, acts.None{})
		s.Waiting, s.SignIns, s.Wishes, errs[3] = all.Requests, all.SignIns, all.Wishes, err
	})
	asked.Go(func() {
		all, err := client.Call(ctx, site.Owner, acts.AgentsAct, acts.None{})
		s.Agents, errs[4] = all.Agents, err
	})
	asked.Go(func() { s.carriers = readCarriers(ctx, site.Owner) })
	asked.Go(func() {
		public, _ = client.Call(ctx, site.Owner, acts.PublicAct, acts.LookAtPublic{}) // an error where there is none
	})
	asked.Wait()

	s.Owned = !slices.ContainsFunc(errs[1:], denied)
	s.Key, s.Owners, s.Addresses = known.Site, len(known.Owners), known.At
	s.Wrong = slices.Concat([]driver.Finding{}, clockFindings(known), publicFindings(public), statusFindings(s.Status),
		agentFindings(s.Agents))
	worstFirst(s.Wrong)
	if !s.Owned {
		return s, errs[0]
	}
	return s, cmp.Or(errs[:]...)
}

// denied reports whether a site refused an owner's method.
func denied(err error) bool {
	return err != nil && device.AsFault(err).Kind == device.Denied
}

// worstFirst sorts findings by their severity.
func worstFirst(all []driver.Finding) {
	order := []driver.Severity{driver.Problem, driver.Warning, driver.Note}
	slices.SortStableFunc(all, func(a, b driver.Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
}

// publicFindings reports what is wrong with the site's public name.
func publicFindings(public acts.PublicState) (all []driver.Finding) {
	for _, says := range public.Alarms {
		all = append(all, driver.Finding{
			Severity: driver.Problem, Subject: "public name", Says: says,
			Do: "agentsite grants lists the programs that signed in under it",
		})
	}
	for _, says := range public.Problems {
		all = append(all, driver.Finding{
			Severity: driver.Warning, Subject: "public name", Says: says,
			Do: "agentsite public shows it step by step",
		})
	}
	return all
}

// statusFindings reports a latched stop, devices that fail, and outputs that do not do what they should.
func statusFindings(s agents.Status) (all []driver.Finding) {
	if s.Stopped {
		all = append(all, driver.Finding{
			Severity: driver.Warning, Subject: "emergency stop", Says: "it is latched, and no output moves",
			Do: "when it is safe, run agentsite reset",
		})
	}
	for _, d := range s.Devices {
		if len(d.Faults) > 0 {
			all = append(all, driver.Finding{
				Severity: driver.Problem, Subject: d.Device, Says: strings.Join(d.Faults, "; "),
				Do: "agentsite read shows whether it answers again",
			})
		}
	}
	for _, o := range slices.Concat(s.Moved, s.Blocked) {
		if o.Effect == agents.EffectFailed {
			do := "check what it drives, and the sensor"
			if o.Latched {
				do += "; it does not move before you run agentsite reset"
			}
			all = append(all, driver.Finding{
				Severity: driver.Warning, Subject: o.Output, Do: do,
				Says: "it had not the effect that its expect says, the last time that it was moved",
			})
		}
	}
	for _, o := range s.Moved {
		if o.Fault != "" {
			all = append(all, driver.Finding{
				Severity: driver.Problem, Subject: o.Output, Says: "it is not known to be at its safe value: " + o.Fault,
				Do: "check the output itself; the site drives it to safe until it can be read back",
			})
		}
	}
	return all
}

// agentFindings reports hosted agents that failed.
func agentFindings(hosted []hosted.Agent) (all []driver.Finding) {
	for _, a := range hosted {
		if a.State == agent.Failed {
			all = append(all, driver.Finding{
				Severity: driver.Problem, Subject: a.Principal, Says: "it failed: " + a.Says,
				Do: "agentsite logs shows when and why; the site runs it again after a while",
			})
		}
	}
	return all
}
