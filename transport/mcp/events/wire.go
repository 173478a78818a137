// Package events serves the MCP extension io.modelcontextprotocol/events (SEP-3415) to the servers of all revisions:
// lists, polls, streams and webhooks over an event.Source.
//
// The final text of the SEP could not be read as a whole. The messages are those of the working group's design sketch;
// the place of the capability, resultType and the numbers of errors are the SEP's, as its implementers describe them.
package events

import (
	"bytes"
	"time"

	"agentsite/agents/event"
	"agentsite/device"
	"agentsite/transport/rpc"
)

// Extension is the name of the extension among a client's or a server's capabilities.
const Extension = "io.modelcontextprotocol/events"

// Of the kinds of delivery.
const (
	pollMode    = "poll"
	pushMode    = "push"
	webhookMode = "webhook"
)

// Asked are the members of a request for the events of one type. Of poll and stream there is no more.
type Asked struct {
	Name      string  `json:"name"`
	Arguments rpc.Raw `json:"arguments,omitzero"`
	Cursor    rpc.Raw `json:"cursor,omitzero"` // a text, or null
	MaxAge    int64   `json:"maxAgeMs,omitzero"`
	Max       int     `json:"maxEvents,omitzero"` // of poll
}

// Subscribed are the members of events/subscribe and events/unsubscribe.
type Subscribed struct {
	Asked
	Delivery Delivery `json:"delivery"`
	TTL      rpc.Raw  `json:"ttlMs,omitzero"` // a number, or null for no end
}

// Delivery says where events are sent.
type Delivery struct {
	Mode   string `json:"mode,omitzero"`
	URL    string `json:"url"`
	Secret string `json:"secret,omitzero"`
}

// ListResult answers events/list.
type ListResult struct {
	Events []Type `json:"events"`
}

// Type is an event type of a ListResult.
type Type struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Delivery    []string `json:"delivery"`
	Input       rpc.Raw  `json:"inputSchema"`
	Payload     rpc.Raw  `json:"payloadSchema"`
}

// PollResult answers events/poll.
type PollResult struct {
	Events    []Occurrence `json:"events"`
	Cursor    *string      `json:"cursor"`
	Truncated bool         `json:"truncated"`
	More      bool         `json:"hasMore"`
	Next      int64        `json:"nextPollMs"`
}

// SubscribeResult answers events/subscribe.
type SubscribeResult struct {
	ID        string  `json:"id"`
	Refresh   *string `json:"refreshBefore"`
	Cursor    *string `json:"cursor"`
	Truncated bool    `json:"truncated"`
	Status    *Status `json:"deliveryStatus,omitzero"`
}

// Status is the state of the deliveries of a subscription.
type Status struct {
	Active      bool   `json:"active"`
	Delivered   string `json:"lastDeliveryAt,omitzero"`
	Error       string `json:"lastError,omitzero"` // one of the reasons of package webhook
	FailedSince string `json:"failedSince,omitzero"`
}

// Occurrence is an event on the wire.
type Occurrence struct {
	ID     string         `json:"eventId"`
	Name   string         `json:"name"`
	At     string         `json:"timestamp"`
	Data   rpc.Raw        `json:"data"`
	Cursor *string        `json:"cursor,omitzero"` // of push and webhook
	Meta   occurrenceMeta `json:"_meta,omitzero"`
}

// occurrenceMeta says so where the site did not know the time.
type occurrenceMeta struct {
	Clock string `json:"agentsite/clock,omitzero"`
}

func occurrence(e event.Event) Occurrence {
	o := Occurrence{ID: e.ID, Name: e.Name, At: stamp(e.At), Data: rpc.RawJSON(e.Data)}
	if !e.Sure {
		o.Meta.Clock = "not set"
	}
	return o
}

// stamp renders a time in ISO 8601, with milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// orNull returns a cursor, nil for an empty one.
func orNull(cursor string) *string {
	if cursor == "" {
		return nil
	}
	return &cursor
}

const maxCursor = 4 << 10

// request returns the request for the source.
func (a *Asked) request() (r event.Request, err error) {
	r.Name, r.Max = a.Name, a.Max
	if a.Name == "" || len(a.Name) > 128 {
		return r, device.Faultf(device.Invalid, "name: names an event; events/list has them")
	}
	r.Args = []byte("{}")
	if !a.Arguments.IsZero() {
		r.Args, err = a.Arguments.JSONText()
		if err != nil || !bytes.HasPrefix(bytes.TrimLeft(r.Args, " \t\r\n"), []byte("{")) {
			return r, device.Faultf(device.Invalid, "arguments: is an object; events/list has its schema")
		}
	}
	if !isNull(a.Cursor) {
		if err := a.Cursor.Decode(&r.Cursor); err != nil || r.Cursor == "" || len(r.Cursor) > maxCursor {
			return r, device.Faultf(device.Invalid, "cursor: is one that this site gave, or null for events from now on")
		}
	}
	const most = int64(366 * 24 * time.Hour / time.Millisecond)
	if a.MaxAge < 0 || a.Max < 0 {
		return r, device.Faultf(device.Invalid, "maxAgeMs and maxEvents: are above 0")
	}
	r.MaxAge = time.Duration(min(a.MaxAge, most)) * time.Millisecond
	return r, nil
}

// isNull reports whether a member is null or absent.
func isNull(r rpc.Raw) bool {
	text, err := r.JSONText()
	return err == nil && string(text) == "null"
}
