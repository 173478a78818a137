package site

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/rpc"
)

// AccessMethod lists who may do what. TokenMethod takes a grant that an owner signed, and
// makes a token that stands for it. RevokeMethod ends what its name says: a token, a
// grant, or all that a key has. AddOwnerMethod and RemoveOwnerMethod take a did:key.
// TimeMethod has the site believe an owner's clock. GrantMethod keeps a grant that an
// owner signed; PresentMethod is for its holder, and not the owner's: it keeps one that
// the site was not told of.
const (
	AccessMethod      = "owner/access"
	TokenMethod       = "owner/token"
	RevokeMethod      = "owner/revoke"
	AddOwnerMethod    = "owner/add-owner"
	RemoveOwnerMethod = "owner/remove-owner"
	TimeMethod        = "owner/time"
	GrantMethod       = "owner/grant"
	PresentMethod     = "grant/present"
)

// AccessParams are the parameters of AccessMethod.
type AccessParams struct {
	Challenge []byte `json:"challenge,omitzero"` // 32 bytes by chance, for the site to prove its key
}

// Access answers AccessMethod.
type Access struct {
	Site string    `json:"site"` // its did:key
	Name string    `json:"name"`
	At   []string  `json:"addresses"`
	URL  string    `json:"url"`
	Time time.Time `json:"time"`
	Sure bool      `json:"time_is_known"` // or the time is only not earlier
	// Off is how far the machine's clock is ahead of the time, where it is not believed.
	Off       float64   `json:"machine_ahead_seconds,omitzero"`
	LastKnown bool      `json:"last_known,omitzero"` // the time is used although it is not known
	Owners    []Owner   `json:"owners"`
	Grants    []Granted `json:"grants"`
	Proof     []byte    `json:"proof,omitzero"` // of the key, where there was a challenge

	id identity.ID // the site's, as Connection.Access verified it
}

// Address is what owners have the site known by on a machine of their own.
func (a Access) Address() string {
	return access.Invitation{Site: a.id, Addresses: a.At}.String()
}

// Owner is a key with authority over the site.
type Owner struct {
	DID  string `json:"did"`
	Name string `json:"name,omitzero"`
}

// Granted is a grant, or a token that stands for one.
type Granted struct {
	ID    string    `json:"id"`
	Token string    `json:"token,omitzero"` // its name
	To    string    `json:"to,omitzero"`    // without a token: whose key
	May   []string  `json:"may"`            // one for each time that it was passed on; all have to allow a call
	Until time.Time `json:"until,omitzero"`
}

// Renewal are the words after agentsite that grant the same again, quoted for a shell; ok
// is false for what is no key, or no permission: it is never suggested.
func (g Granted) Renewal() (words string, ok bool) {
	to, err := identity.Parse(g.To)
	if err != nil || g.Token != "" || len(g.May) != 1 {
		return "", false
	}
	may, err := access.ParseWords(g.May[0])
	return "grant " + to.String() + " " + state.ShellQuote(access.Words(may)), err == nil
}

// NewToken is the parameters of TokenMethod.
type NewToken struct {
	Name  string    `json:"name"`
	Grant []byte    `json:"grant"` // its audience is the site
	Until time.Time `json:"until"`
}

// Signed is the parameters of GrantMethod and PresentMethod.
type Signed struct {
	Grant []byte `json:"grant"`
}

// Reached answers PresentMethod and TimeMethod: where the site may be reached now, of which
// whoever may do something there is to know.
type Reached struct {
	At []string `json:"at,omitzero"`
}

// TimeNow is the parameters of TimeMethod.
type TimeNow struct {
	Now  time.Time `json:"now"`
	Back bool      `json:"back,omitzero"` // set the time back, too: for an owner on the site's own machine
}

// MadeToken answers TokenMethod.
type MadeToken struct {
	ID    string    `json:"id"`    // of its grant
	Token string    `json:"token"` // itself; nobody is told again
	Until time.Time `json:"until"`
	Owner string    `json:"new_owner,omitzero"` // who signed, where that made it the first owner
}

// addPresent lets whoever proved a key show what it was granted.
func addPresent(methods map[string]rpc.Method, b *access.Book, here whereabouts) {
	methods[PresentMethod] = func(_ context.Context, c *rpc.Call) (any, error) {
		who, err := caller(c)
		if err != nil {
			return nil, err
		}
		var s Signed
		if err := c.Params.Decode(&s); err != nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "params: %v", err)
		}
		if _, err := b.Present(who, s.Grant); err != nil {
			return nil, rpc.Errorf(403, "%v", err)
		}
		return Reached{here.at()}, nil
	}
}

// whereabouts is what a site tells its owners of itself.
type whereabouts struct {
	key  identity.Key
	name string
	url  string          // for which its tokens count
	at   func() []string // where it may be reached now
}

