package hosting

import (
	"strings"
	"time"

	"agentsite/agents/agent"
	"agentsite/agents/remote"
	"agentsite/cmd/internal/peer"
	anp "agentsite/transport/anp/client"
)

// checkElsewhere refuses what names no other site and no agent elsewhere.
func checkElsewhere(at string, addresses []string) error {
	if url, ok := strings.CutPrefix(at, remote.ANPPeer); ok {
		return anp.CheckURL(url)
	}
	return peer.CheckPeer(at, addresses)
}

// openElsewhere returns what makes the site of a link, or an agent elsewhere in the place of one. An
// agent elsewhere is asked with the key of the site.
func openElsewhere(o *Options, sites *peer.Outbound) remote.Open {
	return func(l agent.Link) (remote.Site, string, error) {
		url, ok := strings.CutPrefix(l.Peer, remote.ANPPeer)
		if !ok {
			return sites.Open(l)
		}
		c, err := anp.New(anp.Options{URL: url, Domain: o.Domain, Key: o.Key, Now: func() time.Time { t, _ := o.now(); return t }})
		if err != nil {
			return nil, "", err
		}
		return remote.WithoutPoints(anp.NewHost(c)), o.Key.ID().String(), nil
	}
}
