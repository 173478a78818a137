// Package principal says who a caller is. Carriers prove it, and nobody behind them asks again.
package principal

import (
	"strings"

	"agentsite/device"
)

// Principal is a caller that a carrier has proved, or an agent of the site. The zero Principal is
// nobody and is refused everywhere.
type Principal struct {
	Kind  Kind
	ID    string // does not change; leases, tasks and the journal have it
	Owner bool   // may use the owner's methods, which no model reaches
	// Account is the account that limits of carriers and protocols count under. A carrier sets it; it is
	// "" for others.
	Account string
}

// ErrNobody refuses the zero Principal.
var ErrNobody error = device.Faultf(device.Denied, "not authenticated: present a token or a key")

// Kind is a kind of principals.
type Kind uint8

const (
	Unknown    Kind = iota // nobody, or an ID of no other kind
	Local                  // the owner's socket on this machine: "local"
	LocalAgent             // the socket for MCP clients on this machine: "local-agent"
	SiteToken              // the token in the data folder: "token"
	Token                  // a token that an owner made: "token:kitchen.1f3a…"
	Key                    // a key: "did:key:z6Mk…"
	Hosted                 // an agent of this site: "rule:frost"
)

// IDs of the local principals, and what the IDs of others begin with.
const (
	LocalID      = "local"
	LocalAgentID = "local-agent"
	SiteTokenID  = "token"

	TokenPrefix = "token:"
	keyPrefix   = "did:key:"
)

// Parse returns the principal of an ID from a disk or a message, without Owner and Account. Names of
// tokens and agents have no colon, so that none becomes an ID of another kind.
func Parse(id string) Principal { return Principal{Kind: kindOf(id), ID: id} }

func kindOf(id string) Kind {
	switch id {
	case LocalID:
		return Local
	case LocalAgentID:
		return LocalAgent
	case SiteTokenID:
		return SiteToken
	}
	kind, name, _ := strings.Cut(id, ":")
	switch {
	case strings.HasPrefix(id, TokenPrefix):
		return Token
	case strings.HasPrefix(id, keyPrefix):
		return Key
	case kind != "did" && device.CheckName(kind) == nil && device.CheckName(name) == nil:
		return Hosted
	}
	return Unknown
}

// Agent returns an agent of the site by its kind and name in the configuration.
func Agent(kind, name string) Principal { return Principal{Kind: Hosted, ID: kind + ":" + name} }

// Agent returns the kind and the name of an agent of the site; "" for other principals.
func (p Principal) Agent() (kind, name string) {
	if p.Kind != Hosted {
		return "", ""
	}
	kind, name, _ = strings.Cut(p.ID, ":")
	return kind, name
}