// addGrants adds the owner's methods about who may do what.
func addGrants(methods map[string]rpc.Method, door *node.Node, b *access.Book, s whereabouts) {
	url := s.url
	methods[AccessMethod] = ownersMethod(door, "grants", func(_ context.Context, _ agents.Principal, p AccessParams) (any, error) {
		all := list(b, s)
		switch len(p.Challenge) {
		case 0:
		case 32:
			all.Proof = access.ProveSite(s.key, p.Challenge)
		default:
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "challenge: it has 32 bytes")
		}
		return all, nil
	})
	methods[TimeMethod] = ownersMethod(door, "clock --set", func(_ context.Context, who agents.Principal, t TimeNow) (any, error) {
		switch {
		case !t.Back:
			return Reached{s.at()}, b.Tell(t.Now)
		case granted(who.ID):
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "the time is set back on the site's own machine only: agentsite clock --set --back there")
		}
		err := door.Own(who, "clock --set --back", t.Now.UTC().Format(time.RFC3339), func() error { return b.SetBack(t.Now) })
		if err != nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
		}
		return Reached{s.at()}, nil
	})
	methods[GrantMethod] = ownersMethod(door, "grant", func(_ context.Context, who agents.Principal, s Signed) (any, error) {
		g, err := access.Open(s.Grant)
		if err == nil {
			err = door.Own(who, "grant", g.Audience().String()+": "+g.Words(), func() error { return addGrant(b, g) })
		}
		if err != nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
		}
		door.Recheck()
		return struct{}{}, nil
	})
	methods[TokenMethod] = ownersMethod(door, "token", func(_ context.Context, who agents.Principal, n NewToken) (any, error) {
		var m MadeToken
		g, err := access.Open(n.Grant)
		if err == nil {
			err = door.Own(who, "token", n.Name+": "+g.Words(), func() error {
				m, err = addToken(b, url, n, g)
				return err
			})
		}
		if err != nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
		}
		door.Recheck()
		return m, nil
	})
	change := func(command string, do func(name string) error) rpc.Method {
		return ownersOnly(door, command, func(_ context.Context, who agents.Principal, name string) (any, error) {
			if err := door.Own(who, command, name, func() error { return do(name) }); err != nil {
				return nil, rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
			}
			return struct{}{}, nil
		})
	}
	methods[RevokeMethod] = change("revoke", func(name string) error {
		r, err := revocation(b, name)
		if err != nil {
			return err
		}
		return b.Revoke(r)
	})
	methods[AddOwnerMethod] = change("owners add", func(did string) error {
		id, err := identity.Parse(did)
		switch {
		case err != nil:
			return err
		case !b.Claimed():
			return b.Claim(access.Owner{ID: id})
		}
		return b.AddOwner(access.Owner{ID: id})
	})
	methods[RemoveOwnerMethod] = change("owners remove", func(did string) error {
		id, err := identity.Parse(did)
		if err != nil {
			return err
		}
		return b.RemoveOwner(id)
	})
	addRecovery(methods, door, b)
}

// ownedBy refuses who is no owner. Whoever signs first on the site's own machine becomes
// its owner, and is returned: that machine's user is, until then.
func ownedBy(b *access.Book, id identity.ID) (first string, err error) {
	if !b.Claimed() {
		first = id.String()
		if err := b.Claim(access.Owner{ID: id}); err != nil {
			return "", err
		}
	}
	if !owns(b, id) {
		return "", fmt.Errorf("this site has owners, and your key is none of theirs: agentsite owners add %v makes it one", id)
	}
	return first, nil
}

func addGrant(b *access.Book, g *access.Grant) error {
	if _, err := ownedBy(b, g.Issuer); err != nil {
		return err
	}
	_, err := b.Deposit(g.Bytes())
	return err
}

// addToken makes a token.
func addToken(b *access.Book, url string, n NewToken, g *access.Grant) (m MadeToken, err error) {
	m = MadeToken{ID: g.ID().String(), Until: n.Until}
	if err := access.CheckName(n.Name); err != nil { // before it makes anybody an owner
		return m, err
	}
	if m.Owner, err = ownedBy(b, g.Issuer); err != nil {
		return m, err
	}
	m.Token, err = b.AddToken(n.Name, url, n.Grant, n.Until)
	return m, err
}

