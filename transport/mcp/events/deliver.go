package events

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentsite/agents/event"
	"agentsite/device"
	"agentsite/node"
	"agentsite/transport/webhook"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	sendTimeout = 10 * time.Second
	proofTime   = 5 * time.Second
	maxBody     = 256 << 10
	maxProof    = 4 << 10 // of the answer to a challenge

	challengeFailed = "challenge_failed"
)

// pauses are those between the tries to send an event: all are over within 15 minutes.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}

// controlPauses are those between the tries to send a message that is not of an event.
var controlPauses = pauses[:2]

// delivery sends the events of a subscription, from its one goroutine.
type delivery struct {
	*Webhooks
	hook *hook
	following
}

// deliver follows the events and sends them, until ctx ends or an error comes that does not pass. It leaves place, and
// takes one where it has none.
func (d *delivery) deliver(ctx context.Context, place node.Place) error {
	began := time.Now()
	for pause := time.Second; place == (node.Place{}); pause = min(2*pause, maxPause) {
		var err error
		if place, err = d.Node.Hold(d.who, node.Subscriptions); err == nil {
			break
		}
		if final(err) && time.Since(began) > unseen || device.Sleep(ctx, pause) != nil {
			return err
		}
	}
	defer place.Leave()
	failing := false
	return d.run(ctx, func(p event.Page) error {
		failing = false
		return d.page(ctx, p)
	}, func(err error) error {
		if !failing {
			slog.Warn("the events of a webhook cannot be read now", "id", d.hook.ID, "err", err)
		}
		failing = true
		return nil
	})
}

// page sends a page. The cursor of the subscription is that after the last event that was sent or given up.
func (d *delivery) page(ctx context.Context, p event.Page) error {
	if len(p.Events) == 0 {
		d.move(p.Cursor, p.Truncated)
	} else if p.Truncated {
		d.move(d.request.Cursor, true)
	}
	if d.missed() {
		d.gap(ctx)
	}
	for _, e := range p.Events {
		sent, err := d.send(ctx, e)
		if err != nil {
			return err
		}
		d.move(cmp.Or(e.Cursor, p.Cursor), !sent)
	}
	d.move(p.Cursor, false)
	return nil
}

// move stores up to where the events were sent, and whether some were not.
func (d *delivery) move(cursor string, missed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hook.Cursor == cursor && !missed {
		return
	}
	d.request.Cursor, d.hook.Cursor = cursor, cursor
	d.hook.Missed = d.hook.Missed || missed
	d.touch()
}

func (d *delivery) missed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hook.Missed
}

// gap tells the receiver that events are missing.
func (d *delivery) gap(ctx context.Context) {
	cursor := orNull(d.request.Cursor)
	if d.control(ctx, control{Type: "gap", Cursor: cursor}) == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.hook.Missed = false
		d.touch()
	}
}

// errGivenUp ends the tries to send an event.
var errGivenUp = errors.New("the event is too long")

// send sends an event. An error is that the caller may not be told it any more, or the end of ctx.
func (d *delivery) send(ctx context.Context, e event.Event) (sent bool, err error) {
	o := occurrence(e)
	o.Cursor = orNull(e.Cursor)
	body, err := encode(o)
	if err == nil && len(body) > maxBody {
		err = errGivenUp
	}
	if err != nil {
		slog.Error("an event cannot be sent", "id", d.hook.ID, "err", err)
		return false, nil
	}
	var ended error
	err = webhook.Retry(ctx, pauses, func(err error) bool { return ended == nil && again(err) }, func() error {
		err := d.check(ctx)
		if err == nil {
			return d.post(ctx, e.ID, body)
		}
		if final(err) {
			ended = err
		}
		return err
	})
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case ended != nil:
		return false, ended
	case err != nil:
		slog.Warn("a webhook was not taken", "id", d.hook.ID, "err", err)
	}
	return err == nil, nil
}

// again reports whether to send once more may help: not where the receiver does not want it, or finds it too long.
func again(err error) bool {
	var f *webhook.Failure
	return !errors.As(err, &f) || f.Code != http.StatusGone && f.Code != http.StatusRequestEntityTooLarge
}

// control sends a message that is not of an event.
func (d *delivery) control(ctx context.Context, c control) error {
	body, err := encode(c)
	if err != nil {
		return err
	}
	id := messageID(c.Type)
	return webhook.Retry(ctx, controlPauses, again, func() error { return d.post(ctx, id, body) })
}

func messageID(kind string) string { return "msg_" + kind + "_" + rand.Text() }

func encode(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.Multiline(false))
}

// post sends a body once, signed anew, and keeps how it went.
func (d *delivery) post(ctx context.Context, id string, body []byte) error {
	header, to := d.signed(d.hook, id, body)
	_, err := d.to.Post(ctx, to, header, body, 0)
	if ctx.Err() != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.hook.status
	now, _ := d.Now()
	var f *webhook.Failure
	switch {
	case err == nil:
		s.Delivered, s.Error, s.FailedSince = stamp(now), "", ""
	case errors.As(err, &f):
		s.Error = f.Reason
		s.FailedSince = cmp.Or(s.FailedSince, stamp(now))
	}
	return err
}

// signed returns the header of a message (Standard Webhooks), and where it goes. During a rotation there are two
// signatures.
func (w *Webhooks) signed(h *hook, id string, body []byte) (http.Header, string) {
	now, _ := w.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	secrets := []string{h.Secret}
	if h.Before != "" && now.Sub(h.Rotated) < rotation {
		secrets = append(secrets, h.Before)
	}
	at := strconv.FormatInt(now.Unix(), 10)
	var all []string
	for _, s := range secrets {
		k, err := key(s)
		if err != nil {
			continue // the file was damaged
		}
		mac := hmac.New(sha256.New, k)
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	header := make(http.Header)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", at)
	header.Set("Webhook-Signature", strings.Join(all, " "))
	header.Set("X-Mcp-Subscription-Id", h.ID)
	return header, h.URL
}

// prove asks a receiver whether it wants messages, unless the caller has a subscription with its URL.
func (w *Webhooks) prove(ctx context.Context, account string, h *hook) error {
	w.mu.Lock()
	known := w.find(func(o *hook) bool { return o.Who == h.Who && o.URL == h.URL }) != nil
	w.mu.Unlock()
	if known {
		return nil
	}
	u, err := url.Parse(h.URL)
	if err != nil {
		return err
	}
	if !w.proofs.Allow([2]string{account, u.Host}) {
		return device.Faultf(device.Busy, "this receiver was asked too often: try again in a minute")
	}
	ctx, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	defer context.AfterFunc(w.Ending, cancel)()
	c := control{Type: "verification", Challenge: rand.Text()}
	body, err := encode(c)
	if err != nil {
		return err
	}
	header, to := w.signed(h, messageID(c.Type), body)
	answer, err := w.to.Post(ctx, to, header, body, maxProof)
	var f *webhook.Failure
	if errors.As(err, &f) {
		return &refusal{callback, "the receiver did not take a challenge: " + f.Reason, reasonData{f.Reason}}
	}
	var got control
	if err == nil {
		err = json.Unmarshal(answer, &got)
	}
	if err != nil || subtle.ConstantTimeCompare([]byte(got.Challenge), []byte(c.Challenge)) != 1 {
		return &refusal{callback, "the receiver did not answer with the challenge", reasonData{challengeFailed}}
	}
	return nil
}
