package node

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// approveWithin limits the wait of a request for an owner, unless Parts.ApprovalWait is longer, and after the
// approval for its caller: a yes is for what the owner saw, and does not lie about.
const approveWithin = 2 * time.Minute

// Request is a move that waits for an owner's word.
type Request struct {
	Handle string
	Who    string
	Tool   string
	Args   []byte   // JSON
	Via    []string // through whom Who asks: an agent for a task of somebody
	Left   time.Duration
	Holds  time.Duration // how long a move would hold its output now, within all limits; 0 for any other call
}

// requests are the calls that wait for an owner's approval, and the wishes for more permission, by handle. A
// request for approval is bound to its principal, to the chain of callers through which that asks, and to its
// exact arguments. An agent asks for many; the owner only answers by the handle. They are in memory only.
type requests struct {
	wait time.Duration // for an owner

	mu  sync.Mutex
	all map[string]*request
}

type request struct {
	asked  Asked
	holds  time.Duration
	place  Place
	until  time.Time
	answer answer
	// answered is closed when an owner has answered, or it is over.
	answered chan struct{}
	wish     *wish        // nil of a call that waits for approval
	may      func() error // why its caller may not make that call any more; nil of a wish
}

type answer byte

const (
	unanswered answer = iota
	yes
	no
)

func (r *request) same(a Asked) bool {
	return r.wish == nil && r.asked.Who == a.Who && r.asked.Tool == a.Tool &&
		bytes.Equal(r.asked.Args, a.Args) && slices.Equal(r.asked.Via, a.Via)
}

// ask takes an owner's yes to the call, which holds once, and returns how long a move may hold its output by
// it: no longer than the owner was told. Otherwise it returns an *agents.ApprovalNeeded, or why there is no more
// to wait for. Nothing that the caller answers to any question is looked at.
func (all *requests) ask(
	a Asked, holds time.Duration, handle string, may func() error, take func() (Place, error),
) (approved time.Duration, err error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.forget()
	r := all.all[handle]
	if handle == "" {
		for h, other := range all.all {
			if other.same(a) {
				handle, r = h, other
			}
		}
	}
	switch {
	case r == nil && handle != "":
		return 0, device.Faultf(device.Expired,
			"nobody approved this in time, or it was made already; call again without requestState to ask anew")
	case r == nil:
		if handle, r, err = all.begin(a, all.wait, take); err != nil {
			return 0, err
		}
		r.holds, r.may = holds, may
	case !r.same(a):
		return 0, device.Faultf(device.Denied,
			"this approval was asked for another call, or by somebody else; call again without requestState")
	case r.answer == yes:
		all.drop(handle)
		return min(holds, r.holds), nil
	case r.answer == no:
		return 0, device.Faultf(device.Denied, "the owner said no")
	}
	r.holds = min(holds, r.holds)
	then := "make the very same call again"
	if slices.ContainsFunc(a.Via, func(by string) bool { return strings.HasPrefix(by, viaTask) }) {
		then = "the task goes on by itself"
	}
	return 0, &agents.ApprovalNeeded{State: handle, Says: fmt.Sprintf(
		"an owner has to approve this within %v, with agentsite approve %s on the site's own machine, or elsewhere with "+
			"--site; then %s", device.FormatDuration(time.Until(r.until).Round(time.Second)), handle, then)}
}

// forget drops the requests that are over. The lock is held.
func (all *requests) forget() {
	for h, r := range all.all {
		if time.Until(r.until) <= 0 {
			all.drop(h)
		}
	}
}

// recheck drops the requests whose callers may not make their calls any more, after permissions have ended.
func (all *requests) recheck() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for h, r := range all.all {
		if r.may == nil {
			continue
		}
		if err := r.may(); err != nil && device.AsFault(err).Kind == device.Denied {
			all.drop(h)
		}
	}
}

// drop ends a request. The lock is held.
func (all *requests) drop(handle string) {
	r := all.all[handle]
	r.place.Leave()
	if delete(all.all, handle); r.answer == unanswered {
		close(r.answered)
	}
}

