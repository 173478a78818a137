package node

import (
	"crypto/sha256"
	"crypto/subtle"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
)

// Evidence is a carrier's proof of the caller's identity. It has the fields of transport/rpc's
// Evidence, so that they convert to each other and a difference does not compile. Neither package
// may import the other.
type Evidence struct {
	Peer   string
	Bearer string
	Local  string
	// Principal is the result of Admit for the other fields; any other value is ignored.
	Principal any
}

// admittedPrincipal is the type of Evidence.Principal: only the node can make one.
type admittedPrincipal struct{ agents.Principal }

// Principals that need no grant: the local user owns the site. A caller on that user's socket for
// agents, or with the site's token, may use its tools.
var (
	localOwner = agents.Principal{Kind: principal.Local, ID: principal.LocalID, Owner: true}
	localAgent = agents.Principal{Kind: principal.LocalAgent, ID: principal.LocalAgentID}
	tokenHeld  = agents.Principal{Kind: principal.SiteToken, ID: principal.SiteTokenID}
)

// Who returns the principal of the evidence. It fails with a Denied fault if the evidence proves
// nothing.
func (n *Node) Who(e Evidence) (agents.Principal, error) {
	if admitted, ok := e.Principal.(admittedPrincipal); ok && (!admitted.Owner || n.owns(admitted.Principal)) {
		return admitted.Principal, nil
	}
	p, err := n.who(e)
	if err != nil {
		n.journal.Deny("nobody", "", device.Denied)
	}
	return p, err
}

// Admit returns the account of a caller, or an error that says why the evidence proves nothing. A
// carrier that admits each request passes principal on in that request's evidence. Permissions are
// checked when the principal calls: a permission or an ownership that has ended since does not
// count.
func (n *Node) Admit(e Evidence) (principal any, account string, err error) {
	p, err := n.Who(e)
	if err != nil {
		return nil, "", err
	}
	account, err = n.Account(p)
	return admittedPrincipal{p}, account, err
}

func (n *Node) who(e Evidence) (agents.Principal, error) {
	switch {
	case e.Local == "owner":
		return localOwner, nil
	case e.Local == "agent":
		return localAgent, nil
	case e.Bearer == "" && e.Peer != "" && n.access != nil:
		return n.access.Peer(e.Peer)
	case e.Bearer == "":
		return agents.Principal{}, device.Faultf(device.Denied, "this needs the site's token in a header: Authorization: Bearer …")
	}
	if e.Local == "loopback" { // the folder's token is for this machine
		got := sha256.Sum256([]byte(e.Bearer))
		if subtle.ConstantTimeCompare(got[:], n.token[:]) == 1 {
			return tokenHeld, nil
		}
	}
	if n.access != nil {
		return n.access.Bearer(e.Bearer)
	}
	return agents.Principal{}, device.Faultf(device.Denied, "this is not the site's token; agentsite run prints where it is kept")
}
