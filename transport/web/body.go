package web

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"agentsite/node/quota"
	"agentsite/transport/rpc"
)

const (
	smallBody    = 16 << 10 // a longer one needs one of the places that its account has for those
	maxLarge     = 4
	maxStrangers = 16       // requests of strangers at a time, of which some wait for the answer to a wrong proof
	maxStrange   = 16 << 10 // bytes of a stranger's request
)

// bodyLimits bounds the bodies that are read at a time, so that no account waits for another's
// bodies.
type bodyLimits struct {
	strangers chan struct{} // a place for each request by a key that the site does not know
	large     quota.Quota   // requests with a long body, by account
}

func newBodyLimits() *bodyLimits {
	return &bodyLimits{strangers: make(chan struct{}, maxStrangers)}
}

// ReadBody reads a request's body before the request's read deadline, and then removes the deadline.
// Where it cannot, it answers the request and returns nil. Otherwise the caller calls done after its
// last use of body. A long body takes one of its account's slots for long bodies, a chunked one once
// it is long. A stranger waits for one of the strangers' few slots.
func (c Caller) ReadBody(w http.ResponseWriter, r *http.Request) (body *bytes.Buffer, done func()) {
	most, leave := int64(rpc.MaxMessage), func() {}
	long := func() bool { return true }
	if c.Who.Account == "" {
		most = maxStrange
		closeAfter(w, r)
	} else {
		long = func() bool {
			place := quota.Limit{Group: c.Who.Account, Most: maxLarge}
			if !c.bodies.large.Take(place) {
				closeAfter(w, r)
				w.Header().Set("Retry-After", "1")
				return false
			}
			leave = func() { c.bodies.large.Release(place) }
			return true
		}
	}
	body = rpc.GetBuffer()
	done = func() { rpc.PutBuffer(body); leave() }
	if status, why := readBody(w, r, body, most, long); status != 0 {
		c.route.refuse(w, status, why)
		done()
		return nil, nil
	}
	if c.signed != nil {
		if err := c.signed.CheckBody(body.Bytes()); err != nil {
			c.route.unproved(w, err)
			done()
			return nil, nil
		}
	}
	if c.Who.Account == "" {
		select {
		case c.bodies.strangers <- struct{}{}:
			leave = func() { <-c.bodies.strangers }
		case <-r.Context().Done():
			done()
			return nil, nil
		}
	}
	complete(r.Context())
	return body, done
}

// closeAfter closes a connection of HTTP/1.1 with the answer, so that no buffer is full of what was not
// read. HTTP/2 ends the stream, and the others of the connection go on.
func closeAfter(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

func tooLong(most int64) string {
	return "a message has at most " + strconv.FormatInt(most, 10) + " bytes"
}

// readBody reads a body of at most most bytes. It reads a long body only if long returns true. On
// failure it returns a status and a reason, and the deadline stays for the rest that net/http reads.
func readBody(w http.ResponseWriter, r *http.Request, into *bytes.Buffer, most int64, long func() bool) (int, string) {
	const busy = "too many long messages at a time: try again in a second"
	switch {
	case r.ContentLength > most:
		return http.StatusRequestEntityTooLarge, tooLong(most)
	case r.ContentLength > smallBody && !long():
		return http.StatusServiceUnavailable, busy
	}
	var err error
	from := http.MaxBytesReader(w, r.Body, most)
	if r.ContentLength < 0 { // in chunks
		if _, err = into.ReadFrom(io.LimitReader(from, smallBody+1)); err == nil && into.Len() > smallBody && !long() {
			return http.StatusServiceUnavailable, busy
		}
	}
	if err == nil {
		_, err = into.ReadFrom(from)
	}
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return http.StatusRequestEntityTooLarge, tooLong(most)
		}
		return http.StatusBadRequest, "the body ended early"
	}
	http.NewResponseController(w).SetReadDeadline(time.Time{}) // or it would end a stream
	return 0, ""
}
