package access

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node/identity"
)

// unclaimed is a site that can be claimed, and its book.
func unclaimed(t *testing.T, s *shelf) (identity.Key, Secret, *Claim, *Book) {
	site := identity.New()
	b := s.open(t, site.ID())
	secret, err := b.Secret()
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
			if _, err := c.Take(t.Context(), p); err != errWrong {
				t.Errorf("%s: %v", name, err)
			}
		}
		if took := time.Since(begin); took != 8*time.Second {
			t.Errorf("eight wrong proofs took %v", took)
		}
		if b.Claimed() {
			t.Fatal("it is claimed")
		}
		answer, err := c.Take(t.Context(), good)
		if err != nil || !good.Answered(site.ID(), secret, answer) {
			t.Fatal(err)
		}
		if good.Answered(site.ID(), wrong, answer) || good.Answered(eve.ID(), secret, answer) || relayed.Answered(site.ID(), secret, answer) {
			t.Error("anybody answers")
		}
		// A replay, and another who knows the secret.
		for _, p := range []Proof{good, Prove(eve, site.ID(), secret, challenge(eve))} {
			if _, err := c.Take(t.Context(), p); err == nil || !strings.Contains(err.Error(), "has an owner already") {
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
		time.Sleep(2 * claimFresh)
		if _, err := c.Take(t.Context(), Prove(ann, site.ID(), secret, old)); err != errWrong {
			t.Error(err)
		}
		// The last moment of one challenge is in the time of the next.
		early, err := c.Challenge(ann.ID())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*claimFresh - time.Second - 1)
		lost := NewClaim(site, secret, func(identity.ID) error { return nil })
		lost.mixer, lost.opened = c.mixer, c.opened
		if _, err := lost.Take(t.Context(), Prove(ann, site.ID(), secret, early)); err != nil {
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
		if _, err := c.Take(t.Context(), Prove(ann, site.ID(), secret, late)); err != errClosed || b.Claimed() {
			t.Error(err)
		}
	})
}

// TestThousandWrong: whoever is right is let in at once, among a thousand who are not.
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
				if _, err := c.Take(ctx, Prove(eve, site.ID(), Secret{byte(n), byte(n >> 8)}, challenge)); err != errWrong {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if c.wrong.waiting != paceWaiting {
			t.Errorf("%d wait", c.wrong.waiting)
		}
		begin := time.Now()
		challenge, err := c.Challenge(ann.ID())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Take(ctx, Prove(ann, site.ID(), secret, challenge)); err != nil || time.Since(begin) != 0 || !b.Claimed() {
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
				_, err := c.Take(t.Context(), Prove(k[i], site.ID(), secret, challenge))
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

func TestInvitation(t *testing.T) {
	site := identity.New()
	for _, i := range []Invitation{
		{Site: site.ID(), Secret: Secret{1, 2, 255}, Addresses: []string{"192.168.1.20:8473", "[fe80::1]:8473", "greenhouse.local:8473"}, Certificate: make([]byte, 32)},
		{Site: site.ID()},
	} {
		text := i.String()
		again, err := ParseInvitation(text)
		if err != nil || again.String() != text || again.Site != i.Site || again.Secret != i.Secret || len(again.Addresses) != len(i.Addresses) {
			t.Errorf("%s: %+v, %v", text, again, err)
		}
	}
	good := Invitation{Site: site.ID(), Secret: Secret{1}, Addresses: []string{"a:1"}}.String()
	for _, text := range []string{
		"", "agentsite", "https" + strings.TrimPrefix(good, "agentsite"), good[:len(good)-1], good + "A",
		strings.Replace(good, "12D3", "13D3", 1), strings.ToLower(good), strings.Replace(good, "?", "/x?", 1), strings.Replace(good, "?", "?cert=00&", 1),
		strings.Replace(good, "://", "://me@", 1), strings.Replace(good, "?", "?"+strings.Repeat("at=b&", 9), 1),
	} {
		if _, err := ParseInvitation(text); err != errInvitation {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzInvitation(f *testing.F) {
	f.Add(Invitation{Site: identity.New().ID(), Addresses: []string{"[::1]:80"}, Certificate: make([]byte, 32)}.String())
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
