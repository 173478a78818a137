package access

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node/identity"
)

// unclaimed is a site that can be claimed, and its book.
func unclaimed(t *testing.T, s *shelf) (identity.Key, ClaimSecret, *Claim, *Store) {
	site := identity.New()
	b := s.open(t, site.ID())
	secret, err := b.ClaimSecret()
	if err != nil {
		t.Fatal(err)
	}
	return site, secret, NewClaim(site, secret, func(id identity.ID) error { return b.Claim(Owner{ID: id}) }), b
}

func TestClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site, secret, c, b := unclaimed(t, &shelf{})
		k := keys(2)
		ann, eve := k[0], k[1]
		challenge := func(k identity.Key) [32]byte {
			ch, err := c.Challenge(k.ID())
			if err != nil {
				t.Fatal(err)
			}
			return ch
		}
		good := Prove(ann, site.ID(), secret, challenge(ann))
		wrong := secret
		wrong[15] ^= 1
		relayed := good // by eve, for herself
		relayed.Claimant, relayed.Challenge = eve.ID(), challenge(eve)
		resigned := good
		resigned.Claimant = eve.ID()
		resigned.Signature = Prove(eve, site.ID(), wrong, good.Challenge).Signature
		unsigned := good
		unsigned.Signature = make([]byte, 64)
		other := Prove(ann, eve.ID(), secret, challenge(ann))
		begin := time.Now()
		for name, p := range map[string]Proof{
			"a wrong secret":     Prove(eve, site.ID(), wrong, challenge(eve)),
			"relayed":            relayed,
			"relayed and signed": resigned,
			"not signed":         unsigned,
			"for another site":   other,
			"another's question": Prove(eve, site.ID(), secret, challenge(ann)),
			"no question":        Prove(eve, site.ID(), secret, [32]byte{}),
			"nothing":            {},
		} {
			if _, err := c.Accept(t.Context(), p); err != errWrong {
				t.Errorf("%s: %v", name, err)
			}
		}
		if took := time.Since(begin); took != 8*time.Second {
			t.Errorf("eight wrong proofs took %v", took)
		}
		if b.Claimed() {
			t.Fatal("it is claimed")
		}
		answer, err := c.Accept(t.Context(), good)
		if err != nil || !good.VerifyAnswer(site.ID(), secret, answer) {
			t.Fatal(err)
		}
		if good.VerifyAnswer(site.ID(), wrong, answer) || good.VerifyAnswer(eve.ID(), secret, answer) || relayed.VerifyAnswer(site.ID(), secret, answer) {
			t.Error("anybody answers")
		}
		// A replay, and another who knows the secret.
		for _, p := range []Proof{good, Prove(eve, site.ID(), secret, challenge(eve))} {
			if _, err := c.Accept(t.Context(), p); err == nil || !strings.Contains(err.Error(), "has an owner already") {
				t.Error(err)
			}
		}
		if o := b.Owners(); len(o) != 1 || o[0].ID != ann.ID() {
			t.Error(o)
		}
	})
}

func TestClaimInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site, secret, c, b := unclaimed(t, &shelf{})
		ann := identity.New()
		old, err := c.Challenge(ann.ID())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * challengePeriod)
		if _, err := c.Accept(t.Context(), Prove(ann, site.ID(), secret, old)); err != errWrong {
			t.Error(err)
		}
		// The last moment of one challenge is in the time of the next.
		early, err := c.Challenge(ann.ID())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*challengePeriod - time.Second - 1)
		lost := NewClaim(site, secret, func(identity.ID) error { return nil })
		lost.seed, lost.opened = c.seed, c.opened
		if _, err := lost.Accept(t.Context(), Prove(ann, site.ID(), secret, early)); err != nil {
			t.Error(err)
		}
		late, err := c.Challenge(ann.ID())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(ClaimWindow)
		if _, err := c.Challenge(ann.ID()); err != errClosed {
			t.Error(err)
		}
		if _, err := c.Accept(t.Context(), Prove(ann, site.ID(), secret, late)); err != errClosed || b.Claimed() {
			t.Error(err)
		}
	})
}

