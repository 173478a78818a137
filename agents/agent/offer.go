package agent

import "context"

// Named is an Agent that is told its name, before anything else.
type Named interface {
	Agent
	SetName(name string)
}

// Resumer is an Agent that can stop by itself until an owner resumes it.
type Resumer interface {
	Agent
	Resume()
}

// Offering is an Agent whose tools are another program's, which an owner accepts as they are
// before they are offered.
type Offering interface {
	Agent
	// Offered asks the other program, and may start it.
	Offered(ctx context.Context) (Offer, error)
	// Accept accepts the offer with that digest, and fails if the offer has changed since Offered.
	Accept(ctx context.Context, digest string) error
}

// Offer lists the tools of another program and which of them were accepted.
type Offer struct {
	Digest string        `json:"digest"` // of all that Accept would accept
	Tools  []OfferedTool `json:"tools"`
	Others []string      `json:"others,omitzero"` // tools that the configuration does not name
}

// OfferedTool is a tool that the configuration names.
type OfferedTool struct {
	Name     string    `json:"name"` // as the other program calls it
	As       string    `json:"as"`   // as the site does
	State    ToolState `json:"state"`
	Why      string    `json:"why,omitzero"`
	Accepted string    `json:"accepted,omitzero"` // its definition, as JSON
	Offered  string    `json:"offered,omitzero"`
}

// ToolState is how an offered tool differs from the accepted one.
type ToolState string

const (
	ToolAccepted ToolState = "accepted"
	ToolNew      ToolState = "new"     // not offered to anybody yet
	ToolChanged  ToolState = "changed" // withdrawn
	ToolMissing  ToolState = "missing"
	ToolRefused  ToolState = "refused" // Why says what about it cannot be offered
)

// Acceptance asks for the offer of an agent, and accepts it first where it names a digest.
type Acceptance struct {
	Agent  string `json:"agent"`
	Digest string `json:"digest,omitzero"` // of the offer that is accepted; "" to accept nothing
}
