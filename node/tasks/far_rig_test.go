package tasks

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
)

// shed is the tasks of another site, whose agents do what the text of the request says. It goes on
// when the site of a test crashes.
type shed struct {
	house  *house
	length time.Duration // of a task
	// knows reports whether a text was asked for before, in another process; nil for never.
	knows func(text string) bool

	mu       sync.Mutex
	byKey    map[string]*farTask
	asks     []task.Request
	away     bool
	lost     bool // the answers
	slow     time.Duration
	wrong    error
	refused  error
	needs    int        // approvals that are asked for before a task is taken
	ends     task.State // of the tasks that are asked for now; "" for a task that goes on
	question bool
	result   jsontext.Value
	canceled []string // IDs
	flood    bool
	panics   bool
}

type farTask struct {
	task.Task
	until time.Time
}

func newShed(h *house) *shed {
	return &shed{house: h, length: time.Minute, byKey: map[string]*farTask{}, ends: task.Completed}
}

// off reports whether the machine that asks is off, so that nothing leaves it.
func (h *house) off() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dead != nil && h.dead()
}

func (s *shed) of(string) Elsewhere { return s }

var (
	errAway = device.Faultf(device.Offline, "shed is not reached")
	errLost = device.Faultf(device.UnknownOutcome, "shed gave no answer")
)

// change changes the site while it is asked.
func (s *shed) change(how func(*shed)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(s)
}

func (s *shed) Ask(ctx context.Context, site string, r task.Request) (task.Task, error) {
	got, err := s.take(r)
	if s.slow > 0 && device.Sleep(ctx, s.slow) != nil {
		return task.Task{}, errLost
	}
	return got, err
}

func (s *shed) take(r task.Request) (task.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks = append(s.asks, r)
	switch {
	case s.panics:
		panic("a defect")
	case s.away:
		return task.Task{}, errAway
	case s.wrong != nil:
		return task.Task{}, s.wrong
	case s.needs > 0 && r.Approval == "":
		return task.Task{}, &agents.ApprovalNeeded{Says: "approve", State: "far"}
	case s.needs > 0:
		if s.needs--; s.needs > 0 {
			return task.Task{}, &agents.ApprovalNeeded{Says: "approve", State: "far"}
		}
	}
	t := s.byKey[*r.Key]
	if t == nil {
		t = &farTask{task.Task{ID: rand.Text(), State: task.Working}, time.Now().Add(s.length)}
		if s.knows == nil || !s.knows(r.Text) {
			if s.house.off() {
				return task.Task{}, errLost
			}
			s.house.mu.Lock()
			if s.house.act != nil {
				s.house.act(*r.Key, r.Text)
			}
			s.house.done[r.Text]++
			s.house.mu.Unlock()
		}
		s.byKey[*r.Key] = t
	}
	if s.lost {
		return task.Task{}, errLost
	}
	return t.Task, nil
}

// find returns a task as it is now. The lock is held.
func (s *shed) find(id string) *farTask {
	for _, t := range s.byKey {
		if t.ID == id {
			if s.question {
				t.State = task.InputRequired
			}
			if s.ends != "" && !t.State.Ended() && !time.Now().Before(t.until) {
				t.State, t.Result = s.ends, s.result
				if s.ends == task.Failed {
					t.Fault = string(device.Busy)
				}
			}
			return t
		}
	}
	return nil
}

func (s *shed) Refused(string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func (s *shed) Watch(ctx context.Context, _, id string, emit func(task.Task) error) error {
	for {
		s.mu.Lock()
		away, wrong, flood, t := s.away, s.wrong, s.flood, s.find(id)
		if t == nil && s.knows != nil { // it was asked for by another process
			t = &farTask{Task: task.Task{ID: id, State: task.Completed}}
		}
		var now task.Task
		if t != nil {
			now = t.Task
		}
		s.mu.Unlock()
		switch {
		case away:
			return errAway
		case wrong != nil:
			return wrong
		case t == nil:
			return device.Faultf(device.Invalid, "shed has no such task")
		}
		if err := emit(now); err != nil || now.State.Ended() {
			return err
		}
		if !flood {
			if err := device.Sleep(ctx, min(s.length, 5*time.Second)); err != nil {
				return err
			}
		}
	}
}

func (s *shed) Cancel(_ context.Context, _, id string) (task.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(id)
	switch {
	case s.away || s.lost || s.house.off():
		return task.Task{}, errAway
	case t == nil:
		return task.Task{}, errors.New("none")
	}
	s.canceled = append(s.canceled, id)
	if !t.State.Ended() {
		t.State = task.Canceled
	}
	return t.Task, nil
}
