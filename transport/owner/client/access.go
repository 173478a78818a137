package client

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"

	"github.com/multiformats/go-multiaddr"
)

// Access is a site's report of its permissions. Only a value from Client.Access can be signed for.
type Access struct {
	acts.Access
	site identity.ID // the key that was pinned or proved
}

// Address is how owners make the site known on another machine of theirs.
func (a Access) Address() string {
	return access.Invitation{Site: a.site, Addresses: a.At}.String()
}

// Renewal returns the arguments of agentsite that grant the same again, quoted for a shell. ok is
// false if g is not a well-formed permission for a key, which is never suggested.
func Renewal(g acts.Granted) (words string, ok bool) {
	to, err := identity.Parse(g.To)
	if err != nil || g.Token != "" || len(g.May) != 1 {
		return "", false
	}
	may, err := access.ParsePermissions(g.May[0])
	words = "grant " + to.String() + " " + state.ShellQuote(access.FormatPermissions(may))
	if device.CheckName(g.Name) == nil {
		words += " --name " + g.Name
	}
	return words, err == nil
}

// isTaken reports whether an owner, a token, or another key than to, has a name at the site, or it is a grant's ID.
func (a Access) isTaken(name string, to identity.ID) bool {
	isOwners := func(o acts.Owner) bool { return strings.EqualFold(o.Name, name) && o.DID != to.String() }
	return slices.ContainsFunc(a.Owners, isOwners) || slices.ContainsFunc(a.Grants, func(g acts.Granted) bool {
		expired := !g.Until.IsZero() && !g.Until.After(a.Time)
		return g.Token == name || g.ID == name || g.Name == name && g.To != to.String() && !expired
	})
}

func errTaken(name string) error {
	return state.Mistakef("%s is the name of an owner, a token or another key here: choose another, or revoke that", name)
}

// freeName returns a name that nothing has at the site: want, or usual if want is not a name, with a number if taken.
func (a Access) freeName(want, usual string) string {
	if device.CheckName(want) != nil {
		want = usual
	}
	name := want
	for n := 2; a.isTaken(name, identity.ID{}); n++ {
		number := "-" + strconv.Itoa(n)
		for device.CheckName(want+number) != nil { // too long
			want = want[:len(want)-1]
		}
		name = want + number
	}
	return name
}

// checkHolderName refuses what is no name, and a name that an owner, a token, or another key than to, has at the site;
// "" is for none.
func (a Access) checkHolderName(name string, to identity.ID) error {
	if name == "" {
		return nil
	}
	if err := device.CheckName(name); err != nil {
		return state.Mistake{Err: err}
	}
	if a.isTaken(name, to) {
		return errTaken(name)
	}
	return nil
}

// SignGrant signs a permission in words for the key audience, which is called name at the site; "" is for no name. It
// returns the grant for the site and the text for the grant's holder. The zero time is for ever. key is called once
// everything else is right: it may create the key.
func SignGrant(
	on Access, key func() (identity.Key, error), audience, name, words string, until time.Time,
) (acts.Signed, string, error) {
	to, err := identity.Parse(audience)
	if err != nil {
		return acts.Signed{}, "", state.Mistake{Err: err}
	}
	if err := on.checkHolderName(name, to); err != nil {
		return acts.Signed{}, "", err
	}
	g, err := issue(on, key, to, name, words, until)
	if err != nil {
		return acts.Signed{}, "", err
	}
	return acts.Signed{Grant: g.Bytes()}, access.GrantLink{Site: on.site, Name: on.Name, Addresses: on.At, Grant: g}.String(), nil
}

// SignToken signs a permission in words for a token of that name, which may be there already.
func SignToken(on Access, key func() (identity.Key, error), name, words string, until time.Time) (acts.NewToken, error) {
	n := acts.NewToken{Name: name, Until: until}
	if err := device.CheckName(name); err != nil { // the site may have suggested it
		return n, state.Mistake{Err: err}
	}
	is := func(g acts.Granted) bool { return g.Token == name }
	if !slices.ContainsFunc(on.Grants, is) && on.isTaken(name, identity.ID{}) {
		return n, errTaken(name)
	}
	g, err := issue(on, key, on.site, "", words, until)
	if err != nil {
		return n, err
	}
	if slices.ContainsFunc(g.Blocks[0].Permissions, access.Permission.Answers) { // a token signs nothing
		return n, state.Mistake{Err: errors.New("a token answers no calls that wait for you: " +
			"use approve is for your phone, by agentsite grant phone")}
	}
	n.Grant = g.Bytes()
	return n, nil
}

func issue(
	on Access, key func() (identity.Key, error), to identity.ID, name, words string, until time.Time,
) (*access.Grant, error) {
	b, err := NewBlock(to, on.site, words, until)
	if err != nil {
		return nil, err
	}
	b.Name = name
	k, err := key()
	if err != nil {
		return nil, err
	}
	g, err := access.Issue(k, b)
	if err != nil {
		return nil, state.Mistake{Err: err}
	}
	return g, nil
}

// NewBlock returns a permission in words for the key to on one site, to be signed. The zero
// time is for ever.
func NewBlock(to, site identity.ID, words string, until time.Time) (access.Block, error) {
	if !site.Valid() { // no site would mean every site of the owner's
		return access.Block{}, errors.New("the site's key is not known, and a permission is for one site")
	}
	may, err := access.ParsePermissions(words)
	if err != nil {
		return access.Block{}, state.Mistake{Err: err}
	}
	return access.Block{Audience: to, Node: site, Until: access.EndSecond(until), Permissions: may}, nil
}

// GrantUntil reads when a grant of a permission in words ends. "" is the usual length for
// such a permission, and the zero time is for ever.
func GrantUntil(text, words string) (time.Time, error) {
	if text == "" {
		may, err := access.ParsePermissions(words)
		if err != nil {
			return time.Time{}, state.Mistake{Err: err}
		}
		return time.Now().Add(access.DefaultLength(may)), nil
	}
	return TokenUntil(text)
}

// TokenUntil reads when a token ends.
func TokenUntil(text string) (time.Time, error) {
	until, err := access.ParseUntil(text, time.Now())
	if err != nil {
		return until, state.Mistakef("--until: %w", err)
	}
	return until, nil
}

const (
	maxAddress   = 256 // bytes of one address; a real one is shorter
	maxAddresses = 14  // of a site; no more are remembered
)

// Addresses keeps texts in the form of a site's address, host:port or a multiaddr, up to the number
// that is stored.
func Addresses(all []string) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(a string) bool { return !isAddress(a) })
	return all[:min(len(all), maxAddresses)]
}

func isAddress(a string) bool {
	if len(a) > maxAddress {
		return false
	}
	if strings.HasPrefix(a, "/") {
		_, err := multiaddr.NewMultiaddr(a) // its names may be anything
		return err == nil && access.ShellSafe(a)
	}
	host, port, err := net.SplitHostPort(a)
	if err != nil || host == "" || !access.ShellSafe(host) || strings.Contains(host, "/") {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
