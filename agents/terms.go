package agents

import (
	"strings"

	"agentsite/device"
)

// MaxVia is through how many sites and agents a call may come.
const MaxVia = 4

// Terms are the conditions of a call beside its arguments; those with JSON names are in MCP's
// _meta. Key and Within matter to a call that leaves safe, and to no other.
type Terms struct {
	// Key makes a call that is repeated with it act once: 1 to 64 printable characters
	// of ASCII, of the caller's own choice.
	Key *string `json:"agentsite/idempotency-key,omitzero"`
	// Within is how many seconds after the call came in it may still begin.
	Within *float64 `json:"agentsite/expires-in,omitzero"`
	// Approval is the State of the last ApprovalNeeded; "" asks for the first time.
	Approval string `json:"-"`
	// NoApproval refuses a call, as denied, that an owner would have to approve.
	NoApproval bool `json:"-"`
	// Confirm requires an owner's approval of the call, whatever the permission says.
	Confirm bool `json:"-"`
	// Unconfirmed says that no person confirmed the call, though it is made with a person's key: that of an owner
	// does not count as an owner's approval.
	Unconfirmed bool `json:"agentsite/unconfirmed,omitzero"`
	// Held restricts a move to a renewal, a change or a release of the caller's own lease. The move is
	// refused as expired where the caller does not hold the output any more.
	Held bool `json:"agentsite/held,omitzero"`
	// Via are the sites and agents through which somebody asks, the nearest last, at most MaxVia:
	// of sites their keys. A site refuses a call that came through it before.
	Via []string `json:"agentsite/via,omitzero"`
	// Behalf is for whom a hosted agent of this site calls; the zero value for a call that is the
	// caller's own. No other site is told.
	Behalf struct {
		Asker Principal
		Task  string // its ID
		// Refuse refuses a call that the asker may not make itself. Otherwise an owner has to approve it.
		Refuse bool
	} `json:"-"`
}

// CheckKey refuses a malformed Key.
func (t *Terms) CheckKey() error {
	bad := func(r rune) bool { return r < ' ' || r > '~' }
	if t.Key != nil && (*t.Key == "" || len(*t.Key) > 64 || strings.ContainsFunc(*t.Key, bad)) {
		return device.Faultf(device.Invalid, "agentsite/idempotency-key: write 1 to 64 printable characters of ASCII, others for each call")
	}
	return nil
}

// SetTerms sets the terms of a request, which embeds them.
func (t *Terms) SetTerms(to Terms) { *t = to }
