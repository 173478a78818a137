package peer

import (
	"testing"

	"agentsite/node/access"
	"agentsite/node/identity"
)

// TestNearInvitation: the words of a site claim that site and no other.
func TestNearInvitation(t *testing.T) {
	here, other := identity.New().ID(), identity.New().ID()
	secret := access.ClaimSecret{1}
	line := func(id identity.ID, s access.ClaimSecret) string {
		return access.Invitation{Site: id, Secret: s, Addresses: []string{"192.0.2.1:8474"}}.String()
	}
	f := Found{}
	f.DID, f.URLs = here.String(), []string{"https://192.0.2.7:8474/mcp"}
	n := &Near{found: map[string]Found{f.DID: f}}
	for name, tt := range map[string]struct {
		did, words string
		site       identity.ID // none for a refusal
		at         string
	}{
		"the secret":         {f.DID, " " + secret.Text() + "\n", here, "192.0.2.7:8474"},
		"the line":           {f.DID, line(here, secret), here, "192.0.2.1:8474"},
		"the command":        {f.DID, "  agentsite claim " + line(here, secret) + "\n", here, "192.0.2.1:8474"},
		"of none found":      {"", line(other, secret), other, "192.0.2.1:8474"},
		"of another":         {f.DID, line(other, secret), identity.ID{}, ""},
		"without the secret": {f.DID, line(here, access.ClaimSecret{}), identity.ID{}, ""},
		"secret of none":     {"", secret.Text(), identity.ID{}, ""},
		"secret of unknown":  {other.String(), secret.Text(), identity.ID{}, ""},
		"short":              {f.DID, secret.Text()[1:], identity.ID{}, ""},
		"nothing":            {f.DID, "", identity.ID{}, ""},
	} {
		i, err := n.Invitation(tt.did, tt.words)
		switch {
		case tt.at == "":
			if err == nil {
				t.Errorf("%s: %v", name, i)
			}
		case err != nil || i.Site != tt.site || i.Secret != secret || len(i.Addresses) != 1 || i.Addresses[0] != tt.at:
			t.Errorf("%s: %v %v", name, i, err)
		}
	}
}