// TestThousandWrong: a right proof is accepted at once, among a thousand wrong ones.
func TestThousandWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site, secret, c, b := unclaimed(t, &shelf{})
		k := keys(2)
		ann, eve := k[0], k[1]
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for n := range 1000 {
			all.Go(func() {
				challenge, err := c.Challenge(eve.ID())
				if err != nil {
					t.Error(err)
				}
				if _, err := c.Accept(ctx, Prove(eve, site.ID(), ClaimSecret{byte(n), byte(n >> 8)}, challenge)); err != errWrong {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if c.wrong.waiting != maxGuesses {
			t.Errorf("%d wait", c.wrong.waiting)
		}
		begin := time.Now()
		challenge, err := c.Challenge(ann.ID())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Accept(ctx, Prove(ann, site.ID(), secret, challenge)); err != nil || time.Since(begin) != 0 || !b.Claimed() {
			t.Fatal(err, time.Since(begin))
		}
		cancel()
		all.Wait()
	})
}

// TestRace: of two who are right at once, one is the owner.
func TestRace(t *testing.T) {
	for range 50 {
		site, secret, c, b := unclaimed(t, &shelf{})
		var won [8]bool
		var all sync.WaitGroup
		k := keys(len(won))
		for i := range won {
			all.Go(func() {
				challenge, _ := c.Challenge(k[i].ID())
				_, err := c.Accept(t.Context(), Prove(k[i], site.ID(), secret, challenge))
				won[i] = err == nil
			})
		}
		all.Wait()
		owners, winners := b.Owners(), 0
		for i := range won {
			if won[i] {
				winners++
				if owners[0].ID != k[i].ID() {
					t.Error("somebody was told that another's site is his")
				}
			}
		}
		if winners != 1 || len(owners) != 1 {
			t.Fatalf("%d won, %v", winners, owners)
		}
	}
}

// TestGuessesWait: wrong proofs and wrong codes share one limit of waiting calls, because they hold
// slots that a right proof or code needs.
func TestGuessesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, c, b := unclaimed(t, &shelf{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 4 * maxGuesses {
			all.Go(func() { c.Accept(ctx, Proof{}) })
			all.Go(func() { b.Recover(ctx, "", Owner{}) })
		}
		synctest.Wait()
		if n := c.wrong.waiting + b.guesses.waiting; n != maxGuesses {
			t.Errorf("%d wait, not %d", n, maxGuesses)
		}
		cancel()
		all.Wait()
	})
}

func TestInvitation(t *testing.T) {
	site := identity.New()
	const relayed = "/ip4/192.0.2.7/udp/8475/quic-v1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN/p2p-circuit"
	for _, i := range []Invitation{
		{Site: site.ID(), Secret: ClaimSecret{1, 2, 255}, Addresses: []string{"192.168.1.20:8473", "[2001:db8::1]:8473", "greenhouse.local:8473", relayed}},
		{Site: site.ID(), Addresses: []string{"192.168.1.20:8473"}},
		{Site: site.ID(), Secret: ClaimSecret{1}},
		{Site: site.ID()},
	} {
		text := i.String()
		again, err := ParseInvitation(text)
		if err != nil || again.String() != text || again.Site != i.Site || again.Secret != i.Secret || !slices.Equal(again.Addresses, i.Addresses) {
			t.Errorf("%s: %+v, %v", text, again, err)
		}
		if strings.ContainsAny(text, " \t&?*[]{}()<>|;#!$`'\"\\~=^") {
			t.Errorf("a shell acts on a letter of %s", text)
		}
	}
	whole := Invitation{Site: site.ID(), Secret: ClaimSecret{1}, Addresses: []string{"192.168.100.200:8474"}}.String()
	if len(whole) > 106 { // as many as a QR code of 37 squares has, which 24 rows hold
		t.Errorf("%s has %d letters", whole, len(whole))
	}
	if i, err := ParseInvitation(strings.Replace(whole, strings.TrimPrefix(site.ID().String(), "did:key:"), site.ID().PeerID(), 1)); err != nil || i.Site != site.ID() {
		t.Errorf("with the peer ID for the key: %v", err)
	}
	_, key, _ := strings.Cut(whole, "://")
	key, rest, _ := strings.Cut(key, "/")
	secret, _, _ := strings.Cut(rest, "/")
	for what, missing := range map[string][]string{
		"the site's key": {scheme, scheme + key[:20], scheme + key[1:] + "/" + rest},
		"the secret":     {scheme + key},
		"its secret":     {scheme + key + "/", scheme + key + "/" + secret[:10], scheme + key + "/" + secret[1:] + "/a:1", whole[:len(scheme+key)+1] + "A" + rest},
		"reached":        {whole[:len(whole)-5], whole[:len(whole)-4], whole + "+", whole + "+[::1:1"},
		"looks like":     {"", "agentsite", "https" + whole[len("agentsite"):], "agentsite:" + whole[len(scheme):], strings.ToUpper(whole), whole + strings.Repeat("+b:1", 8), whole + strings.Repeat("1", maxURI)},
	} {
		for _, text := range missing {
			if _, err := ParseInvitation(text); err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v does not name %s", text, err, what)
			}
		}
	}
}