// begin makes a request. The lock is held.
func (all *requests) begin(a Asked, within time.Duration, take func() (Place, error)) (string, *request, error) {
	place, err := take()
	if err != nil {
		return "", nil, err
	}
	if all.all == nil {
		all.all = make(map[string]*request)
	}
	handle := rand.Text()
	r := &request{asked: a, place: place, until: time.Now().Add(within), answered: make(chan struct{})}
	all.all[handle] = r
	return handle, r, nil
}

// Requests are those that wait for an owner, the oldest first. Only an owner sees them.
func (n *Node) Requests(p agents.Principal) ([]Request, error) {
	if err := owner(p); err != nil {
		return nil, err
	}
	return n.requests.waiting(""), nil
}

// waiting returns the requests without an answer, the oldest first; those of one principal
// where who is not "".
func (all *requests) waiting(who string) (out []Request) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.forget()
	for h, r := range all.all {
		if r.wish == nil && r.answer == unanswered && (who == "" || r.asked.Who == who) {
			out = append(out, Request{h, r.asked.Who, r.asked.Tool, r.asked.Args, r.asked.Via, time.Until(r.until), r.holds})
		}
	}
	slices.SortFunc(out, func(a, b Request) int { return cmp.Or(cmp.Compare(a.Left, b.Left), cmp.Compare(a.Handle, b.Handle)) })
	return out
}

// Approve says an owner's yes to a request, which then holds for one such call, or no. A wish takes no yes.
func (n *Node) Approve(p agents.Principal, handle string, ok bool) error {
	if err := owner(p); err != nil {
		return err
	}
	may := func() error {
		if !n.owns(p) {
			return device.Faultf(device.Denied, "the owner who allowed this is none any more")
		}
		return nil
	}
	return n.decide(p, handle, ok, may, func(*request) error { return nil })
}

// decide answers a request, unless check refuses it, and journals that p did. A yes ends when p may not say it any
// more.
func (n *Node) decide(p agents.Principal, handle string, ok bool, may func() error, check func(*request) error) error {
	n.requests.mu.Lock()
	defer n.requests.mu.Unlock()
	n.requests.forget()
	r := n.requests.all[handle]
	if r == nil || r.answer != unanswered {
		return device.Faultf(device.Invalid, "no request %.60q waits for an answer; agentsite approve lists those that do", handle)
	}
	if err := check(r); err != nil {
		return err
	}
	if ok && r.wish != nil {
		return device.Faultf(device.Invalid,
			"%.60q asks for a permission, which agentsite token change gives: agentsite approve lists how", handle)
	}
	word, within := "deny", approveWithin
	if r.answer = no; ok {
		r.answer, word = yes, "approve"
		callers := r.may
		r.may = func() error { return cmp.Or(callers(), may()) }
	}
	if r.wish != nil {
		within = wishTime
	}
	r.until = time.Now().Add(within)
	close(r.answered)
	n.hub.Announce(agents.Change{Approvals: true})
	about, err := json.Marshal(struct {
		Who  string         `json:"who"`
		Tool string         `json:"tool"`
		Args jsontext.Value `json:"arguments"`
		Via  []string       `json:"via,omitzero"`
	}{r.asked.Who, r.asked.Tool, jsontext.Value(r.asked.Args), r.asked.Via})
	if err != nil {
		return err
	}
	n.journal.Add(Asked{Who: p.ID, Tool: word, Args: about}, Outcome{})
	return nil
}

// Own runs an owner's method, and journals it.
func (n *Node) Own(p agents.Principal, method, about string, do func() error) error {
	if err := owner(p); err != nil {
		return err
	}
	err := do()
	a := Asked{Who: p.ID, Tool: method}
	if about != "" {
		a.Args, _ = json.Marshal(map[string]string{"name": about}) // a name of an output; if it is not UTF-8, it names none
	}
	n.journal.Add(a, outcome(nil, err))
	return err
}

func owner(p agents.Principal) error {
	if err := known(p); err != nil {
		return err
	}
	if !p.Owner {
		return device.Faultf(device.Denied, "only an owner may do this, with agentsite on the site's own machine")
	}
	return nil
}
