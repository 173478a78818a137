package acts

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/identity"
)

// aboutAccess has the operations on permissions, and on the time that they count by.
func (s *Site) aboutAccess() []op.Row {
	return []op.Row{
		op.ForOwners(AccessAct, agents.Reads, "grants", "List owners, grants and tokens; prove the site's key.",
			func(_ context.Context, _ agents.Principal, p AccessParams) (Access, error) {
				out := s.access()
				switch len(p.Challenge) {
				case 0:
				case 32:
					out.Proof = access.ProveSite(s.Key, p.Challenge)
				default:
					return Access{}, device.Faultf(device.Invalid, "challenge: it has 32 bytes")
				}
				return out, nil
			}),
		op.ForOwners(GrantAct, agents.Acts, "grant", "Store a grant that an owner signed.", s.grant),
		op.ForOwners(PhoneAct, agents.Acts, "grant phone", "Wait for a phone that shows a code, and return its key.",
			func(ctx context.Context, _ agents.Principal, code Name) (PhoneKey, error) {
				return s.Phone(ctx, code.Name)
			}),
		op.ForOwners(TokenAct, agents.Acts, "token", "Make a token for a grant that an owner signed.", s.token),
		op.ForOwners(SignInAct, agents.Acts, "approve",
			"Let a program sign in that asks for it, with a grant that an owner signed.", s.signIn),
		op.ForOwners(RevokeAct, agents.Acts, "revoke", "End a token, a grant, or all permissions of a key.",
			s.named("revoke", func(name string) error {
				r, err := s.revocation(name)
				if err != nil {
					return err
				}
				return s.Access.Revoke(r)
			})),
		op.ForOwners(TimeAct, agents.Acts, "clock --set", "Set the site's time by an owner's clock.", s.setTime),
	}
}

func (s *Site) setTime(_ context.Context, who agents.Principal, t TimeNow) (Reached, error) {
	method := "clock --set"
	switch {
	case t.Back && who.Kind != principal.Local:
		return Reached{}, device.Faultf(device.Invalid,
			"the time is set back on the site's own machine only: agentsite clock --set --back there")
	case t.Back:
		method += " --back"
	case !t.Set:
		return Reached{s.Addresses()}, s.Access.AdvanceClock(t.Now)
	}
	err := s.Node.Own(who, method, t.Now.UTC().Format(time.RFC3339), func() error {
		return mistake(s.Access.SetClock(t.Now, t.Back))
	})
	return Reached{s.Addresses()}, err
}

func (s *Site) grant(_ context.Context, who agents.Principal, p Signed) (none None, _ error) {
	g, err := access.ParseGrant(p.Grant)
	if err == nil {
		to := g.Audience().String()
		if name := g.HolderName(); name != "" {
			to += " (" + name + ")"
		}
		err = s.Node.Own(who, "grant", to+": "+g.Words(), func() error {
			return mistake(s.addGrant(g, p.Replace))
		})
	}
	if err != nil {
		return none, mistake(err)
	}
	s.Node.Recheck()
	if s.Granted != nil {
		s.Granted(g.Audience().String())
	}
	return none, nil
}

func (s *Site) token(_ context.Context, who agents.Principal, n NewToken) (m MadeToken, _ error) {
	g, err := access.ParseGrant(n.Grant)
	if err == nil {
		err = s.Node.Own(who, "token", n.Name+": "+g.Words(), func() error {
			m, err = s.addToken(n, g)
			return mistake(err)
		})
	}
	if err != nil {
		return MadeToken{}, mistake(err)
	}
	s.Node.Recheck()
	return m, nil
}

// signIn lets a program sign in. Its token exists once the program has fetched it.
func (s *Site) signIn(_ context.Context, who agents.Principal, n NewSignIn) (none None, _ error) {
	if s.SignIns == nil {
		return none, device.Faultf(device.Invalid, "no program can sign in here: the configuration has neither public: under internet: nor oauth: on under http:")
	}
	g, err := access.ParseGrant(n.Grant)
	if err != nil {
		return none, mistake(err)
	}
	return none, s.Node.Own(who, "sign-in", n.Name+": "+g.Words(), func() error {
		return mistake(s.SignIns.Allow(n.Handle, n.Name, n.Grant))
	})
}

