package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
)

// KindName is the name of the kind of agent, and so the beginning of its principal.
const KindName = "remote"

const (
	// maxAddresses bounds where a site is said to be.
	maxAddresses = 8
	// releaseTime is the time that all agents that end together have to release their leases there.
	releaseTime = time.Second
)

// Kind returns the entry of the list of kinds. check refuses a malformed key of a site and an
// invalid address. The agents run in sites; nil means that they are only checked.
func Kind(sites *Sites, check func(peer string, addresses []string) error) agent.Kind {
	return agent.Kind{Name: KindName, Doc: "another site, whose points other agents read and move by its grant, or an agent elsewhere that they ask", New: func() agent.Agent {
		return &Remote{sites: sites, check: check}
	}}
}

// Remote is another site.
type Remote struct {
	Peer      string   `json:"peer,omitempty" jsonschema:"the site's key, did:key:z…, as agentsite identity shows it there"`
	Addresses []string `json:"addresses,omitempty" jsonschema:"where the site is, as host:port or a multiaddr, beside those of its grant"`
	ANP       string   `json:"anp,omitempty" jsonschema:"in place of peer: the URL of the description of an agent elsewhere that speaks ANP, whose methods are asked as agents"`
	A2A       string   `json:"a2a,omitempty" jsonschema:"in place of peer: the URL of the card of an agent elsewhere that speaks A2A"`
	SignedBy  string   `json:"signed_by,omitempty" jsonschema:"of a2a: the key, did:key:z…, that signs the card; else card_digest"`
	Digest    string   `json:"card_digest,omitempty" jsonschema:"of a2a: the digest of the card that the owner has read, as agentsite agents shows it; else signed_by"`
	KeyFile   string   `json:"key_file,omitempty" jsonschema:"of a2a: the name of a file beside the configuration with the token that it is asked with, which only its owner can read; never the token itself"`

	sites *Sites
	check func(peer string, addresses []string) error
}

var _ agent.Elsewhere = (*Remote)(nil)

// ANPPeer is the beginning of the peer that stands for an agent of ANP; its URL follows.
const ANPPeer = "anp:"

// A2APeer is the prefix of the peer that stands for an A2A agent; its URL follows. A2AOf decodes its
// addresses.
const A2APeer = "a2a:"

// A2A says how the card of an A2A agent is verified, and which token file the agent is asked with.
type A2A struct{ SignedBy, Digest, KeyFile string }

// A2AOf decodes the addresses of an A2APeer.
func A2AOf(addresses []string) (a A2A) {
	if len(addresses) == 3 {
		a = A2A{addresses[0], addresses[1], addresses[2]}
	}
	return a
}

// Elsewhere implements agent.Elsewhere.
func (r *Remote) Elsewhere() (peer string, addresses []string) {
	if r.A2A != "" {
		return A2APeer + r.A2A, []string{r.SignedBy, r.Digest, r.KeyFile}
	}
	if r.ANP != "" {
		return ANPPeer + r.ANP, nil
	}
	return r.Peer, r.Addresses
}

// Define checks the keys.
func (r *Remote) Define() (agent.Definition, error) {
	if r.A2A != "" {
		if r.Peer != "" || r.Addresses != nil || r.ANP != "" {
			return agent.Definition{}, &agent.Mistake{Key: "a2a", Err: errors.New("an agent that speaks A2A has neither peer:, addresses: nor anp: beside it")}
		}
		if r.SignedBy != "" && r.Digest != "" {
			return agent.Definition{}, &agent.Mistake{Key: "card_digest", Err: errors.New("a card is known by one of signed_by: and card_digest:; leave out the other one")}
		}
		at, with := r.Elsewhere()
		if err := r.check(at, with); err != nil {
			return agent.Definition{}, &agent.Mistake{Key: "a2a", Err: err}
		}
		return agent.Definition{Secrets: []agent.Secret{{Key: "key_file", File: r.KeyFile}}}, nil
	}
	if r.SignedBy != "" || r.Digest != "" || r.KeyFile != "" {
		return agent.Definition{}, &agent.Mistake{Key: "kind", Err: errors.New("signed_by:, card_digest: and key_file: belong to a2a:, the URL of a card")}
	}
	if r.ANP != "" {
		if r.Peer != "" || r.Addresses != nil {
			return agent.Definition{}, &agent.Mistake{Key: "anp", Err: errors.New("an agent that speaks ANP has neither peer: nor addresses: beside it")}
		}
		if err := r.check(ANPPeer+r.ANP, nil); err != nil {
			return agent.Definition{}, &agent.Mistake{Key: "anp", Err: err}
		}
		return agent.Definition{}, nil
	}
	if r.Peer == "" {
		return agent.Definition{}, &agent.Mistake{Key: "peer", Err: errors.New("it is missing; write the site's did:key, which agentsite identity shows there")}
	}
	if len(r.Addresses) > maxAddresses {
		return agent.Definition{}, &agent.Mistake{Key: "addresses", Err: fmt.Errorf("%d are enough: leave out the others", maxAddresses)}
	}
	if err := r.check(r.Peer, nil); err != nil {
		return agent.Definition{}, &agent.Mistake{Key: "peer", Err: err}
	}
	if err := r.check(r.Peer, r.Addresses); err != nil {
		return agent.Definition{}, &agent.Mistake{Key: "addresses", Err: err}
	}
	return agent.Definition{}, nil
}

// Run lets the agents of the site ask the other site until ctx ends. It calls nothing itself.
func (r *Remote) Run(ctx context.Context, self agents.Principal, _ agents.Site) error {
	_, name, _ := strings.Cut(self.ID, ":")
	stop := r.sites.start(name, r)
	<-ctx.Done()
	time.Sleep(releaseTime)
	stop()
	return nil
}

// Report describes the connection to the other site.
func (r *Remote) Report(context.Context) agent.Report {
	if r.sites == nil {
		return agent.Report{}
	}
	users, faults := r.sites.report(r)
	switch {
	case faults != nil:
		return agent.Report{State: agent.Waiting, Says: strings.Join(faults, "; ")}
	case users == nil:
		return agent.Report{State: agent.Idle, Says: "no agent here names it"}
	}
	slices.Sort(users)
	return agent.Report{State: agent.Running, Says: "it is asked by " + strings.Join(users, ", ")}
}
