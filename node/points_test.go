package node

import (
	"testing"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// going are outputs of which one may have gone.
type going struct {
	Outputs
	gone string
}

func (g *going) Policy(output string) (guard.Policy, error) {
	if output == g.gone {
		return guard.Policy{}, device.Faultf(device.Invalid, "there is no output %s", output)
	}
	return guard.Policy{Output: output}, nil
}

// TestPointsInReload: an output that goes in the middle of a reload is left out of the list of points, which has all
// others. A site is not taken up with an output that has no policy.
func TestPointsInReload(t *testing.T) {
	outputs := new(going)
	d := device.Description{Points: []device.Point{{Name: "on", Kind: device.KindSwitch}}}
	site := Site{Outputs: outputs, Devices: []Device{
		{Name: "lamp", Description: d, Busy: device.NewMutex()}, {Name: "pump", Description: d, Busy: device.NewMutex()},
	}}
	n := New(Parts{Hub: newHub()})
	if err := n.Replace(site); err != nil {
		t.Fatal(err)
	}
	outputs.gone = "pump/on"
	list, err := n.Points(t.Context(), LocalOwner, agents.SiteRequest{})
	if err != nil || len(list.Points) != 1 || list.Points[0].Point != "lamp/on" {
		t.Errorf("%+v, %v", list, err)
	}
	if n.Replace(site) == nil {
		t.Error("it is taken up")
	}
}
