package ops

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/owner/client"

	"github.com/go-json-experiment/json"
)

// fakeSite is a running site that answers by method or tool, and fails without an answer.
type fakeSite map[string]string

func (f fakeSite) CallMethod(_ context.Context, method string, _ any) ([]byte, error) {
	if answer, ok := f[method]; ok {
		return []byte(answer), nil
	}
	return nil, errors.New("no answer")
}

func (f fakeSite) Status(ctx context.Context, _ agents.Principal, _ agents.SiteRequest) (out agents.Answers[agents.Status], err error) {
	answer, err := f.CallMethod(ctx, agents.OpStatus.Tool(), nil)
	if err == nil {
		out.Sites = make([]agents.Status, 1)
		err = json.Unmarshal(answer, &out.Sites[0])
	}
	return out, err
}

// TestAskSite: each problem of a running site is a finding, and so is a site that does not answer.
// For such a site, no problem of its clock is reported.
func TestAskSite(t *testing.T) {
	const folder = "/data"
	key := identity.New().ID()
	did := key.String()
	well := fakeSite{
		string(acts.HealthAct): `{"configuration":"/a.yaml"}`, "site_status": `{}`,
		string(acts.AccessAct):   `{"site":"` + did + `","time_is_known":true}`,
		string(acts.RoutesAct):   `{"carriers":[{"kind":"https","address":"https://192.0.2.1:8474"}]}`,
		string(acts.RequestsAct): `{"requests":[]}`, string(acts.AgentsAct): `{"agents":[]}`,
	}
	ill := maps.Clone(well)
	maps.Copy(ill, fakeSite{
		string(acts.AccessAct): `{"site":"` + did + `"}`,
		string(acts.PublicAct): `{"problems":["no relay"],"alarms":["another's"]}`,
		string(acts.AgentsAct): `{"agents":[{"name":"x","principal":"rule:x","state":"failed"},{"name":"y","state":"idle"}]}`,
		"site_status": `{"emergency_stop":true,"devices":[{"device":"a"},{"device":"b","faults":["x"]}],
			"outputs_away_from_safe":[{"output":"c/d"},{"output":"e/f","fault":"y"}]}`,
	})
	for name, tt := range map[string]struct {
		site  fakeSite
		about []string // the subjects of what is wrong
	}{
		"well":   {well, nil},
		"ill":    {ill, []string{"public name", "b", "e/f", "rule:x", "clock", "public name", "emergency stop"}},
		"silent": {fakeSite{}, []string{folder}}, "away": {nil, []string{folder}},
	} {
		t.Run(name, func(t *testing.T) {
			o := DoctorOptions{Folder: state.Folder(folder), Dial: func() (*RunningSite, error) {
				if tt.site == nil {
					return nil, errors.New("nobody listens")
				}
				return &RunningSite{Owner: client.New(tt.site, key, ""), Site: tt.site, Closer: io.NopCloser(nil)}, nil
			}}
			a, all := askSite(t.Context(), o)
			var about []string
			for _, f := range all {
				if f.Severity != driver.Note {
					about = append(about, f.Subject)
				}
			}
			if !slices.Equal(about, tt.about) {
				t.Errorf("%+v, want some about %q", all, tt.about)
			}
			if last := all[len(all)-1]; last.Subject != folder || last.Severity != driver.Note {
				t.Errorf("it ends with %+v", last)
			}
			o.Itself = true
			if _, all := askSite(t.Context(), o); name == "well" && len(all) > 0 {
				t.Errorf("a site that asks itself finds %+v", all)
			}
			if name == "well" && (a.Configuration != "/a.yaml" || len(a.carriers) != 1) {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestReadStatusOfOthers: a caller with a grant gets the part of the status that the grant covers, without an error,
// and no finding about the rest.
func TestReadStatusOfOthers(t *testing.T) {
	site := fakeSite{"site_status": `{"site":"shed","emergency_stop":true}`}
	read := func() (SiteStatus, error) {
		owner := client.New(refusing{site}, identity.ID{}, "")
		return ReadStatus(t.Context(), &RunningSite{Owner: owner, Site: site, Closer: io.NopCloser(nil)})
	}
	s, err := read()
	if err != nil || s.Owned || s.Site != "shed" || len(s.Wrong) != 1 || s.Wrong[0].Subject != "emergency stop" {
		t.Errorf("%+v, %v", s, err)
	}
	delete(site, "site_status")
	if _, err := read(); err == nil {
		t.Error("a site that says nothing is no error")
	}
}

// refusing is a site that refuses the owner's methods.
type refusing struct{ fakeSite }

func (refusing) CallMethod(context.Context, string, any) ([]byte, error) {
	return nil, device.Faultf(device.Denied, "for owners")
}

// TestClockFindings: doctor says when a running site does not know the time, and whether
// it does not believe its machine.
func TestClockFindings(t *testing.T) {
	if all := clockFindings(acts.Access{Sure: true}); all != nil {
		t.Error(all)
	}
	said := make(map[string]bool)
	for _, a := range []acts.Access{{}, {LastKnown: true}, {Off: 1e6}, {Off: -1e6}} {
		all := clockFindings(a)
		if len(all) != 1 || !strings.Contains(all[0].Do, "agentsite clock --set") {
			t.Fatal(all)
		}
		said[all[0].Says] = true
	}
	if len(said) != 3 {
		t.Error(said)
	}
}
