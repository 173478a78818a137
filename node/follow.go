package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// follower is a watch that is asked. A site has one for each rule, and each is a principal with
// a permission of its own.
type follower struct {
	valueWatch
	seen  seenWatch
	place Place
	wake  func()
	first bool
	end   sync.Once
}

// Follow is Watch of named points of this site without a goroutine, for a caller with as many
// watches as a site has rules. wake is called when next may have an update, except the first; it
// must neither block nor call the node.
//
// next returns the next update, if something changed, and when to call it again without a wake;
// zero for never. Its readings are valid until the next call. It is not safe for concurrent use.
// Its errors are those that end a Watch. wake is not called after end has returned.
func (n *Node) Follow(
	p agents.Principal, r agents.WatchRequest, wake func(),
) (next func() (u agents.Update, some bool, due time.Time, err error), end func(), err error) {
	if err := known(p); err != nil {
		return nil, nil, err
	}
	if r.Every != 0 || len(r.Points) == 0 {
		return nil, nil, device.Faultf(device.Invalid, "points: name some, and leave out every; watch them instead")
	}
	asks, place, err := n.beginWatch(p, r)
	if err != nil {
		return nil, nil, err
	}
	f := &follower{
		valueWatch: newValueWatch(n, p, r), seen: seenWatch{who: p, asks: asks}, place: place, wake: wake, first: true,
	}
	f.reuse = true
	f.notes = n.hub.watchers.JoinFunc(f.changes(), nil, wake)
	n.followers.add(n, f)
	return f.next, f.leave, nil
}

func (f *follower) next() (u agents.Update, some bool, due time.Time, err error) {
	if !f.node.holds(&f.seen) {
		return u, false, due, errRevoked
	}
	u, some, err = f.update(f.first)
	f.first = false
	if due = earliest(f.goodTill, f.answerBy, f.chargeAt); !due.IsZero() {
		due = due.Add(1)
	}
	return u, some, due, err
}

func (f *follower) leave() {
	f.end.Do(func() {
		f.notes.Leave()
		f.node.followers.remove(f)
		f.place.Leave()
	})
}

// followers are those that are woken when an output or the stop may have changed: the guard has
// one word for all of them.
type followers struct {
	mu  sync.Mutex
	all []*follower        // in the order in which they came
	end context.CancelFunc // ends wakeAll, which runs while there are any
}

func (all *followers) add(n *Node, f *follower) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.all) == 0 {
		var ctx context.Context
		ctx, all.end = context.WithCancel(context.Background())
		go n.wakeFollowers(ctx)
	}
	all.all = append(all.all, f)
}

func (all *followers) remove(f *follower) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.all = slices.DeleteFunc(all.all, func(other *follower) bool { return other == f })
	if len(all.all) == 0 {
		all.end()
	}
}

// wakeFollowers wakes the followers after each change of an output or the stop, until ctx ends.
func (n *Node) wakeFollowers(ctx context.Context) {
	notes := n.hub.watchers.Join(agents.Change{Resources: true}, nil) // there may be another guard
	defer notes.Leave()
	for {
		changed := n.site.Load().Outputs.Changed() // before they look: nothing is missed
		n.followers.mu.Lock()
		for _, f := range n.followers.all {
			f.wake()
		}
		n.followers.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-notes.C:
			notes.Take()
		}
	}
}
