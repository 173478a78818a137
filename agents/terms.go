package agents

// Terms are what a caller asks of a call beside its arguments, under their names in
// MCP's _meta. They matter to a call that leaves safe, and to nothing else.
type Terms struct {
	// Key makes a call that is repeated with it act once: 1 to 64 printable characters
	// of ASCII, of the caller's own choice.
	Key *string `json:"agentsite/idempotency-key,omitzero"`
	// Within is how many seconds after the call came in it may still begin.
	Within *float64 `json:"agentsite/expires-in,omitzero"`
}
