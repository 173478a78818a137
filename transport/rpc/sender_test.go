package rpc

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"agentsite/agents/principal"
)

// TestSenderOfEachRequest: a stream asks who sends for each request, and once for each, so that a
// permission that begins or ends while it is open counts from the next request on.
func TestSenderOfEachRequest(t *testing.T) {
	gone := errors.New("gone")
	senders := []Sender{
		{Key: "k", Refused: gone},
		{Key: "k", Who: principal.Principal{Kind: principal.Key, ID: "k", Owner: true}},
		{Key: "k", Who: principal.Principal{Kind: principal.Key, ID: "k"}},
		{Key: "k", Refused: gone},
	}
	asked := 0
	s := &Stream{
		Dispatcher: NewDispatcher(map[string]Method{"who": func(_ context.Context, c *Call) (any, error) {
			who, err := c.Principal()
			return fmt.Sprintf("%s %v %v %s", who.ID, who.Owner, errors.Is(err, gone), c.Key), nil
		}}),
		Sender: func() Sender { asked++; return senders[asked-1] },
	}
	say, hear, hangUp := talk(t, s)
	defer hangUp()
	for i, want := range []string{" false true k", "k true false k", "k false false k", " false true k"} {
		say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"who"}`, i))
		if got, want := hear(), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"%s"}`, i, want); got != want || asked != i+1 {
			t.Errorf("asked %d times, got %s, want %s", asked, got, want)
		}
	}
}

// TestUnprovedSender: a sender of whom nothing is proved is no principal, whatever else is set.
func TestUnprovedSender(t *testing.T) {
	for _, s := range []Sender{{}, {Key: "k"}, {Who: principal.Principal{Kind: principal.Local, Owner: true}}} {
		if who, err := s.Principal(); who != (principal.Principal{}) || err == nil {
			t.Errorf("%+v is %+v", s, who)
		}
	}
}
