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
	"agentsite/transport/rpc"
)

// AccessMethod lists who may do what. TokenMethod takes a grant that an owner signed, and
// makes a token that stands for it. RevokeMethod ends what its name says: a token, a
// grant, or all that a key has. AddOwnerMethod and RemoveOwnerMethod take a did:key.
const (
	AccessMethod      = "owner/access"
	TokenMethod       = "owner/token"
	RevokeMethod      = "owner/revoke"
	AddOwnerMethod    = "owner/add-owner"
	RemoveOwnerMethod = "owner/remove-owner"
)

// Access answers AccessMethod.
type Access struct {
	Site   string    `json:"site"` // its did:key
	URL    string    `json:"url"`
	Time   time.Time `json:"time"`
	Sure   bool      `json:"time_is_known"` // or the time is only not earlier
	Owners []Owner   `json:"owners"`
	Grants []Granted `json:"grants"`
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

// NewToken is the parameters of TokenMethod.
type NewToken struct {
	Name  string    `json:"name"`
	Grant []byte    `json:"grant"` // its audience is the site
	Until time.Time `json:"until"`
	Now   time.Time `json:"now"` // when the owner signed, by the owner's clock
}

// MadeToken answers TokenMethod.
type MadeToken struct {
	ID    string    `json:"id"`    // of its grant
	Token string    `json:"token"` // itself; nobody is told again
	Until time.Time `json:"until"`
	Owner string    `json:"new_owner,omitzero"` // who signed, where that made it the first owner
}

// addGrants adds the owner's methods about who may do what. url is the site's, for which
// its tokens count.
func addGrants(methods map[string]rpc.Method, door *node.Node, b *access.Book, url string) {
	methods[AccessMethod] = ownersOnly(door, "grants", func(context.Context, agents.Principal, string) (any, error) {
		return list(b, url), nil
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

// addToken makes a token. Whoever signs the first one on the site's own machine becomes
// its owner: that machine's user is, until then.
func addToken(b *access.Book, url string, n NewToken, g *access.Grant) (m MadeToken, err error) {
	m = MadeToken{ID: g.ID().String(), Until: n.Until}
	if err := access.CheckName(n.Name); err != nil { // before it makes anybody an owner
		return m, err
	}
	if !b.Claimed() {
		m.Owner = g.Issuer.String()
		if err := b.Claim(access.Owner{ID: g.Issuer}); err != nil {
			return m, err
		}
	}
	if !owns(b, g.Issuer) {
		return m, fmt.Errorf("this site has owners, and your key is none of theirs: agentsite owners add %v makes it one", g.Issuer)
	}
	if err := b.Tell(n.Now); err != nil { // by which it ends
		return m, err
	}
	m.Token, err = b.AddToken(n.Name, url, n.Grant, n.Until.Sub(n.Now))
	return m, err
}

func list(b *access.Book, url string) Access {
	now, sure := b.Now()
	out := Access{Site: b.Site.String(), URL: url, Time: now.UTC().Truncate(time.Second), Sure: sure, Owners: []Owner{}, Grants: []Granted{}}
	for _, o := range b.Owners() {
		out.Owners = append(out.Owners, Owner{DID: o.ID.String(), Name: o.Name})
	}
	for _, t := range b.Tokens() {
		if g, err := access.Open(t.Grant); err == nil {
			row := grantedBy(g)
			row.Token, row.To, row.Until = t.Name, "", time.Unix(t.Until, 0).UTC()
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

// SignToken is a permission in words for a token of a site, which its did:key names,
// signed by this machine's user as an owner.
func SignToken(did, name, words string, until time.Time) (NewToken, error) {
	n := NewToken{Name: name, Until: until, Now: time.Now()}
	site, err := identity.Parse(did)
	if err != nil {
		return n, err
	}
	may, err := access.ParseWords(words)
	if err != nil {
		return n, Mistake{err}
	}
	key, err := ownerKey()
	if err != nil {
		return n, err
	}
	g, err := access.Issue(key, access.Block{Audience: site, Node: site, Until: until.Unix(), May: may})
	if err != nil {
		return n, Mistake{err}
	}
	n.Grant = g.Bytes()
	return n, nil
}

// Until reads when a token ends.
func Until(text string) (time.Time, error) {
	until, err := access.ParseUntil(text, time.Now())
	if err == nil && until.IsZero() {
		err = errors.New("a token ends some day: write how long, such as 30d")
	}
	if err != nil {
		return until, Mistake{fmt.Errorf("--until: %w", err)}
	}
	return until, nil
}
