package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
)

// TestKeepAsking: a site that vanishes without a word is known to be gone within half a minute.
func TestKeepAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		err := keepAsking(t.Context(), aliveEvery, func(ctx context.Context) error {
			if asked++; asked <= 3 {
				return nil
			}
			<-ctx.Done() // it is gone
			return ctx.Err()
		})
		if took := time.Since(began) - 3*aliveEvery; !errors.Is(err, context.DeadlineExceeded) || took > 30*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := keepAsking(ctx, nearEvery, func(context.Context) error { return &client.RequestError{Kind: "busy"} }); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) < time.Hour {
			t.Error(err)
		}
	})
}

// TestOutboundGrants: a site delegates to its agents what both permissions allow, under a name, and
// the error gives advice if it has no grant. The newest grant counts.
func TestOutboundGrants(t *testing.T) {
	f := state.Folder(t.TempDir())
	key, err := Person{f}.Key()
	if err != nil {
		t.Fatal(err)
	}
	owner, shed := identity.New(), identity.New()
	o := NewOutbound(f, key, nil, "test")
	defer o.Close()
	open := func(agentID string) *outboundSite {
		s, self, err := o.Open(agent.Link{Site: "shed", Peer: shed.ID().PeerID(), Addresses: []string{"192.0.2.1:8474"}, Agent: agentID, Most: "read *", May: "read climate"})
		if err != nil {
			t.Fatal(err)
		}
		if self != key.Derive(agentID).ID().String() {
			t.Errorf("%s asks as %s", agentID, self)
		}
		return s.(*outboundSite)
	}
	frost := open("rule:frost")
	var mistake state.Mistake
	if _, err := frost.grant(); !errors.As(err, &mistake) {
		t.Errorf("without a grant: %v", err)
	}
	for _, until := range []int64{0, time.Now().Add(time.Hour).Unix()} {
		g, err := access.Issue(identity.New(), access.Block{Audience: key.ID(), Node: shed.ID(), Until: until, Permissions: []access.Permission{{Tools: []string{"read_points"}, Points: []string{"*"}}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Accept(access.GrantLink{Site: shed.ID(), Name: "hut", Addresses: []string{"192.0.2.2:8474"}, Grant: g}.String()); err != nil {
			t.Fatal(err)
		}
		its, err := frost.grant()
		if err != nil || len(its.Blocks) != 3 || its.Issuer != g.Issuer || its.Until() != g.Until() || its.Audience() != key.Derive("rule:frost").ID() || its.Blocks[2].Name != "frost" || its.Words() != "read climate" {
			t.Fatalf("%+v %v", its, err)
		}
		if again, err := frost.grant(); err != nil || again.ID() != its.ID() {
			t.Error("it is another grant each time")
		}
	}
	if at := fmt.Sprint(frost.addresses()); at != "[192.0.2.1:8474 192.0.2.2:8474]" {
		t.Error(at)
	}
	joined := frost.router.network
	// A watch leaves no connection behind.
	dialed := false
	frost.router.dial = func(context.Context) (net.Conn, error) {
		dialed = true
		ours, theirs := net.Pipe()
		go func() { theirs.Read(make([]byte, 1)); theirs.Close() }()
		return ours, nil
	}
	frost.router.network = nil
	if err := frost.Watch(t.Context(), agents.Principal{}, agents.WatchRequest{}, nil); err == nil || !dialed || frost.router.cachedRoute() != nil {
		t.Errorf("%v, dialed %t, by %v", err, dialed, frost.router.cachedRoute())
	}
	for _, text := range []string{"", "agentsite://x", access.GrantLink{Site: shed.ID(), Grant: mustIssue(t, owner, owner.ID())}.String()} {
		if _, err := o.Accept(text); !errors.As(err, &mistake) {
			t.Errorf("%.30q: %v", text, err)
		}
	}
	if _, _, err := o.Open(agent.Link{Peer: key.ID().String()}); err == nil {
		t.Error("a site asks itself")
	}
	// Few join the global network.
	for i := range maxNetworks {
		if s := open(fmt.Sprint("rule:", i)); (s.router.network != nil) != (i < maxNetworks-1) {
			t.Errorf("agent %d: %v", i, s.router.network)
		}
	}
	// One that is gone makes room, and joins none any more.
	o.Keep([]agent.Link{{Agent: "rule:0"}, {Agent: "rule:1"}})
	if s := open("rule:other"); s.router.network == nil {
		t.Error("the networks of agents that are gone are kept")
	}
	if s := open("rule:1"); s.router.network == nil {
		t.Error("an agent that is there has lost its network")
	}
	o.leaving.Wait()
	if _, err := joined.open(); err == nil {
		t.Error("an agent that is gone joins")
	}
}

func mustIssue(t *testing.T, key identity.Key, to identity.ID) *access.Grant {
	t.Helper()
	g, err := access.Issue(key, access.Block{Audience: to, Permissions: []access.Permission{{Tools: []string{"read_points"}, Points: []string{"*"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
