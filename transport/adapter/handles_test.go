package adapter

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// TestHandles: a handle is its principal's, ends once, and makes room for the next one.
func TestHandles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := Handles[int]{What: "talk", Life: time.Minute, Each: 2, All: 3}
		ann, bob := agents.Principal{ID: "ann"}, agents.Principal{ID: "bob"}
		kind := func(p agents.Principal, id string) string {
			var none ErrNotFound
			v, err := h.Get(p, id)
			if errors.As(err, &none) {
				return "none"
			} else if err != nil {
				return string(device.AsFault(err).Kind)
			}
			return fmt.Sprint(v)
		}
		expect := func(p agents.Principal, id, want string) {
			t.Helper()
			if got := kind(p, id); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		one, ends := h.Add(ann, "a", 1)
		if left := time.Until(ends); left != time.Minute {
			t.Error(left)
		}
		two, _ := h.Add(ann, "a", 2)
		expect(ann, one, "1")
		expect(bob, one, "none")
		h.Drop(bob, one)
		expect(ann, one, "1")
		three, _ := h.Add(ann, "a", 3) // in place of its account's oldest
		expect(ann, one, "none")
		bobs, _ := h.Add(bob, "b", 4)
		carls, _ := h.Add(agents.Principal{ID: "carl"}, "c", 5) // in place of the oldest of the account with most
		expect(ann, two, "none")
		expect(ann, three, "3")
		expect(bob, bobs, "4")
		h.Drop(bob, bobs)
		expect(bob, bobs, "none")
		time.Sleep(time.Minute)
		expect(ann, three, "expired")
		expect(ann, three, "none")
		h.Add(bob, "b", 6)
		if len(h.held) != 1 {
			t.Errorf("%d are kept, of which one has not ended: %s", len(h.held), carls)
		}
	})
}
