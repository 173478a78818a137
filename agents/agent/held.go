package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
)

// releaseTimeout bounds the release of an output when its agent ends.
const releaseTimeout = 5 * time.Second

// Held is the outputs that the tasks of an agent have left away from safe. The zero Held has none.
type Held struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// Note notes that an output is held for so long.
func (h *Held) Note(output string, length time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until == nil {
		h.until = make(map[string]time.Time)
	}
	h.until[output] = time.Now().Add(length)
}

// Release releases the remaining leases, those of other sites last, because these may not answer.
// It does not end with ctx.
func (h *Held) Release(ctx context.Context, self agents.Principal, site agents.Site) {
	h.mu.Lock()
	until := h.until
	h.until = nil
	h.mu.Unlock()
	for _, output := range slices.SortedFunc(maps.Keys(until), func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
	}) {
		if time.Now().Before(until[output]) {
			releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
			site.Move(releasing, self, agents.MoveRequest{Output: output, Terms: agents.Terms{Held: true}}) // leases end by themselves
			cancel()
		}
	}
}