func (s *Site) addGrant(g *access.Grant, replace bool) error {
	if _, err := s.checkIssuer(g.Issuer); err != nil {
		return err
	}
	add := s.Access.AddGrant
	if replace {
		add = s.Access.ReplaceGrant
	}
	_, err := add(g.Bytes())
	return err
}

func (s *Site) addToken(n NewToken, g *access.Grant) (m MadeToken, err error) {
	m = MadeToken{ID: g.ID().String(), Until: n.Until}
	if err := device.CheckName(n.Name); err != nil { // before it makes anybody an owner
		return m, err
	}
	if m.Owner, err = s.checkIssuer(g.Issuer); err != nil {
		return m, err
	}
	if n.Replace {
		return m, s.Access.ReplaceTokenGrant(n.Name, n.Grant)
	}
	m.Token, err = s.Access.AddToken(n.Name, n.Grant, n.Until)
	return m, err
}

// checkIssuer refuses a key that is not an owner's. While the site has no owner, the first key that
// signs becomes its owner and is returned. Then only the user of the site's own machine can call
// this.
func (s *Site) checkIssuer(id identity.ID) (first string, err error) {
	if !s.Access.Claimed() {
		first = id.String()
		if err := s.Access.Claim(access.Owner{ID: id}); err != nil {
			return "", err
		}
	}
	if !s.Access.Owns(id.String()) {
		return "", fmt.Errorf(
			"this site has owners, and your key is none of theirs: agentsite owners add %v makes it one", id)
	}
	return first, nil
}

func (s *Site) access() Access {
	b := s.Access
	now, sure := b.Now()
	out := Access{
		Site: b.Site.String(), Name: s.Name, At: s.Addresses(), URL: b.URL,
		Time: now.UTC().Truncate(time.Second), Sure: sure, Off: b.ClockSkew().Seconds(), LastKnown: b.LastKnown,
		Owners: []Owner{}, Grants: []Granted{},
	}
	for _, o := range b.Owners() {
		out.Owners = append(out.Owners, Owner{DID: o.ID.String(), Name: o.Name})
	}
	for _, t := range b.Tokens() {
		if g, err := access.ParseGrant(t.Grant); err == nil {
			row := granted(g)
			row.Token, row.To = t.Name, ""
			who, ago := b.Caller(t)
			row.Who, row.Called = who, ago.Seconds()
			if t.SignIn != nil {
				row.Client, row.Host = t.SignIn.Client, t.SignIn.Host
				if now := b.SignInURL(); now != "" && t.URL != now {
					row.Former = t.URL
				}
			}
			if t.Until != 0 {
				row.Until = time.Unix(t.Until, 0).UTC()
			}
			out.Grants = append(out.Grants, row)
		}
	}
	for _, g := range b.Grants() {
		out.Grants = append(out.Grants, granted(g))
	}
	return out
}

func granted(g *access.Grant) Granted {
	row := Granted{ID: g.ID().String(), To: g.Audience().String(), Name: g.HolderName(), Until: g.Until()}
	for _, block := range g.Blocks {
		row.May = append(row.May, access.FormatPermissions(block.Permissions))
	}
	return row
}

// revocation resolves a name: of a token or of a key's holder, the ID of a grant, or a key.
func (s *Site) revocation(name string) (r access.Revocation, err error) {
	all := s.Access.Grants()
	var called []access.Revocation
	for _, g := range all {
		r := access.Revocation{Key: g.Audience()}
		if g.HolderName() == name && name != "" && !slices.Contains(called, r) {
			called = append(called, r)
		}
	}
	for _, t := range s.Access.Tokens() {
		if t.Name == name {
			called = append(called, access.Revocation{Token: name})
		}
		if g, err := access.ParseGrant(t.Grant); err == nil {
			all = append(all, g)
		}
	}
	if len(called) > 1 {
		return r, fmt.Errorf("%d holders are called %s: agentsite grants lists the IDs, each of which is of one", len(called), name)
	}
	if len(called) == 1 {
		return called[0], nil
	}
	if i := slices.IndexFunc(all, func(g *access.Grant) bool { return g.ID().String() == name }); i >= 0 {
		return access.Revocation{Block: all[i].ID()}, nil
	}
	if r.Key, err = identity.Parse(name); err == nil && r.Key != s.Access.Site { // the site's own key holds every token
		return r, nil
	}
	return r, fmt.Errorf("%.60q is no token, grant or key that could be revoked: agentsite grants lists them", name)
}
