package node

import (
	"crypto/sha256"
	"crypto/subtle"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
)

// Principals that need no grant, by the socket that they came through: the local user owns the site,
// and a program on that user's socket for agents may use the site's tools.
var (
	LocalOwner = local(principal.Local, principal.LocalID, true)
	LocalAgent = local(principal.LocalAgent, principal.LocalAgentID, false)
)

// siteToken is a caller on this machine with the site's token, who may use the site's tools.
var siteToken = local(principal.SiteToken, principal.SiteTokenID, false)

func local(kind principal.Kind, id string, owner bool) agents.Principal {
	return agents.Principal{Kind: kind, ID: id, Owner: owner, Account: id}
}

// Key returns the principal of a peer ID that a carrier proved. The error is a Denied fault if the key
// has no permission. A carrier asks for each message, because permissions and ownership begin and end.
// They are decided again at each operation.
func (n *Node) Key(peer string) (agents.Principal, error) {
	if n.access == nil {
		return n.Bearer("", false)
	}
	return n.noted(n.access.Peer(peer))
}

// Bearer returns the principal of a token. here says that it came from this machine, as the site's own
// token has to. The error is a Denied fault if the token does not count.
func (n *Node) Bearer(token string, here bool) (agents.Principal, error) {
	got := sha256.Sum256([]byte(token))
	switch {
	case token == "":
		return n.noted(agents.Principal{}, device.Faultf(device.Denied,
			"this needs the site's token in a header: Authorization: Bearer …"))
	case here && subtle.ConstantTimeCompare(got[:], n.token[:]) == 1:
		return siteToken, nil
	case n.access != nil:
		return n.noted(n.access.Bearer(token))
	}
	return n.noted(agents.Principal{}, device.Faultf(device.Denied,
		"this is not the site's token; agentsite run prints where it is kept"))
}

// noted counts a caller that is refused.
func (n *Node) noted(p agents.Principal, err error) (agents.Principal, error) {
	if err != nil {
		n.counts.unauthenticated.Add(1)
		n.journal.Deny("nobody", "", device.Denied)
		return agents.Principal{}, err
	}
	return p, nil
}
