//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
	ownerapi "agentsite/transport/owner"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// startOpen starts a site with a relay that listens on HTTPS, and that nobody owns.
func startOpen(t testing.TB, data string, more ...string) (*running, access.Invitation) {
	t.Helper()
	r := startWith(t, data, more...)
	return r, r.invitation(t)
}

// startWith is startOpen for a site that may be owned.
func startWith(t testing.TB, data string, more ...string) *running {
	t.Helper()
	return startAt(t, data, "127.0.0.1:0", more...)
}

// startAt is startWith at an address for HTTPS.
func startAt(t testing.TB, data, https string, more ...string) *running {
	t.Helper()
	config := "site: { name: shed }\ndevices:\n  box: { driver: sim, model: relay, min_off: 0 }\n" + strings.Join(more, "\n") + "\n"
	return startIn(t, data, config, nil, need(t, "the program", program), "run", "--listen-https", https)
}

const claimFile = "agentsite-claim.txt"

var shown = regexp.MustCompile(`agentsite://\S+`)

// invitation is the address that the site shows in its data folder.
func (r *running) invitation(t testing.TB) access.Invitation {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.Folder, claimFile))
	if err != nil {
		t.Fatal(err)
	}
	i, err := access.ParseInvitation(shown.FindString(string(text)))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return i
}

// access asks a site on its own machine who may do what.
func (r *running) access(t testing.TB) (all ownerapi.Access) {
	t.Helper()
	c, err := peer.Dial(peer.Target{Folder: state.Folder(r.Folder), Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	says, err := c.Owner.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return says.Access
}

// owners are the keys that own the site.
func (r *running) owners(t testing.TB) (all []string) {
	t.Helper()
	for _, o := range r.access(t).Owners {
		all = append(all, o.DID)
	}
	return all
}

// person is somebody with a key and a command line of their own, on another machine.
type person struct{ folder string }

func someone(t testing.TB) person { return person{folder(t)} }

// agentsite runs a command, and returns what it printed.
func (p person) agentsite(t testing.TB, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, need(t, "the program", program), args...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+p.folder)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(out), err
}

// must is agentsite for what has to go well.
func (p person) must(t testing.TB, args ...string) string {
	t.Helper()
	out, err := p.agentsite(t, args...)
	if err != nil {
		t.Fatal(args, err)
	}
	return out
}

// key is the person's own.
func (p person) key(t testing.TB) identity.Key {
	t.Helper()
	p.must(t, "identity", "--card", "-")
	text, err := os.ReadFile(filepath.Join(p.folder, "agentsite", "owner", "key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := identity.ParsePEM(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

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

// as speaks to the site that i names as whoever has a key.
func as(t testing.TB, key identity.Key, i access.Invitation) *client.Client {
	t.Helper()
	secured, err := web.ClientTLS(key, i.Site)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: secured}
	t.Cleanup(transport.CloseIdleConnections)
	at := "https://" + i.Addresses[0] + "/mcp"
	return client.New(&web.Client{URL: at, Codec: rpc.JSON, HTTP: &http.Client{Transport: transport}}, "e2e", "1")
}

// owned is a site that listens on HTTPS and libp2p, and its owner.
type owned struct {
	*running
	owner identity.Key
	id    identity.ID
	peers []string // its multiaddrs
}

// startOwned starts a site of these devices, in YAML, whose configuration names its owner.
func startOwned(t *testing.T, devices string) owned {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", folder(t))
	owner, err := peer.OwnerIdentity()
	if err != nil {
		t.Fatal(err)
	}
	r := owned{running: start(t, "site: { name: shed }\nowner: "+owner.DID+"\ninternet: {}\ndevices:\n"+devices,
		need(t, "the program", program), "--listen-https=127.0.0.1:0", "--listen-peers=127.0.0.1:0")}
	self, err := state.Folder(r.Folder).Identity()
	if err != nil {
		t.Fatal(err)
	}
	if r.id, err = identity.Parse(self.DID); err != nil {
		t.Fatal(err)
	}
	r.owner = person{os.Getenv("XDG_CONFIG_HOME")}.key(t)
	for _, c := range r.ways(t).Carriers {
		if c.Kind == ownerapi.P2PCarrier {
			r.peers = append(r.peers, c.Address)
		}
	}
	return r
}
