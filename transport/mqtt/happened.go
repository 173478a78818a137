package mqtt

import (
	"slices"
	"strings"
	"sync/atomic"

	"agentsite/node/occurrence"

	"github.com/go-json-experiment/json"
)

// ends follows the kind of an occurrence that does not last any more.
const ends = "_ends"

// lasting are the kinds of occurrences that end.
var lasting = []occurrence.Kind{occurrence.Stop, occurrence.Device, occurrence.Supply, occurrence.PowerOff}

// eventTypes are the words for the occurrences that are told.
func (a *Agent) eventTypes() (all []string) {
	for _, kind := range a.About {
		all = append(all, kind)
		if slices.Contains(lasting, occurrence.Kind(kind)) {
			all = append(all, kind+ends)
		}
	}
	return all
}

// join has the broker told of occurrences until leave is called: not of those from before, and not of those while there
// is no connection.
func (a *Agent) join() (leave func()) {
	if a.world.Source == nil || len(a.About) == 0 {
		return func() {}
	}
	var joined atomic.Bool
	begun := make(map[string]bool) // by key; emit is called one at a time
	leave = a.world.Source.Join(func(o occurrence.Occurrence) {
		ended := o.State == occurrence.Ends
		if !slices.Contains(a.About, string(o.Kind)) || ended && !begun[o.Key()] {
			return
		}
		switch {
		case ended:
			delete(begun, o.Key())
		case o.State == occurrence.Begins:
			begun[o.Key()] = true
		}
		if joined.Load() {
			a.mu.Lock()
			b := a.bridge
			a.mu.Unlock()
			if b != nil {
				b.occurred(o)
			}
		}
	})
	joined.Store(true)
	return leave
}

// occurred tells the broker of an occurrence, without what the bridge may not read: names of devices and outputs, and
// never callers and what they ask for. It does not block.
func (b *bridge) occurred(o occurrence.Occurrence) {
	says := struct {
		Type    string  `json:"event_type"` // as an event entity of Home Assistant takes it
		Of      string  `json:"of,omitzero"`
		Because string  `json:"because,omitzero"`
		Left    float64 `json:"seconds_left,omitzero"`
	}{Type: string(o.Kind), Left: o.Left.Seconds()}
	if o.State == occurrence.Ends {
		says.Type += ends
	}
	if o.Kind == occurrence.Device || o.Kind == occurrence.Lease || o.Kind == occurrence.Effect {
		b.mu.Lock()
		reads := slices.ContainsFunc(b.order, func(address string) bool {
			return b.points[address].platform != "" && (address == o.Of || strings.HasPrefix(address, o.Of+"/"))
		})
		b.mu.Unlock()
		if !reads {
			return
		}
		says.Of, says.Because = o.Of, strings.ToValidUTF8(o.Because[:min(len(o.Because), maxText)], "")
	}
	if text, err := json.Marshal(says); err == nil {
		b.link.publish(message{b.base() + "/happened", text, false}, false)
	}
}
