package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/transport/mcp/client"
)

func contacts(n int) (all []peer.Contact) {
	for i := range n {
		all = append(all, peer.Contact{Name: fmt.Sprintf("site-%02d", i), Owner: true})
	}
	return all
}

// TestEachIsNotDelayed: sites that never answer, and ignore their context, do not delay the others.
func TestEachIsNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const dead = 20 // more than are called at once
		over := make(chan struct{})
		defer synctest.Wait()
		defer close(over)
		begun := time.Now()
		var last []string
		var answeredAt time.Duration
		results := each(t.Context(), contacts(50), Options{Changes: true, Progress: func(waiting []string) {
			if last = slices.Clone(waiting); len(waiting) == dead {
				answeredAt = time.Since(begun)
			}
		}}, func(ctx context.Context, k peer.Contact, connected func()) (string, error) {
			if connected(); k.Name < "site-10" {
				<-over
				return "", nil
			} else if k.Name < "site-20" {
				<-ctx.Done()
				return "", ctx.Err()
			}
			time.Sleep(100 * time.Millisecond)
			return k.Name, nil
		})
		if took := time.Since(begun); took > DefaultTimeout+2*slowAfter+unwindTime {
			t.Errorf("all took %v", took)
		}
		if answeredAt == 0 || answeredAt > 3*slowAfter {
			t.Errorf("those that answer took %v", answeredAt)
		}
		if len(last) != 0 {
			t.Errorf("%v are waited for", last)
		}
		for i, r := range results {
			if i >= dead && (r.Err != nil || r.Value != r.Site.Name || !r.Answered()) {
				t.Errorf("%s: %q, %v", r.Site.Name, r.Value, r.Err)
			}
			if i < dead && (r.Kind() != string(device.UnknownOutcome) || r.Answered()) {
				t.Errorf("%s: %v", r.Site.Name, r.Err)
			}
		}
	})
}

func TestEachBoundsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running, most := make(chan int, 1), 0
		running <- 0
		each(t.Context(), contacts(50), Options{}, func(context.Context, peer.Contact, func()) (struct{}, error) {
			n := <-running + 1
			most = max(most, n)
			running <- n
			time.Sleep(slowAfter / 2)
			running <- <-running - 1
			return struct{}{}, nil
		})
		if most != atOnce {
			t.Errorf("%d sites were called at once", most)
		}
	})
}

func TestEachEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, cancel)
		o := Options{Timeout: time.Hour}
		results := each(ctx, contacts(3), o, func(ctx context.Context, _ peer.Contact, _ func()) (struct{}, error) {
			<-ctx.Done()
			return struct{}{}, ctx.Err()
		})
		for _, r := range results {
			if !errors.Is(r.Err, context.Canceled) {
				t.Errorf("%s: %v", r.Site.Name, r.Err)
			}
		}
	})
}

// TestNotConnected: a call of a site that was not reached has no unknown outcome.
func TestNotConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := func(ctx context.Context, _ peer.Contact, _ func()) (struct{}, error) {
			<-ctx.Done()
			return struct{}{}, ctx.Err()
		}
		for _, r := range each(t.Context(), contacts(2), Options{Changes: true}, wait) {
			if r.Kind() != string(device.Offline) {
				t.Errorf("%s: %v", r.Site.Name, r.Err)
			}
		}
	})
}

func TestKindOf(t *testing.T) {
	for _, c := range []struct {
		err      error
		kind     string
		answered bool
	}{
		{nil, "", true},
		{&agents.Unreached{Err: errors.New("no route")}, "offline", false},
		{&Silent{After: time.Second}, "offline", false},
		{&Silent{After: time.Second, Unknown: true}, "unknown_outcome", false},
		{&client.RequestError{Kind: "denied"}, "denied", true},
		{fmt.Errorf("asked: %w", &client.ToolError{Kind: "offline"}), "offline", true},
		{&client.RequestError{}, "internal", true},
		{device.Faultf(device.Invalid, "the site sent no backup"), "invalid", true},
		{errors.New("EOF"), "internal", false},
	} {
		if r := (Result[int]{Err: c.err}); r.Kind() != c.kind || r.Answered() != c.answered {
			t.Errorf("%v is %q, answered %v", c.err, r.Kind(), r.Answered())
		}
	}
}
