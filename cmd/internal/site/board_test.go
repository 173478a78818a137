package site_test

import (
	"slices"
	"testing"

	"agentsite/cmd/internal/peer"
	"agentsite/cmd/internal/sitetest"
	"agentsite/node/acts"
	"agentsite/transport/owner/client"

	"github.com/go-json-experiment/json"
)

// TestBoard: an owner gets the header with the devices of the configuration, what doctor finds, and the schema, which
// knows the drivers.
func TestBoard(t *testing.T) {
	s := sitetest.Start(t, "site: { name: shed }\ndevices:\n  door: { driver: button, pin: GPIO17 }\n")
	c, err := peer.Dial(peer.Target{Folder: s.Folder})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pins, err := client.Call(t.Context(), c.Owner, acts.PinoutAct, acts.None{})
	if err != nil || len(pins.Positions) != 40 || !slices.Equal(pins.Positions[10].Devices, []string{"door"}) {
		t.Errorf("%+v %v", pins, err)
	}
	found, err := client.Call(t.Context(), c.Owner, acts.DoctorAct, acts.None{})
	door := func(f acts.Finding) bool { return f.Subject == "door" && f.Severity == "problem" }
	runs := func(f acts.Finding) bool { return f.Subject == string(s.Folder) && f.Severity == "note" }
	if err != nil || !slices.ContainsFunc(found.Findings, door) || slices.ContainsFunc(found.Findings, runs) {
		t.Errorf("%+v %v", found, err)
	}
	schema, err := client.Call(t.Context(), c.Owner, acts.SchemaAct, acts.None{})
	var is struct {
		Defs map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal(schema.Schema, &is); err != nil || is.Defs["driver-button"] == nil {
		t.Error(err)
	}
	if err != nil {
		t.Error(err)
	}
}
