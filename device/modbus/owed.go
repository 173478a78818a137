package modbus

import (
	"slices"
	"time"
)

// owed holds the requests that a unit on a serial line has not answered. An answer there has no number: one that
// comes late looks like that to a later request of the same function and length. A unit answers in the order
// of the requests, so that an answer that can be to one request only shows that no earlier one will come.
type owed struct {
	requests []request
	probing  bool      // a probe is not answered, or there are too many requests
	last     time.Time // when the latest was not answered
}

const (
	maxOwed = 8
	forget  = 15 * time.Second // no unit answers later than that
)

// add notes a request that was not answered.
func (o *owed) add(r request) {
	o.last = time.Now()
	switch {
	case r.function == diagnostics || len(o.requests) == maxOwed:
		o.probing = true
	case !slices.ContainsFunc(o.requests, r.same):
		o.requests = append(o.requests, r)
	}
}

// confuses reports whether an answer that is owed could be taken for that to r. The answer to the same request
// says what was asked; a write's has what was written.
func (o *owed) confuses(r request) bool {
	if time.Since(o.last) > forget {
		*o = owed{}
	}
	another := func(q request) bool { return q.looksLike(r, false) && !q.same(r) }
	return r.reads() && (o.probing || slices.ContainsFunc(o.requests, another))
}

// answered notes the answer to r.
func (o *owed) answered(r request, refused bool) {
	alike := func(q request) bool { return q.looksLike(r, refused) }
	if !slices.ContainsFunc(o.requests, alike) && (!o.probing || r.function == diagnostics) {
		*o = owed{}
	}
}

// looksLike reports whether the answers to r and q can have one form.
func (r request) looksLike(q request, refused bool) bool {
	return r.function == q.function && (refused || r.answerBytes() == q.answerBytes())
}

// probe is a request that changes nothing, and whose answer, or refusal, is that to no other: the unit returns
// the number (function 8, sub-function 0, Return Query Data).
func probe(number uint16) request {
	return request{function: diagnostics, count: 1, values: []uint16{number}}
}
