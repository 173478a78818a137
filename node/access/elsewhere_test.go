package access

import (
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/identity"
)

// TestPatternsElsewhere: all points are all of this site, and a site's name, or one of its
// devices, covers what is below it and nothing that only begins like it.
func TestPatternsElsewhere(t *testing.T) {
	for _, tt := range []struct {
		pattern, point string
		want           bool
	}{
		{"*", "house/heater", true}, {"*", "shed/house/heater", false}, {"shed", "shed/house/heater", true},
		{"shed/house", "shed/house/heater", true}, {"shed/house/heater", "shed/house/heater", true},
		{"shed/house/heater", "house/heater", false}, {"house/heater", "shed/house/heater", false}, {"house", "shed/house/heater", false},
		{"shed/hous", "shed/house/heater", false}, {"she", "shed/house/heater", false}, {"house", "house/heater", true}, {"shed/house", "shed", false}, {"shed", "shed", false},
	} {
		if got := matches(tt.pattern, tt.point); got != tt.want {
			t.Errorf("%s on %s: %t", tt.pattern, tt.point, got)
		}
	}
	for text, ok := range map[string]bool{
		"read *, read shed/a/b": true, "read shed, read shed/a/b": false, "read shed/a, read shed/a/b": false, "read shed/a/b, read shed": true, "read a/b/c/d": false, "read */b": false,
	} {
		if _, err := ParsePermissions(text); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	site, owner := identity.New(), identity.New()
	if _, err := Issue(owner, Block{Audience: identity.New().ID(), Node: site.ID(), Permissions: words(t, "read shed/a/b")}); err == nil {
		t.Error("a grant names the points of another site")
	}
	if _, err := Issue(owner, Block{Audience: identity.New().ID(), Node: site.ID(), Permissions: words(t, "ask shed/tidy")}); err == nil {
		t.Error("a grant names the agents of another site")
	}
	for _, tt := range []struct {
		pattern, agent string
		want           bool
	}{
		{"*", "tidy", true}, {"*", "shed/tidy", false}, {"shed", "shed/tidy", true}, {"shed/tidy", "shed/tidy", true},
		{"tidy", "shed/tidy", false}, {"shed/tid", "shed/tidy", false}, {"she", "shed/tidy", false}, {"shed/tidy", "tidy", false}, {"shed/tidy", "shed", false},
	} {
		if got := words(t, "ask "+tt.pattern)[0].covers(askTool, tt.agent, agents.Acts); got != tt.want {
			t.Errorf("ask %s of %s: %t", tt.pattern, tt.agent, got)
		}
	}
}

// TestAtElsewhere: words go over to another site and come back as they were.
func TestAtElsewhere(t *testing.T) {
	there := words(t, "read climate+door/open, set house/heater 0..5 max 5m 10/h, read *, ask tidy 3/h, ask *")
	here, err := At("shed", there)
	wants(t, err, "")
	if got := FormatPermissions(here); got != "read shed/climate+shed/door/open, set shed/house/heater 0..5 max 5m 10/h, read shed, ask shed/tidy 3/h, ask shed" {
		t.Error(got)
	}
	if got := FormatPermissions(Elsewhere("shed", append(words(t, "set house/heater, read barn/x+shedd, ask beds+barn/tidy+*"), here...))); got != FormatPermissions(there) {
		t.Error(got)
	}
	if got := Elsewhere("shed", words(t, "read *, set barn, stop, ask barn+barn/shed")); got != nil {
		t.Error(got)
	}
	for _, wrong := range []string{"stop", "read shed/a/b", "ask shed/beds"} {
		if _, err := At("shed", words(t, wrong)); err == nil {
			t.Errorf("%s is said of another site", wrong)
		}
	}
}

// TestAttenuated: a site passes its grant on to its agent's key, named and narrowed twice, and the
// other site knows the name, and permits what every block does. The same words are the same grant.
func TestAttenuated(t *testing.T) {
	k := keys(3)
	site, owner, here := k[0], k[1], k[2]
	b, err := NewStore(Options{
		Site: site.ID(), Build: built, SystemClock: func() (time.Time, bool) { return time.Now(), true },
		SaveAccess: func([]byte) error { return nil }, SaveCounts: func([]byte) error { return nil },
	})
	wants(t, err, "")
	wants(t, b.Claim(Owner{ID: owner.ID(), Name: "Anna"}), "")
	frost := here.Derive("rule:frost")
	if other := here.Derive("rule:dusk"); frost.ID() == other.ID() || frost.ID() == here.ID() || frost.ID() != here.Derive("rule:frost").ID() || !frost.ID().Valid() {
		t.Fatal("the keys of agents are not their own")
	}
	g, err := Issue(owner, Block{Audience: here.ID(), Node: site.ID(), Permissions: words(t, "read *, set house+lamp max 1h")})
	wants(t, err, "")
	pass := func(may string) *Grant {
		most, err := g.Attenuate(here, Block{Audience: here.ID(), Node: site.ID(), Permissions: words(t, "read climate, set house+lamp max 10m")})
		wants(t, err, "")
		its, err := most.Attenuate(here, Block{Audience: frost.ID(), Node: site.ID(), Permissions: words(t, may), Name: "frost"})
		wants(t, err, "")
		return its
	}
	its := pass("read *, set house max 5m")
	if pass("read *, set house max 5m").ID() != its.ID() || pass("read *").ID() == its.ID() {
		t.Error("the same words are not the same grant, or others are")
	}
	for range 3 * maxPresentedPerRoot {
		_, err = b.Present(frost.ID(), its.Bytes())
		wants(t, err, "")
	}
	p := agents.Principal{ID: frost.ID().String()}
	if b.AgentName(p.ID) != "frost" || b.NameOf(p.ID) != "frost" || b.AgentName(here.ID().String()) != "" {
		t.Errorf("it is called %q", b.AgentName(p.ID))
	}
	if called := b.Called(p.ID); called != "frost of another key" {
		t.Errorf("owners see a name of its giver's choice as theirs: %q", called)
	}
	if root := b.Root(p); root != here.ID().String() {
		t.Errorf("its root is %s", root)
	}
	for _, tt := range []struct {
		ask agents.Ask
		ok  bool
	}{
		{agents.Ask{Op: agents.OpMove, Points: []string{"house/heater"}, Value: device.Bool(true), For: 300e9}, true},
		{agents.Ask{Op: agents.OpMove, Points: []string{"house/heater"}, Value: device.Bool(true), For: 301e9}, false},
		{agents.Ask{Op: agents.OpMove, Points: []string{"lamp/level"}, Value: device.Bool(true)}, false},
		{agents.Ask{Op: agents.OpRead, Points: []string{"climate/temperature"}, Effect: agents.Reads}, true},
		{agents.Ask{Op: agents.OpRead, Points: []string{"house/heater"}, Effect: agents.Reads}, false},
	} {
		if _, err := b.May(p, tt.ask); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.ask, err)
		}
	}
	// A holder's newer grant is for its older one.
	for i := range 2 * maxPresentedPerRoot {
		its = pass([]string{"read climate", "read climate/temperature", "read climate/humidity", "read lamp"}[i%4] + ", set house max " + Seconds(1+i).String())
		_, err = b.Present(frost.ID(), its.Bytes())
		wants(t, err, "")
	}
	if n := len(b.Grants()); n != 1 {
		t.Errorf("%d grants", n)
	}
	anna := here.Derive("rule:anna")
	its, err = g.Attenuate(here, Block{Audience: anna.ID(), Node: site.ID(), Permissions: words(t, "read *"), Name: "anna"})
	wants(t, err, "")
	_, err = b.Present(anna.ID(), its.Bytes())
	wants(t, err, "")
	if b.NameOf(anna.ID().String()) != "" || b.AgentName(anna.ID().String()) != "" ||
		b.Called(anna.ID().String()) != "" || b.Root(agents.Principal{ID: anna.ID().String()}) != here.ID().String() {
		t.Error("an agent of another site goes by an owner's name, or may nothing")
	}
	b.Revoke(Revocation{Key: here.ID()})
	if b.AgentName(p.ID) != "" {
		t.Error("its name outlives its permission")
	}
	for _, name := range []string{"Frost", "a b", "x\x1b", "a/b", "123456789012345678901234567"} {
		if _, err := g.Attenuate(here, Block{Audience: frost.ID(), Permissions: words(t, "read *"), Name: name}); err == nil {
			t.Errorf("%q is a name", name)
		}
	}
}
