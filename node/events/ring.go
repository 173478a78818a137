package events

import (
	"slices"
	"sync"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/occurrence"
)

// maxRing bounds the occurrences that can be replayed. They are in memory only.
const maxRing = 256

// maxText bounds a text of others in an event.
const maxText = 200

// ring keeps the newest occurrences, numbered. It watches nothing before it is joined.
type ring struct {
	once sync.Once

	mu    sync.Mutex
	next  uint64 // number of the next one
	all   []occurrence.Occurrence
	began map[string]bool // by key: its end is told
	wakes map[int]func()
	wake  int
}

// names are the types of the kinds that the ring keeps.
var names = map[occurrence.Kind]string{
	occurrence.Stop: StopChanged, occurrence.Device: DeviceChanged, occurrence.Task: TaskChanged,
	occurrence.Approval: ApprovalWaits,
}

func (r *ring) join(from *occurrence.Source) {
	r.once.Do(func() { from.JoinTasks(r.add) })
}

// add takes an occurrence. The end of what did not begin is none: it is told after each start.
func (r *ring) add(o occurrence.Occurrence) {
	if names[o.Kind] == "" {
		return
	}
	o.Because, o.Asks = device.Clip(o.Because, maxText), device.Clip(o.Asks, maxText)
	o.Args = []byte(device.Clip(string(o.Args), maxText))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch o.State {
	case occurrence.Begins:
		if r.began == nil {
			r.began = make(map[string]bool)
		}
		r.began[o.Key()] = true
	case occurrence.Ends:
		if !r.began[o.Key()] {
			return
		}
		delete(r.began, o.Key())
	}
	if len(r.all) == maxRing {
		r.all = slices.Delete(r.all, 0, 1)
	}
	r.all = append(r.all, o)
	r.next++
	for _, wake := range r.wakes {
		wake()
	}
}

// after returns the occurrences from a number on, and whether these are all.
func (r *ring) after(number uint64) (all []occurrence.Occurrence, next uint64, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.next - uint64(len(r.all))
	if whole = number >= first && number <= r.next; !whole {
		number = first
	}
	return slices.Clone(r.all[number-first:]), r.next, whole
}

// on has wake called after each occurrence, until leave is called.
func (r *ring) on(wake func()) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wakes == nil {
		r.wakes = make(map[int]func())
	}
	r.wake++
	id := r.wake
	r.wakes[id] = wake
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.wakes, id)
	}
}

// occurred returns the data of an occurrence as a caller is told of it; nil for one that it is not told of.
func (pl *plan) occurred(o *occurrence.Occurrence, p agents.Principal, owner bool) any {
	a := &pl.args
	if names[o.Kind] != pl.name {
		return nil
	}
	switch o.Kind {
	case occurrence.Stop:
		return stopped{o.State == occurrence.Begins}
	case occurrence.Device:
		if a.Device != "" && a.Device != o.Of || !slices.Contains(pl.devices, o.Of) {
			return nil
		}
		state := "lost"
		if o.State == occurrence.Ends {
			state = "back"
		}
		because := o.Because
		if o.Point != "" && !slices.ContainsFunc(pl.readable, func(p agents.Point) bool { return p.Point == o.Point }) {
			because = "" // the words about a point that the caller may not read
		}
		return deviceData{o.Of, state, because}
	case occurrence.Task:
		if !owner && o.Who != p.ID || a.Task != "" && a.Task != o.Of || a.Agent != "" && a.Agent != o.Agent {
			return nil
		}
		return taskData{o.Of, o.Agent, o.Step, o.Asks}
	case occurrence.Approval:
		if !owner && o.Who != p.ID {
			return nil
		}
		return approvalData{o.Of, o.Tool, string(o.Args), o.Who, o.Left.Seconds()}
	}
	return nil
}

type stopped struct {
	Stopped bool `json:"stopped"`
}

type deviceData struct {
	Device  string `json:"device"`
	State   string `json:"state"`
	Because string `json:"because,omitzero"`
}

type taskData struct {
	Task  string `json:"task"`
	Agent string `json:"agent"`
	State string `json:"state"`
	Asks  string `json:"asks,omitzero"`
}

type approvalData struct {
	Handle string  `json:"handle"`
	Tool   string  `json:"tool"`
	Args   string  `json:"arguments,omitzero"`
	Caller string  `json:"caller,omitzero"`
	Left   float64 `json:"seconds_left,omitzero"`
}
