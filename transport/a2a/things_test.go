package a2a

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/node"
)

// TestWaitingBounded: a caller with many calls that wait for an owner loses the oldest of its own,
// and evicts none of another's.
func TestWaitingBounded(t *testing.T) {
	hub := node.NewHub(nil, nil, agents.PointURI)
	h := newThings(node.New(node.Parts{Hub: hub}), time.Now)
	wait := func(who, id string) {
		do := func(context.Context) (any, error) { return nil, errors.New("not approved") }
		h.wait(&call{who: agents.Principal{ID: who}}, &agents.ApprovalNeeded{State: id}, do)
	}
	wait("ann", "first")
	for i := range 2 * maxWaiting {
		wait("bob", strconv.Itoa(i))
	}
	if _, err := h.find(agents.Principal{ID: "ann"}, "first"); err != nil {
		t.Error(err)
	}
	if all, err := h.List(t.Context(), agents.Principal{ID: "bob"}); err != nil || len(all) != maxOwn {
		t.Errorf("%d, %v", len(all), err)
	}
	if _, err := h.find(agents.Principal{ID: "bob"}, strconv.Itoa(2*maxWaiting-1)); err != nil {
		t.Error(err)
	}
	all := 0
	for i := range 2 * maxWaiting {
		wait("p"+strconv.Itoa(i), "of "+strconv.Itoa(i))
	}
	for i := range 2 * maxWaiting {
		all += len(h.waiting.Of(agents.Principal{ID: "p" + strconv.Itoa(i)}))
	}
	all += len(h.waiting.Of(agents.Principal{ID: "ann"})) + len(h.waiting.Of(agents.Principal{ID: "bob"}))
	if all > maxWaiting {
		t.Errorf("%d wait", all)
	}
	if _, err := h.find(agents.Principal{ID: "p511"}, "of 511"); err != nil {
		t.Error(err)
	}
}
