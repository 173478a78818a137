package agents

// Terms are what a caller asks of a call beside its arguments; the first two under their
// names in MCP's _meta. Key and Within matter to a call that leaves safe, and to no other.
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
	// Via are the agents through which somebody asks, the nearest last.
	Via []string `json:"-"`
}
