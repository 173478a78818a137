package access

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
)

func TestOwners(t *testing.T) {
	k := keys(12)
	s := shelf{}
	b := s.open(t, k[0].ID())
	secret, err := b.ClaimSecret()
	wants(t, err, "")
	b = s.open(t, k[0].ID())
	s.full = errors.New("disk full")
	if again, err := b.ClaimSecret(); err != nil || again != secret {
		t.Error("the secret is another after a start, or takes a disk", err)
	}
	if b.Claimed() {
		t.Error("it is claimed")
	}
	wants(t, b.Claim(Owner{ID: k[1].ID()}), "disk full")
	s.full = nil
	if b.Claimed() {
		t.Error("it is claimed, and a start would forget it")
	}
	wants(t, b.Claim(Owner{}), "anybody can sign")
	wants(t, b.Claim(Owner{ID: k[1].ID(), Name: "ann"}), "")
	wants(t, b.Claim(Owner{ID: k[2].ID()}), "has an owner already")
	_, err = b.ClaimSecret()
	wants(t, err, "has an owner already")
	if bytes.Contains(s.book, secret[:]) {
		t.Error("the secret is still kept")
	}
	wants(t, b.RemoveOwner(k[1].ID()), "the last owner")
	wants(t, b.RemoveOwner(k[2].ID()), "not an owner")
	for i := range maxOwners - 1 {
		wants(t, b.AddOwner(Owner{ID: k[2+i].ID()}), "")
	}
	wants(t, b.AddOwner(Owner{ID: k[2].ID()}), "") // again
	wants(t, b.AddOwner(Owner{ID: k[11].ID()}), "8 owners")
	g := grant(t, "set fan", k[2], k[11])
	_, err = may(b, who(k[11]), setFan(), g)
	wants(t, err, "")
	wants(t, b.RemoveOwner(k[2].ID()), "")
	_, err = may(b, who(k[11]), setFan(), g)
	wants(t, err, "not an owner")
}

// TestRecovery: the holder of the code becomes the only owner, and wrong codes keep nobody waiting.
func TestRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(5)
		s := shelf{}
		b := s.open(t, k[0].ID())
		_, err := b.NewRecovery()
		wants(t, err, "no owner yet")
		wants(t, b.Recover(t.Context(), "", Owner{ID: k[4].ID()}), "wrong recovery code")
		wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
		wants(t, b.AddOwner(Owner{ID: k[2].ID()}), "")
		void, err := b.NewRecovery()
		wants(t, err, "")
		code, err := b.NewRecovery()
		wants(t, err, "")
		if len(code) != 39 || bytes.Contains(s.book, []byte(code)) {
			t.Error(code)
		}
		g := grant(t, "set fan", k[1], k[3])
		b = s.open(t, k[0].ID())
		ended := 0
		b.Options.OnEnd = func() { ended++ }

		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		begin := time.Now()
		for _, wrong := range []string{"", void, strings.Repeat("0", 32), code + "00", code + "x", code[:37], "-"} {
			all.Go(func() {
				if err := b.Recover(ctx, wrong, Owner{ID: k[4].ID()}); err != errCode {
					t.Error(wrong, err)
				}
			})
		}
		all.Wait()
		if took := time.Since(begin); took != 7*time.Second {
			t.Errorf("seven wrong codes took %v", took)
		}
		for range 1000 {
			all.Go(func() { b.Recover(ctx, void, Owner{ID: k[4].ID()}) })
		}
		synctest.Wait()
		if b.guesses.waiting != maxGuesses || ended != 0 {
			t.Error(b.guesses.waiting, "wait;", ended)
		}
		begin = time.Now()
		_, err = may(b, who(k[3]), setFan(), g)
		wants(t, err, "")
		s.full = errors.New("disk full")
		wants(t, b.Recover(ctx, code, Owner{ID: k[4].ID()}), "disk full")
		s.full = nil
		wants(t, b.Recover(ctx, strings.ToUpper(code), Owner{ID: k[4].ID()}), "")
		if o := b.Owners(); len(o) != 1 || o[0].ID != k[4].ID() || time.Since(begin) != 0 || ended != 1 {
			t.Error(o, time.Since(begin), ended)
		}
		_, err = may(b, who(k[3]), setFan(), g)
		wants(t, err, "not an owner")
		cancel()
		all.Wait()
		wants(t, b.Recover(ctx, code, Owner{ID: k[2].ID()}), "or it was used")
	})
}

// TestRestored: uses that a restored copy does not know count as used up, also for grants that the
// site never saw, until the site has run for long enough.
func TestRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(3)
		for _, before := range []time.Duration{0, 90 * time.Minute} {
			s := shelf{}
			b := s.open(t, k[0].ID())
			wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
			if before > 0 {
				time.Sleep(before)
				wants(t, b.Save(), "")
			}
			var err error
			s.meter, err = RestoreCounts(s.meter)
			wants(t, err, "")
			b = s.open(t, k[0].ID())
			g := grant(t, "set fan 2/h, set pump", k[1], k[2])
			take := func(point string) error {
				_, err := take(b, who(k[2]), agents.Ask{Tool: "switch_output", Points: []string{point}}, g)
				return err
			}
			wants(t, take("pump/on"), "") // without a rate
			wants(t, take("fan/on"), "rate is used up")
			time.Sleep(time.Hour - time.Second)
			wants(t, b.Save(), "")
			b = s.open(t, k[0].ID())
			time.Sleep(time.Second)
			wants(t, take("fan/on"), "used up: again in 1s")
			time.Sleep(time.Second)
			wants(t, take("fan/on"), "")
			wants(t, take("fan/on"), "")
			wants(t, take("fan/on"), "rate is used up")
		}
		_, err := RestoreCounts([]byte("hello"))
		wants(t, err, "cannot be read")
		late := rateCounter{before: time.Hour, since: time.Hour + 2, uses: map[use]*usage{}}
		text, err := late.encode(0, nil, built, false)
		wants(t, err, "")
		_, err = RestoreCounts(text)
		wants(t, err, "damaged")
	})
}
