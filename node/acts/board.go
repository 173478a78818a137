package acts

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/op"

	"github.com/go-json-experiment/json/jsontext"
)

// The operations that tell of the board and of what its configuration may have.
const (
	PinoutAct op.Name[None, Pinout]    = "owner/pinout" // answers the board's header, with the devices at its pins
	DoctorAct op.Name[None, Diagnosis] = "owner/doctor" // answers what is wrong, or may be, with remedies
	SchemaAct op.Name[None, Schema]    = "owner/schema" // answers the JSON Schema of the configuration
)

// Pinout answers PinoutAct.
type Pinout struct {
	Site      string   `json:"site,omitzero"` // "" without a configuration
	Board     string   `json:"board"`
	Positions []Pin    `json:"positions"`
	Elsewhere []string `json:"elsewhere,omitzero"` // devices that have no position there
}

// Pin is a position of the 40-pin header.
type Pin struct {
	Position int      `json:"position"`        // 1 to 40; the odd ones are on one side
	Kind     string   `json:"kind"`            // "GPIO", "ground"
	Line     string   `json:"line,omitzero"`   // "GPIO17"; "" for power and ground
	Signal   string   `json:"signal,omitzero"` // on its bus: "SDA"
	Devices  []string `json:"devices,omitzero"`
}

// Diagnosis answers DoctorAct.
type Diagnosis struct {
	Findings []Finding `json:"findings"` // the worst first
}

// Finding is something about the site's machine that its owner should know.
type Finding struct {
	Severity string `json:"severity"` // "problem", "warning" or "note"
	Subject  string `json:"subject"`
	Says     string `json:"says"`
	Do       string `json:"do,omitzero"` // the remedy
}

// Schema answers SchemaAct.
type Schema struct {
	Schema jsontext.Value `json:"schema"`
}

func (s *Site) aboutBoard() []op.Row {
	return []op.Row{
		op.ForOwners(PinoutAct, agents.Reads, "pinout", "Show the board's header with the devices' pins.",
			func(context.Context, agents.Principal, None) (Pinout, error) { return s.Pinout() }),
		op.ForOwners(DoctorAct, agents.Reads, "doctor",
			"Find problems of the board and the configuration, with remedies.",
			func(ctx context.Context, _ agents.Principal, _ None) (Diagnosis, error) { return s.Doctor(ctx) }),
		op.ForOwners(SchemaAct, agents.Reads, "schema", "Answer the JSON Schema of the configuration.",
			func(context.Context, agents.Principal, None) (Schema, error) {
				text, err := s.Schema()
				return Schema{text}, err
			}),
	}
}
