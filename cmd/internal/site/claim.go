package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"

	"agentsite/agents"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/rpc"
)

// ChallengeMethod and ProveMethod let somebody claim a site that nobody owns. They are
// for whoever proved a key, and all that such a site answers on a network.
const (
	ChallengeMethod = "claim/challenge"
	ProveMethod     = "claim/prove"
)

// Challenge answers ChallengeMethod.
type Challenge struct {
	Challenge [32]byte `json:"challenge"`
}

// Claimed answers ProveMethod.
type Claimed struct {
	Answer access.Answer `json:"answer"`
	Name   string        `json:"name"` // of the site
}

// claimText is what stands in the claim file. What has the superuser's rights copies it to
// where somebody finds it who takes the card of a board without a screen.
func claimText(i access.Invitation) []byte {
	return fmt.Appendf(nil, "Whoever opens this address first owns the site. With agentsite on another machine, within\nfifteen minutes of the start of this one:\n\n  agentsite claim %s\n", i)
}

// ReadInvitation returns the address to claim the site by that runs from the folder, or will when
// it starts again; ok is false where there is none, because somebody owns it.
func ReadInvitation(f state.Folder) (i access.Invitation, ok bool, err error) {
	text, err := state.ReadUntrusted(f.Path(state.ClaimFile), 4096)
	if text == nil || err != nil {
		return i, false, err
	}
	_, after, _ := bytes.Cut(text, []byte("agentsite claim "))
	uri, _, _ := bytes.Cut(after, []byte("\n"))
	i, err = access.ParseInvitation(string(uri))
	return i, err == nil && i.Secret != access.Secret{}, err
}

// ClaimWindow is how long after its start a site can be claimed.
const ClaimWindow = access.ClaimWindow

// claims is how a site is claimed.
type claims struct {
	name  string
	book  *access.Book
	door  *node.Node
	claim *access.Claim // nil where somebody owns it from the start
	file  string

	claimed func() // is called once somebody owns the site
}

// addClaim adds the methods of the claim where others reach the site at all, and returns
// its address, nil where they do not. Where nobody owns the site, that is the one to claim
// it by, with a secret, and is also written to a file in the data folder. seed is the
// configuration's secret, "" for one of the site's own.
func addClaim(methods map[string]rpc.Method, door *node.Node, book *access.Book, key identity.Key, name string, f state.Folder, seed string, at net.Addr, far *internet, claimed func()) (*access.Invitation, error) {
	c := &claims{name: name, book: book, door: door, file: f.Path(state.ClaimFile), claimed: claimed}
	if book.Claimed() || at == nil && far == nil {
		c.removeFile()
	}
	if at == nil && far == nil {
		return nil, nil
	}
	methods[ChallengeMethod] = c.challenge
	methods[ProveMethod] = c.prove
	near := reachable(at, key.ID())
	if len(near) > 1 {
		near = near[:len(near)-1] // whoever claims it looks for that name by the key anyway
	}
	i := &access.Invitation{Site: key.ID(), Addresses: append(near, far.throughRelay()...)}
	if book.Claimed() {
		slog.Info("its owners make this site known on their own machines with agentsite claim", "address", i.String())
		return i, nil
	}
	secret, err := access.ParseSecret(seed)
	if seed == "" {
		secret, err = book.Secret()
	}
	if err != nil {
		return nil, err
	}
	c.claim, i.Secret = access.NewClaim(key, secret, c.take), secret
	if err := state.WriteAtomic(c.file, claimText(*i), 0o600); err != nil {
		slog.Warn("the address to claim this site by is in no file", "err", err)
	}
	slog.Info("nobody owns this site: it can be claimed for fifteen minutes", "address", i.String())
	return i, nil
}

// caller is who proved a key to the carrier.
func caller(c *rpc.Call) (identity.ID, error) {
	if c.Evidence.Peer == "" {
		return identity.ID{}, rpc.Errorf(rpc.CodeMethodNotFound, "a site is claimed by a key: run agentsite claim with the address that the site shows")
	}
	return identity.Parse(c.Evidence.Peer)
}

var errOwned = rpc.Errorf(403, "this site has an owner already: have its owner grant you something")

func (c *claims) challenge(_ context.Context, call *rpc.Call) (any, error) {
	who, err := caller(call)
	if err != nil {
		return nil, err
	}
	if c.book.Claimed() {
		return nil, errOwned
	}
	challenge, err := c.claim.Challenge(who)
	if err != nil {
		return nil, rpc.Errorf(403, "%v", err)
	}
	return Challenge{challenge}, nil
}

func (c *claims) prove(ctx context.Context, call *rpc.Call) (any, error) {
	who, err := caller(call)
	if err != nil {
		return nil, err
	}
	var p access.Proof
	if err := call.Params.Decode(&p); err != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "params: %v", err)
	}
	if p.Claimant != who { // somebody passes on what another one proved
		return nil, rpc.Errorf(403, "this is the proof of another key")
	}
	if c.book.Claimed() {
		return nil, errOwned
	}
	answer, err := c.claim.Take(ctx, p)
	if err != nil {
		return nil, rpc.Errorf(403, "%v", err)
	}
	c.door.Recheck()
	c.claimed()
	return Claimed{answer, c.name}, nil
}

// take makes the first owner.
func (c *claims) take(id identity.ID) error {
	err := c.door.Own(agents.Principal{ID: id.String(), Owner: true}, "claim", "", func() error { return c.book.Claim(access.Owner{ID: id}) })
	if err == nil {
		slog.Info("this site is owned now", "owner", id.String())
		c.removeFile()
	}
	return err
}

func (c *claims) removeFile() {
	if err := os.Remove(c.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		slog.Warn("a file with a secret that is used up stays; remove it", "err", err)
	}
}

// shownAddresses is as many as fit on a screen, as a picture.
const shownAddresses = 2

// reachable is where others may find what listens at an address, nil for nowhere: there, or
// wherever this machine is.
func reachable(at net.Addr, id identity.ID) (all []string) {
	if at == nil {
		return nil
	}
	listens, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return nil
	}
	port := fmt.Sprint(listens.Port())
	if !listens.Addr().IsUnspecified() {
		return []string{at.String()}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		slog.Warn("this machine's addresses are not known", "err", err)
	}
	for _, want4 := range []bool{true, false} {
		for _, a := range addresses {
			p, err := netip.ParsePrefix(a.String())
			if err != nil || p.Addr().IsLoopback() || p.Addr().IsLinkLocalUnicast() || p.Addr().Is4() != want4 || len(all) == shownAddresses-1 {
				continue
			}
			all = append(all, net.JoinHostPort(p.Addr().String(), port))
		}
	}
	return append(all, net.JoinHostPort(HostName(id), port))
}
