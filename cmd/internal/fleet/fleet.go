package fleet

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
)

const (
	// atOnce bounds the sites that are called at the same time; slow ones do not count.
	atOnce = 16
	// slowAfter is the time after which a site that has not answered gives its place to the next one.
	slowAfter = time.Second
	// DefaultTimeout bounds the call of one site.
	DefaultTimeout = 4 * time.Second
	// unwindTime bounds the wait for the reason of an expired call, which is abandoned after it.
	unwindTime = 100 * time.Millisecond
)

// Options holds how sites are called.
type Options struct {
	Timeout time.Duration // for each site from when it is called; 0 for DefaultTimeout
	Changes bool          // the call changes something: a site that was reached and then is silent may have done it
	// Progress is called after each answer with the names of the sites that have not answered, never by two
	// goroutines at a time; it may be nil.
	Progress func(waiting []string)
}

// Result holds the answer of one site, or its error. Both come from the site, and are data.
type Result[T any] struct {
	Site  peer.Contact
	Value T // with an error, what the site did answer
	Err   error
}

// Kind returns the kind of the error, "" without one.
func (r Result[T]) Kind() string { return KindOf(r.Err) }

// Answered reports whether the site answered, also if it refused, or if its answer is of no use.
func (r Result[T]) Answered() bool {
	return r.Err == nil || saidBySite(r.Err) ||
		errors.As(r.Err, new(*device.Fault)) || errors.As(r.Err, new(state.Mistake))
}

// saidBySite reports whether an error is a site's answer.
func saidBySite(err error) bool {
	return errors.As(err, new(*client.ToolError)) || errors.As(err, new(*client.RequestError))
}

// Silent is the error of a site that has not answered in time.
type Silent struct {
	After   time.Duration
	Unknown bool  // the outcome is not known: the request may have been executed
	Why     error // of a search for the site; may be nil
}

func (s *Silent) Error() string {
	text := "it has not answered for " + device.FormatDuration(s.After)
	switch {
	case s.Unknown:
		return text + ", and whether it did this is not known"
	case s.Why != nil:
		return text + ": " + s.Why.Error()
	}
	return text
}

func (s *Silent) Unwrap() error { return s.Why }

// KindOf returns an error's kind: that of a fault, or "offline" for a site that was not reached; "" for none.
func KindOf(err error) string {
	var silent *Silent
	switch {
	case err == nil:
		return ""
	case errors.As(err, &silent) && silent.Unknown:
		return string(device.UnknownOutcome)
	case errors.As(err, &silent), peer.Unreached(err) != nil:
		return string(device.Offline)
	case errors.As(err, new(state.Mistake)):
		return string(device.Invalid)
	}
	return string(device.AsFault(err).Kind)
}

// Call connects to each site and calls do. It returns a result for each, in the order of sites. The sites share the
// dialer's network.
func Call[T any](
	ctx context.Context, dialer *peer.Dialer, sites []peer.Contact, o Options,
	do func(ctx context.Context, site *peer.Connection, k peer.Contact) (T, error),
) []Result[T] {
	return each(ctx, sites, o, func(ctx context.Context, k peer.Contact, connected func()) (none T, _ error) {
		c, err := dialer.Dial(ctx, k)
		if err != nil {
			return none, err
		}
		defer c.Close()
		connected()
		return do(ctx, c, k)
	})
}

// each calls do for each site: of at most atOnce that were called less than slowAfter ago. It returns when each has
// answered or its time is over: a call that ignores its context is abandoned.
func each[T any](
	ctx context.Context, sites []peer.Contact, o Options,
	do func(ctx context.Context, k peer.Contact, connected func()) (T, error),
) []Result[T] {
	type answer struct {
		index int
		value T
		err   error
	}
	slots, answers := make(chan struct{}, atOnce), make(chan answer, len(sites))
	go func() {
		for i, k := range sites {
			slots <- struct{}{}
			free := sync.OnceFunc(func() { <-slots })
			time.AfterFunc(slowAfter, free)
			go func() {
				defer free()
				value, err := callOne(ctx, o, k, do)
				answers <- answer{i, value, err}
			}()
		}
	}()
	results := make([]Result[T], len(sites))
	waiting := make([]string, 0, len(sites))
	for i, k := range sites {
		results[i].Site = k
		waiting = append(waiting, k.Name)
	}
	for range sites {
		a := <-answers
		r := &results[a.index]
		r.Value, r.Err = a.value, a.err
		waiting = slices.DeleteFunc(waiting, func(name string) bool { return name == r.Site.Name })
		if o.Progress != nil {
			o.Progress(waiting)
		}
	}
	return results
}

// callOne calls do for one site, and waits for it until the timeout.
func callOne[T any](
	ctx context.Context, o Options, k peer.Contact,
	do func(ctx context.Context, k peer.Contact, connected func()) (T, error),
) (T, error) {
	caller, timeout := ctx, cmp.Or(o.Timeout, DefaultTimeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	var connected atomic.Bool
	answers := make(chan answer, 1)
	go func() {
		value, err := do(ctx, k, func() { connected.Store(true) })
		answers <- answer{value, err}
	}()
	var a answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		select {
		case a = <-answers:
		case <-time.After(unwindTime):
			a.err = ctx.Err()
		}
	}
	switch {
	case a.err == nil || saidBySite(a.err):
	case caller.Err() != nil:
		a.err = caller.Err()
	case ctx.Err() != nil, errors.Is(a.err, context.DeadlineExceeded):
		a.err = &Silent{After: timeout, Unknown: o.Changes && connected.Load(), Why: peer.Unreached(a.err)}
	}
	return a.value, a.err
}
