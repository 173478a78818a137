package acts

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
	"agentsite/node/config"

	"github.com/go-json-experiment/json/jsontext"
)

// The operations for setting up parts. None changes anything: ConfigureAct does, with the text of DraftAct.
const (
	DriversAct op.Name[Name, Drivers]  = "owner/drivers" // lists the drivers, or describes those of one name
	ScanAct    op.Name[None, Scanned]  = "owner/scan"    // finds connected parts
	DraftAct   op.Name[Draft, drafted] = "owner/draft"   // edits a device in the configuration's text
)

// Drivers answers DriversAct.
type Drivers struct {
	Drivers []Driver `json:"drivers"`
}

// Driver describes a driver to somebody who wires up and configures a part. In a list of all, it ends
// with Entry.
type Driver struct {
	Driver string         `json:"driver"`
	Doc    string         `json:"is"`
	Also   []string       `json:"also,omitzero"` // other names of the part
	Entry  string         `json:"entry"`         // the shortest entry of a device
	Points []DriverPoint  `json:"points,omitzero"`
	Keys   []config.Key   `json:"keys,omitzero"`
	More   []config.Key   `json:"point_keys,omitzero"` // those of the device's points
	Asked  []string       `json:"asked,omitzero"`      // the keys that a person is asked for
	Wiring []Wire         `json:"wiring,omitzero"`     // of the shortest entry
	Setup  []string       `json:"config_txt,omitzero"` // lines of a Raspberry Pi's config.txt
	Note   string         `json:"note,omitzero"`
	Schema jsontext.Value `json:"schema,omitzero"` // the JSON Schema of an entry

	Addresses []string `json:"addresses,omitzero"` // that the chip can have: 0x38, 0x20..0x27
}

// DriverPoint is a point that the shortest entry makes.
type DriverPoint struct {
	Point string      `json:"point"`
	Kind  device.Kind `json:"kind"`
	Unit  string      `json:"unit,omitzero"`
}

// String returns the point with its unit or kind.
func (p DriverPoint) String() string {
	if p.Unit != "" {
		return p.Point + " (" + p.Unit + ")"
	}
	return p.Point + " (" + string(p.Kind) + ")"
}

// Wire is a position of the header, and what is there.
type Wire struct {
	Position int    `json:"position"`
	Line     string `json:"line"` // "GPIO2 SDA"
}

// Scanned answers ScanAct.
type Scanned struct {
	Found   []FoundPart `json:"found"`
	Trouble []string    `json:"trouble,omitzero"` // why some could not be found
}

// FoundPart is a connected part, or a port or line for one.
type FoundPart struct {
	Where      string  `json:"where"`
	What       string  `json:"what"`
	Confidence string  `json:"confidence"`
	Says       string  `json:"says,omitzero"`
	Drafts     []Draft `json:"drafts,omitzero"` // devices for it, to choose from
}

// Draft is the request of DraftAct: keys of a device, which is added if it is not there.
type Draft struct {
	Device string           `json:"device"`
	Set    []config.Setting `json:"set"`
	Text   string           `json:"text,omitzero"` // to edit; "" is the configuration's
	New    bool             `json:"new,omitzero"`  // refuses a name that a device has
}

// drafted answers DraftAct.
type drafted struct {
	Text   string `json:"text"`
	Digest string `json:"digest"` // of the configuration as it is, for ConfigureAct
	// As in Checked.
	Mistakes []Mistake `json:"mistakes"`
	Warnings []string  `json:"warnings,omitzero"`
}

func (s *Site) aboutParts() []op.Row {
	return []op.Row{
		op.ForOwners(DriversAct, agents.Reads, "drivers", "List the drivers, or describe those of a name, with their keys.",
			func(_ context.Context, _ agents.Principal, n Name) (Drivers, error) {
				all, err := s.Drivers(n.Name)
				return Drivers{append([]Driver{}, all...)}, mistake(err)
			}),
		op.ForOwners(ScanAct, agents.Reads, "add", "Find connected parts that are not in the configuration.",
			func(ctx context.Context, _ agents.Principal, _ None) (Scanned, error) { return s.Scan(ctx) }),
		op.ForOwners(DraftAct, agents.Reads, "add", "Edit a device in the text of the configuration, and check the result.",
			s.draft),
	}
}

// draft edits a device in a text. The caller replaces the configuration with it.
func (s *Site) draft(ctx context.Context, who agents.Principal, d Draft) (drafted, error) {
	now, err := s.configuration()
	if err != nil {
		return drafted{}, err
	}
	if d.Text == "" {
		d.Text = now.Text
	}
	if d.New {
		if err := config.Free(now.File, []byte(d.Text), d.Device); err != nil {
			return drafted{}, mistake(err)
		}
	}
	text, err := config.Edit(now.File, []byte(d.Text), d.Device, d.Set)
	if err != nil {
		return drafted{}, mistake(err)
	}
	checked, err := s.check(ctx, who, NewConfiguration{Text: string(text)})
	return drafted{string(text), now.Digest, checked.Mistakes, checked.Warnings}, err
}
