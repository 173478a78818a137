//go:build e2e

package access

import (
	"os"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"
)

// granting makes grants for a test.
type granting struct{ t testing.TB }

// block permits a key something on a site, from now on for a while.
func (g granting) block(to, node identity.ID, words string, until time.Duration) access.Block {
	g.t.Helper()
	may, err := access.ParsePermissions(words)
	if err != nil {
		g.t.Fatal(err)
	}
	return access.Block{Audience: to, Node: node, Until: time.Now().Add(until).Unix(), Permissions: may}
}

func (g granting) issue(key identity.Key, b access.Block) *access.Grant {
	return g.made(access.Issue(key, b))
}

func (g granting) pass(held *access.Grant, key identity.Key, b access.Block) *access.Grant {
	return g.made(held.Delegate(key, b))
}

func (g granting) made(grant *access.Grant, err error) *access.Grant {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
	return grant
}

// owned is a site that listens on HTTPS and libp2p, and its owner.
type owned struct {
	*harness.Site
	owner identity.Key
	id    identity.ID
	peers []string // its multiaddrs
}

// startOwned starts a site of these devices, in YAML, whose configuration names its owner.
func startOwned(t *testing.T, devices string) owned {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", harness.TempDir(t))
	owner, err := peer.OwnerIdentity()
	if err != nil {
		t.Fatal(err)
	}
	r := owned{Site: harness.Start(t, "site: { name: shed }\nowner: "+owner.DID+"\ninternet: {}\ndevices:\n"+devices,
		harness.Need(t, "the program", harness.Program), "--listen-https=127.0.0.1:0", "--listen-peers=127.0.0.1:0")}
	self, err := state.Folder(r.Folder).Identity()
	if err != nil {
		t.Fatal(err)
	}
	if r.id, err = identity.Parse(self.DID); err != nil {
		t.Fatal(err)
	}
	r.owner = harness.Person{Folder: os.Getenv("XDG_CONFIG_HOME")}.Key(t)
	for _, c := range r.Routes(t).Carriers {
		if c.Kind == acts.P2PCarrier {
			r.peers = append(r.peers, c.Address)
		}
	}
	return r
}