// TestURLAddresses: an address is taken as URLs write it, as discover prints it.
func TestURLAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"[fe80::1%25eth0]:8474": "[fe80::1%eth0]:8474", "[fe80::1%eth0]:8474": "[fe80::1%eth0]:8474", "fe80::1%eth0:8474": "[fe80::1%eth0]:8474",
		"[::1]:80": "[::1]:80", "192.0.2.1:80": "192.0.2.1:80", "[::1]": "", "[$(x)]:80": "", "[::1]:": "", "[]:80": "",
	} {
		if all, err := parseAddresses(text); (err == nil) != (want != "") || err == nil && all[0] != want {
			t.Errorf("%q: %q, %v", text, all, err)
		}
	}
}

// TestHostileAddresses: the addresses that a site announces are in texts that people paste into a
// shell. No text has characters that a shell interprets.
func TestHostileAddresses(t *testing.T) {
	site, owner := identity.New(), identity.New()
	const good = "192.0.2.1:80"
	g := grant(t, "read *", owner, owner)
	for _, bad := range []string{"/dns4/x;touch a;/tcp/1", "/dns4/$(touch a)/tcp/1", "/dns4/a`x`/tcp/1", "/dns4/a\nb/tcp/1", "/dns4/a\x1b[2J/tcp/1", "a b:1", "~root:1", "a+b:1", "*:1", "/dns4/é/tcp/1"} {
		i := Invitation{Site: site.ID(), Addresses: []string{bad, good}}
		p := GrantLink{Site: site.ID(), Name: "shed" + bad, Addresses: i.Addresses, Grant: g}
		for _, text := range []string{i.String(), p.String()} {
			if strings.Trim(strings.TrimPrefix(text, scheme), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/.:%_-+@") != "" {
				t.Errorf("%q stands in %q", bad, text)
			}
		}
		if again, err := ParseInvitation(i.String()); err != nil || !slices.Equal(again.Addresses, []string{good}) {
			t.Errorf("%q: %v, %v", bad, again.Addresses, err)
		}
		if strings.Contains(bad, "+") {
			continue // these are two addresses
		}
		if all, err := parseAddresses(good + "+" + bad); err == nil {
			t.Errorf("%q is taken: %q", bad, all)
		}
	}
}

func FuzzInvitation(f *testing.F) {
	f.Add(Invitation{Site: identity.New().ID(), Addresses: []string{"[::1]:80"}}.String())
	f.Fuzz(func(t *testing.T, text string) {
		i, err := ParseInvitation(text)
		if err != nil {
			return
		}
		again, err := ParseInvitation(i.String())
		if err != nil || again.String() != i.String() {
			t.Fatalf("%q is %q: %v", text, i, err)
		}
	})
}
