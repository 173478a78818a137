package things

import (
	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// Verbs are all the tools that a site can offer, with their texts and schemas, as one has
// them that has a point of each kind. The names in their enums are no site's.
func Verbs() ([]agents.Tool, error) {
	a, err := New(Site{
		Things: []Thing{{Name: "device", Description: device.Description{Points: []device.Point{
			{Name: "measurement", Kind: device.KindMeasurement},
			{Name: "switch", Kind: device.KindSwitch},
			{Name: "level", Kind: device.KindLevel},
			{Name: "text", Kind: device.KindText},
			{Name: "image", Kind: device.KindImage},
		}}}},
		Outputs: described{},
	})
	if err != nil {
		return nil, err
	}
	return a.Tools(), nil
}

// described are outputs of which nothing but what they are is asked.
type described struct{ Outputs }

func (described) Policy(string) (guard.Policy, error) { return guard.Policy{}, nil }
