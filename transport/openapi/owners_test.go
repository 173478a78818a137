package openapi

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/transport/adapter/adaptertest"
)

// TestOwners: the operations for owners are there for an owner, with their schemas, and for nobody else.
func TestOwners(t *testing.T) {
	s := adaptertest.New(t, nil)
	asked := 0
	s.Owners = (&acts.Site{}).Operations()
	for i, row := range s.Owners {
		if row.Name == string(acts.RevokeAct) {
			s.Owners[i] = op.ForOwners(acts.RevokeAct, row.Effect, row.Command, row.Description, func(_ context.Context, who agents.Principal, n acts.Name) (acts.None, error) {
				if asked++; n.Name == "none" {
					return acts.None{}, device.Faultf(device.Invalid, "there is none")
				}
				return acts.None{}, nil
			})
		}
	}
	routes := Routes(&s.Site)
	s.Serve(t, routes)
	all, _ := s.Token(t, "all", "read *, set *, stop, ask *")
	const revoke = "/api/owner/revoke"
	for _, token := range []string{adaptertest.SiteToken, all} {
		if res, body := s.Ask(t, "POST", revoke, token, `{"name":"a"}`); res.StatusCode != http.StatusNotFound || asked != 0 {
			t.Errorf("%d %s", res.StatusCode, body)
		}
		if _, document := s.Ask(t, "GET", documentPath, token, ""); strings.Contains(document, "owner/") {
			t.Error(document)
		}
	}
	if res, _ := s.Ask(t, "POST", revoke, "", `{"name":"a"}`); res.StatusCode != http.StatusUnauthorized {
		t.Error(res.Status)
	}
	for body, want := range map[string]int{`{"name":"a"}`: 200, `{"name":"none"}`: 400, `{"name":1}`: 400, `{"named":"a"}`: 400, `{"name":"a"}}`: 400} {
		if status, text := s.AskAsOwner(t, routes, "POST", revoke, body); status != want {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	status, document := s.AskAsOwner(t, routes, "GET", documentPath, "")
	for _, row := range s.Owners {
		if field(t, document, "paths", "/api/"+row.Name, "post", "requestBody", "content", "application/json", "schema", "type") != "object" {
			t.Errorf("%d: %s has no schema", status, row.Name)
		}
	}
}
