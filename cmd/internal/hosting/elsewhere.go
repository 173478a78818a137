package hosting

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"agentsite/agents/agent"
	"agentsite/agents/remote"
	"agentsite/cmd/internal/peer"
	"agentsite/node/identity"
	"agentsite/node/state"
	a2a "agentsite/transport/a2a/client"
	anp "agentsite/transport/anp/client"
)

// checkElsewhere refuses a peer that is no other site and no agent elsewhere.
func checkElsewhere(at string, addresses []string) error {
	if url, ok := strings.CutPrefix(at, remote.ANPPeer); ok {
		return anp.CheckURL(url)
	}
	if url, ok := strings.CutPrefix(at, remote.A2APeer); ok {
		_, err := a2aOptions(url, remote.A2AOf(addresses))
		return err
	}
	return peer.CheckPeer(at, addresses)
}

// a2aOptions returns those of an agent elsewhere.
func a2aOptions(url string, with remote.A2A) (o a2a.Options, err error) {
	o = a2a.Options{URL: url, Pin: with.Digest}
	if err := a2a.CheckURL(url); err != nil {
		return o, err
	}
	if with.KeyFile != "" && !agent.IsFile(with.KeyFile) {
		return o, fmt.Errorf("key_file: takes the name of a file beside the configuration, such as helper.token, and never the token itself")
	}
	if with.Digest != "" {
		if err := a2a.CheckPin(with.Digest); err != nil {
			return o, fmt.Errorf("card_digest: %w", err)
		}
	}
	if with.SignedBy != "" {
		if o.SignedBy, err = identity.Parse(with.SignedBy); err != nil {
			return o, fmt.Errorf("signed_by: %w", err)
		}
	}
	return o, nil
}

// openElsewhere returns a function that opens the site of a link, or an agent elsewhere in place of
// one. An agent elsewhere is asked with the key of the site by ANP, and with a token by A2A.
func openElsewhere(o *Options, sites *peer.Outbound) remote.Open {
	return func(l agent.Link) (remote.Site, string, error) {
		self := o.Key.ID()
		if url, ok := strings.CutPrefix(l.Peer, remote.ANPPeer); ok {
			c, err := anp.New(anp.Options{URL: url, Domain: o.Domain, Key: o.Key, Now: func() time.Time { t, _ := o.Access.Now(); return t }})
			if err != nil {
				return nil, "", err
			}
			return remote.WithoutPoints(anp.NewHost(c)), self.String(), nil
		}
		url, ok := strings.CutPrefix(l.Peer, remote.A2APeer)
		if !ok {
			return sites.Open(l)
		}
		with := remote.A2AOf(l.Addresses)
		of, err := a2aOptions(url, with)
		if err != nil {
			return nil, "", err
		}
		if of.Self = self; with.KeyFile != "" {
			of.Token = func() (string, error) { return state.Secret(filepath.Dir(o.File), with.KeyFile) }
		}
		h, err := a2a.New(of)
		if err != nil {
			return nil, "", err
		}
		return remote.WithoutPoints(h), self.String(), nil
	}
}
