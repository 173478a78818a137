package node

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// farSite is another site, whose output is moved as move says.
type farSite struct {
	agents.Site
	move func(agents.MoveRequest) (agents.Output, error)
}

func (f *farSite) Away(string) error { return nil }

func (f *farSite) Move(_ context.Context, _ agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	return f.move(r)
}

// TestRecallElsewhere: an output of another site that an agent moves for an asker returns to safe when
// the asker's permission ends, also if that happens during the move, and if the move was not answered.
func TestRecallElsewhere(t *testing.T) {
	for _, when := range []string{"after", "during", "unanswered"} {
		synctest.Test(t, func(t *testing.T) {
			const output = "shed/lever/a"
			beds := agents.Principal{ID: "llm:beds"}
			d := newDesk()
			l := &leaves{may: map[string][]string{beds.ID: {"set_level " + output}, "remote:shed": {"set_level " + output}, ann.ID: {"ask_agent beds", "set_level " + output}}}
			d.SetAccess(l)
			d.SetHosted(map[string]Hosted{beds.ID: {}})
			away := false
			revoke := func() {
				l.may[ann.ID] = nil
				d.Recheck()
				synctest.Wait()
			}
			far := &farSite{}
			far.move = func(r agents.MoveRequest) (agents.Output, error) {
				if away = !r.Value.IsZero(); away && when == "during" {
					revoke()
				}
				if away && when == "unanswered" {
					return agents.Output{}, device.Faultf(device.UnknownOutcome, "no answer")
				}
				return agents.Output{Output: r.Output, Value: r.Value, Left: 300}, nil
			}
			d.SetOtherSites("remote", func(string) OtherSites { return far })
			r := agents.MoveRequest{Output: output, Value: device.Number(1)}
			r.Behalf.Asker = ann
			_, err := d.Node.Move(t.Context(), beds, r)
			if when == "after" && err != nil {
				t.Fatal(err)
			}
			if when != "during" {
				if !away {
					t.Fatal("it was not moved: ", err)
				}
				revoke()
			}
			time.Sleep(time.Second)
			if synctest.Wait(); away {
				t.Errorf("revoked %s the move: it stays away from safe", when)
			}
		})
	}
}