func list(b *access.Book, s whereabouts) Access {
	now, sure := b.Now()
	out := Access{Site: b.Site.String(), Name: s.name, At: s.at(), URL: s.url, Time: now.UTC().Truncate(time.Second), Sure: sure, Off: b.Disbelieved().Seconds(), LastKnown: b.LastKnown, Owners: []Owner{}, Grants: []Granted{}}
	for _, o := range b.Owners() {
		out.Owners = append(out.Owners, Owner{DID: o.ID.String(), Name: o.Name})
	}
	for _, t := range b.Tokens() {
		if g, err := access.Open(t.Grant); err == nil {
			row := grantedBy(g)
			row.Token, row.To = t.Name, ""
			if t.Until != 0 {
				row.Until = time.Unix(t.Until, 0).UTC()
			}
			out.Grants = append(out.Grants, row)
		}
	}
	for _, g := range b.Grants() {
		out.Grants = append(out.Grants, grantedBy(g))
	}
	return out
}

func grantedBy(g *access.Grant) Granted {
	row := Granted{ID: g.ID().String(), To: g.Audience().String(), Until: g.Until()}
	for _, block := range g.Blocks {
		row.May = append(row.May, access.Words(block.May))
	}
	return row
}

// revocation finds what a name stands for: a token, the ID of a grant, or a key.
func revocation(b *access.Book, name string) (r access.Revocation, err error) {
	all := b.Grants()
	for _, t := range b.Tokens() {
		if t.Name == name {
			return access.Revocation{Token: name}, nil
		}
		if g, err := access.Open(t.Grant); err == nil {
			all = append(all, g)
		}
	}
	if i := slices.IndexFunc(all, func(g *access.Grant) bool { return g.ID().String() == name }); i >= 0 {
		return access.Revocation{Block: all[i].ID()}, nil
	}
	if r.Key, err = identity.Parse(name); err == nil && r.Key != b.Site { // the site's own holds every token
		return r, nil
	}
	return r, fmt.Errorf("%.60q is no token, grant or key that could be revoked: agentsite grants lists them", name)
}

// SignGrant is a permission in words for a key on the site that Connection.Access asked,
// signed by this machine's user as an owner. The zero time is for ever.
func SignGrant(on Access, audience, words string, until time.Time) (Signed, string, error) {
	to, err := identity.Parse(audience)
	if err != nil {
		return Signed{}, "", state.Mistake{Err: err}
	}
	g, err := issue(to, on.id, words, until)
	if err != nil {
		return Signed{}, "", err
	}
	return Signed{g.Bytes()}, access.Pass{Site: on.id, Name: on.Name, Addresses: on.At, Grant: g}.String(), nil
}

func issue(to, site identity.ID, words string, until time.Time) (*access.Grant, error) {
	b, err := block(to, site, words, until)
	if err != nil {
		return nil, err
	}
	key, err := ownerKey()
	if err != nil {
		return nil, err
	}
	g, err := access.Issue(key, b)
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	return g, nil
}

func block(to, site identity.ID, words string, until time.Time) (access.Block, error) {
	if !site.Valid() { // none is all that the owner has
		return access.Block{}, errors.New("the site's key is not known, and a permission is for one site")
	}
	may, err := access.ParseWords(words)
	if err != nil {
		return access.Block{}, state.Mistake{Err: err}
	}
	return access.Block{Audience: to, Node: site, Until: access.EndSecond(until), May: may}, nil
}

// Delegate passes a part of what the person was granted on a site on to another key, and returns the text for its holder. Nobody is asked.
func (p Person) Delegate(name, audience, words string, until time.Time) (string, error) {
	k, err := p.Known(name)
	if err != nil {
		return "", err
	}
	if k.Owner {
		return "", state.Mistakef("you own %s: agentsite grant --site %[1]s", name)
	}
	to, err := identity.Parse(audience)
	if err != nil {
		return "", state.Mistake{Err: err}
	}
	pass, err := p.pass(k, to, words, until)
	if err != nil {
		return "", err
	}
	return pass.String(), nil
}

// GrantUntil reads when a grant of a permission in words ends: "" is usual for it, and the
// zero time never.
func GrantUntil(text, words string) (time.Time, error) {
	if text == "" {
		may, err := access.ParseWords(words)
		if err != nil {
			return time.Time{}, state.Mistake{Err: err}
		}
		return time.Now().Add(access.DefaultLength(may)), nil
	}
	until, err := access.ParseUntil(text, time.Now())
	if err != nil {
		return until, state.Mistakef("--until: %w", err)
	}
	return until, nil
}

// SignToken is a permission in words for a token of the site that Connection.Access asked,
// signed by this machine's user as an owner.
func SignToken(on Access, name, words string, until time.Time) (NewToken, error) {
	n := NewToken{Name: name, Until: until}
	g, err := issue(on.id, on.id, words, until)
	if err != nil {
		return n, err
	}
	n.Grant = g.Bytes()
	return n, nil
}

// Until reads when a token ends.
func Until(text string) (time.Time, error) {
	until, err := access.ParseUntil(text, time.Now())
	if err != nil {
		return until, state.Mistakef("--until: %w", err)
	}
	return until, nil
}
