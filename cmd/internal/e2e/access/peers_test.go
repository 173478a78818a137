//go:build e2e

package access

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"
	ownerapi "agentsite/transport/owner"
)

// TestKeysFromAfar: a key without a grant learns nothing, whatever it presents. A key with a grant
// moves and reads no more than that permits, whoever signed it.
func TestKeysFromAfar(t *testing.T) {
	r, i := harness.StartUnclaimed(t, harness.TempDir(t), "  den: { driver: sim, model: climate }")
	anna := harness.NewPerson(t)
	anna.MustCLI(t, "claim", i.String())
	own := anna.Key(t)
	mallory, bob, carol := identity.New(), identity.New(), identity.New()

	grants := granting{t}
	block, issue, pass := grants.block, grants.issue, grants.pass
	const all = "read *, set *, stop"
	present := func(key identity.Key, grant []byte) error {
		_, err := harness.DialAs(t, key, i).CallMethod(t.Context(), string(ownerapi.PresentMethod), acts.Signed{Grant: grant})
		return err
	}
	// silent: nothing is told to a key, and nothing moves.
	silent := func(name string, key identity.Key) {
		t.Helper()
		c := harness.DialAs(t, key, i)
		for _, call := range []struct{ tool, args string }{
			{"list_points", `{}`}, {"read_points", `{}`}, {"read_points", `{"points":["den/temperature"]}`}, {"site_status", `{}`},
			{"switch_output", `{"output":"box/relay","on":true}`}, {"release_output", `{"output":"box/relay"}`}, {"emergency_stop", `{}`}, {"no_such_tool", `{}`},
		} {
			a, err := c.Ask(t.Context(), call.tool, []byte(call.args))
			said := strings.ReplaceAll(fmt.Sprint(err), key.ID().String(), "") // which may have any three letters
			if err == nil || strings.Contains(said, "den") || strings.Contains(said, "box") {
				t.Errorf("%s: %s: %s %v", name, call.tool, a.JSON, err)
			}
		}
		if tools, err := c.Tools(t.Context()); err == nil {
			t.Errorf("%s: it sees %v", name, tools)
		}
		for _, method := range []string{string(acts.AccessAct), string(acts.ResetAct), string(acts.RequestsAct), string(acts.ApproveAct), string(acts.RevokeAct), string(acts.AddOwnerAct), string(acts.TimeAct), string(acts.GrantAct), string(acts.TokenAct), string(acts.RecoveryAct), string(acts.RoutesAct), string(acts.HealthAct)} {
			if text, err := c.CallMethod(t.Context(), method, acts.Name{Name: mallory.ID().String()}); err == nil {
				t.Errorf("%s: %s answers %s", name, method, text)
			}
		}
	}
	silent("a stranger", mallory)

	for _, tt := range []struct {
		name  string
		grant []byte
	}{
		{"nothing", nil},
		{"a grant of her own", issue(mallory, block(mallory.ID(), i.Site, all, time.Hour)).Bytes()},
		{"another's", issue(own, block(bob.ID(), i.Site, all, time.Hour)).Bytes()},
		{"one for another site", issue(own, block(mallory.ID(), bob.ID(), all, time.Hour)).Bytes()},
		{"one that ended", issue(own, block(mallory.ID(), i.Site, all, -time.Hour)).Bytes()},
		{"one that was changed", bytes.Replace(issue(own, block(mallory.ID(), i.Site, "read den", time.Hour)).Bytes(), []byte("den"), []byte("box"), 1)},
		{"half of one", issue(own, block(mallory.ID(), i.Site, all, time.Hour)).Bytes()[:60]},
		{"one from nobody's owner, passed on", pass(issue(bob, block(carol.ID(), i.Site, all, time.Hour)), carol, block(mallory.ID(), i.Site, all, time.Hour)).Bytes()},
		{"5 kB", make([]byte, 5<<10)},
	} {
		if err := present(mallory, tt.grant); err == nil && tt.name != "one that ended" {
			t.Errorf("%s is kept", tt.name)
		}
		silent(tt.name, mallory)
	}

	// She has the grant, and nobody has the additions that she made when she delegated it.
	hers := issue(own, block(mallory.ID(), i.Site, "read den/temperature", time.Hour))
	if err := present(mallory, hers.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := present(bob, hers.Bytes()); err == nil {
		t.Error("another shows her grant")
	}
	silent("who shows another's grant", bob)
	wide := pass(hers, mallory, block(bob.ID(), i.Site, all, 90*24*time.Hour))
	if err := present(bob, wide.Bytes()); err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]identity.Key{"she": mallory, "whom she passed it on to": bob} {
		c := harness.DialAs(t, key, i)
		a, err := c.Ask(t.Context(), "read_points", []byte(`{}`))
		if err != nil || !strings.Contains(string(a.JSON), "den/temperature") || strings.Contains(string(a.JSON), "humidity") || strings.Contains(string(a.JSON), "box") {
			t.Errorf("%s: %s %v", name, a.JSON, err)
		}
		for _, call := range []struct{ tool, args string }{{"switch_output", `{"output":"box/relay","on":true}`}, {"emergency_stop", `{}`}, {"read_points", `{"points":["den/humidity"]}`}} {
			if a, err := c.Ask(t.Context(), call.tool, []byte(call.args)); err == nil {
				t.Errorf("%s: %s: %s", name, call.tool, a.JSON)
			}
		}
	}

	// Revoked is revoked, however often it is shown, and with all that came from it.
	anna.MustCLI(t, "revoke", mallory.ID().String(), "--site", "shed")
	for _, tt := range []struct {
		name  string
		key   identity.Key
		grant *access.Grant
	}{{"hers", mallory, hers}, {"passed on", bob, wide}} {
		if err := present(tt.key, tt.grant.Bytes()); err == nil {
			t.Errorf("%s is kept again", tt.name)
		}
		silent(tt.name+", revoked", tt.key)
	}
	if text := anna.MustCLI(t, "read", "box/relay", "--site", "shed"); !strings.Contains(text, "off") {
		t.Error("the relay moved:", text)
	}
	if _, err := r.CLI(t, "journal", "--verify"); err != nil {
		t.Error(err)
	}
}
