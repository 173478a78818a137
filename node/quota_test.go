package node

import (
	"fmt"
	"testing"

	"agentsite/agents"
	"agentsite/device"
)

// TestQuotas: any number of keys that one grant was delegated to share the quota of one account,
// and use up nothing of an owner, this machine or another grant.
func TestQuotas(t *testing.T) {
	d, l := seenDesk()
	l.roots = make(map[string]string)
	key := func(root, i int) agents.Principal {
		p := agents.Principal{ID: fmt.Sprint("did:key:", root, "-", i)}
		l.roots[p.ID] = fmt.Sprint("did:key:", root)
		return p
	}
	const hostile, keys, honest = 5, 8, 100
	for q := range quotas {
		b, accounts := bounds[q], 1 // of one grant
		if q == Returns || q == Stops {
			accounts = keys
		}
		held := 0
		var places []Place
		for root := range hostile {
			own := 0
			for i := range 200 {
				if place, err := d.Hold(key(root, i%keys), q); err == nil {
					places = append(places, place)
					own++
				} else if device.AsFault(err).Kind != device.Busy {
					t.Fatal(err)
				}
			}
			if own < accounts*b.own || own > accounts*b.most {
				t.Errorf("%s: %d for one grant, want %d to %d", b.what, own, accounts*b.own, accounts*b.most)
			}
			held += own
		}
		if most := hostile*accounts*b.own + b.common; held > most {
			t.Errorf("%s: %d for all, want at most %d", b.what, held, most)
		}
		for root := range honest {
			for range b.own {
				place, err := d.Hold(key(hostile+root, 0), q)
				if err != nil {
					t.Fatalf("%s: another grant is refused: %v", b.what, err)
				}
				places = append(places, place)
			}
		}
		for _, p := range []agents.Principal{own, LocalAgent, siteToken, {ID: "did:key:owner", Owner: true}} {
			for range b.reserved {
				place, err := d.Hold(p, q)
				if err != nil {
					t.Fatalf("%s: %s is refused: %v", b.what, p.ID, err)
				}
				places = append(places, place)
			}
			if _, err := d.Hold(p, q); err == nil {
				t.Errorf("%s: %s has no bound", b.what, p.ID)
			}
		}
		for _, p := range places {
			p.Leave()
		}
		if n := len(d.held[q].held); n != 0 {
			t.Errorf("%s: %d accounts still hold something", b.what, n)
		}
	}
}

// TestReplays: a caller that replays the past without an end waits for itself, and does not fill the queue for the slots.
func TestReplays(t *testing.T) {
	d, _ := seenDesk()
	for range bounds[replays].most {
		place, err := d.Hold(shy, replays)
		if err != nil {
			t.Fatal(err)
		}
		defer place.Leave()
	}
	if _, err := d.ReadPast(t.Context(), shy); device.AsFault(err).Kind != device.Busy {
		t.Errorf("one more: %v", err)
	}
	for range 3 { // each place is given back
		leave, err := d.ReadPast(t.Context(), agents.Principal{ID: "did:key:other"})
		if err != nil {
			t.Fatal(err)
		}
		leave()
	}
	if n := len(d.held[replays].held); n != 1 {
		t.Errorf("%d accounts hold places", n)
	}
}

// TestStopBesideCalls: running calls keep no caller from a return to safe, their own caller
// included.
func TestStopBesideCalls(t *testing.T) {
	d, _ := seenDesk()
	for range bounds[Calls].most {
		place, err := d.Hold(shy, Calls)
		if err != nil {
			break
		}
		defer place.Leave()
	}
	if says, _ := d.ask(shy, 0); says == "" || device.FaultKind(says[:min(4, len(says))]) == device.Busy {
		t.Error(says)
	}
	if says, _ := d.ask(shy, 1); len(says) < 4 || says[:4] != string(device.Busy) {
		t.Errorf("a move finds a place where there is none: %s", says)
	}
}

// TestStopBesideReturns: keys to which a grant was passed on, and that return outputs to safe
// without an end, keep nobody with that grant from it.
func TestStopBesideReturns(t *testing.T) {
	d, l := seenDesk()
	l.roots = make(map[string]string)
	for i := range 8 {
		id := fmt.Sprint("did:key:", i)
		l.roots[id] = shy.ID
		for range bounds[Returns].most {
			place, err := d.Hold(agents.Principal{ID: id}, Returns)
			if err != nil {
				break
			}
			defer place.Leave()
		}
	}
	if says, _ := d.ask(shy, 0); says == "" || device.FaultKind(says[:min(4, len(says))]) == device.Busy {
		t.Error(says)
	}
}

// TestStopBesideOwnReturns: a caller with the maximum number of waiting returns to safe can still
// stop everything.
func TestStopBesideOwnReturns(t *testing.T) {
	d, _ := seenDesk()
	stop := agents.Ask{Op: agents.OpStop, Effect: agents.Returns}
	for _, p := range []agents.Principal{shy, own, LocalAgent} {
		for range 2 * bounds[Returns].most {
			if place, err := d.Hold(p, quotaOf(agents.Ask{Op: agents.OpMove, Effect: agents.Returns})); err == nil {
				defer place.Leave()
			}
		}
		place, err := d.Hold(p, quotaOf(stop))
		if err != nil {
			t.Fatal(p.ID, err)
		}
		place.Leave()
	}
	for _, name := range []string{agents.OpStop.Tool(), "release_output"} {
		if q := quotaOf(agents.Ask{Tool: name}); q != Calls {
			t.Errorf("a hosted agent's tool %s counts as %d", name, q)
		}
	}
}

// TestApprovalsByRoot: one who passes a grant on to many keys fills no more than its own.
func TestApprovalsByRoot(t *testing.T) {
	d, l := seenDesk()
	d.confirming()
	l.roots = make(map[string]string)
	for i := range 20 {
		id := fmt.Sprint("did:key:", i)
		l.may[id], l.roots[id] = l.may[shy.ID], "did:key:0"
		for to := range 10 {
			d.ask(agents.Principal{ID: id}, float64(to+1))
		}
	}
	if n := len(d.requests.all); n == 0 || n > bounds[approvals].most {
		t.Errorf("%d requests wait", n)
	}
	if says, _ := d.ask(shy, 1); len(says) < 5 || says[:5] != "needs" {
		t.Errorf("another is refused: %s", says)
	}
}

// TestViewsAreBounded: keys that come and go leave nothing behind.
func TestViewsAreBounded(t *testing.T) {
	d, l := seenDesk()
	for i := range 4 * maxViews {
		id := fmt.Sprint("did:key:", i)
		l.may[id] = l.may[shy.ID]
		if o, err := d.Offer(t.Context(), agents.Principal{ID: id}); err != nil || len(o.Level) == 0 {
			t.Fatal(o, err)
		}
		delete(l.may, id)
	}
	if n := len(d.views.of); n > maxViews {
		t.Errorf("%d views are kept", n)
	}
}
