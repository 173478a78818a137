package peer

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/discovery"
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

// TestNearSearch: a caller during a search gets its answer, also when the first one has gone, and a secret is read
// meanwhile. Many names of one address hide no other.
func TestNearSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board := func(name, host string) (f Found) {
			f.Name, f.DID, f.Unclaimed = name, "did:"+name, true
			f.URLs = []string{"https://" + host + ":8474/mcp"}
			return f
		}
		searches := 0
		n := &Near{discover: func(_ context.Context, o DiscoverOptions, emit func(discovery.Change, Found)) error {
			searches++
			time.Sleep(o.For)
			for i := range 5 * maxBoards {
				emit(discovery.Appeared, board(fmt.Sprintf("a%02d", i), "192.0.2.66"))
			}
			emit(discovery.Appeared, board("shed", "192.0.2.7"))
			emit(discovery.Appeared, board("roof", "192.0.2.8"))
			return nil
		}}
		leaving, leave := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { _, err := n.Search(leaving); gone <- err }()
		synctest.Wait()
		leave()
		if err := <-gone; err == nil {
			t.Error("who left got an answer")
		}
		answers := make(chan []Found)
		begun := time.Now()
		for range 3 {
			go func() { all, _ := n.Search(t.Context()); answers <- all }()
		}
		synctest.Wait()
		n.Invitation("", "") // does not wait
		if time.Since(begun) != 0 {
			t.Errorf("a secret was read after %v", time.Since(begun))
		}
		for range 3 {
			all := <-answers
			var names []string
			for _, f := range all {
				names = append(names, f.Name)
			}
			if len(names) != maxBoards || !slices.Contains(names, "shed") || !slices.Contains(names, "roof") || !slices.IsSorted(names) {
				t.Errorf("it finds %q", names)
			}
		}
		if took := time.Since(begun); searches != 1 || took != nearTime {
			t.Errorf("%d searches in %v", searches, took)
		}
	})
}
