package events

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/event"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/quota"
	"agentsite/transport/rpc"
	"agentsite/transport/webhook"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	minTTL     = 5 * time.Minute
	defaultTTL = time.Hour
	maxTTL     = 24 * time.Hour
	// rotation is the time for which messages are signed with the secret before, too.
	rotation = time.Hour
	// saveAfter is the least time between two writes of the file for cursors. The first is at once: a site that was
	// killed soon after an event, and whose history has not kept it, does not find it anew. Those within the time after
	// it are sent again, or are missing.
	saveAfter = time.Minute
	// unseen is the time after a restart for which a permission is waited for, which may need a set clock.
	unseen = time.Hour

	secretPrefix = "whsec_"
)

// The rates at which an account may cause writes of the file, owners not counted, and a host is asked to prove itself.
var (
	writeRate  = quota.Rate{PerSecond: 1. / 30, Burst: 64}
	verifyRate = quota.Rate{PerSecond: 1. / 10, Burst: 20}
)

// HookOptions are the parameters of Webhooks.
type HookOptions struct {
	Source event.Source
	Node   *node.Node
	Hosts  []string // that may be sent to, with a port where it is not 443
	// Read and Write are those of the file, as webhook.File has them.
	Read  func() ([]byte, error)
	Write func([]byte) error
	Now   func() (t time.Time, sure bool) // the site's time
	// Ending ends when the site begins to. Go runs a function that ends with it, before the site ends.
	Ending context.Context
	Go     func(func())
}

// Webhooks are the subscriptions of callers whose events are sent to a URL. Each has a goroutine, which follows its
// events and sends them one after another.
type Webhooks struct {
	HookOptions
	to     *webhook.Sender
	writes quota.RateLimiter // by account
	proofs quota.RateLimiter // by account and host

	mu      sync.Mutex
	all     []*hook
	file    webhook.File[hook]
	saving  *time.Timer // nil while the file has all cursors
	saved   time.Time   // when it was written for them last
	running sync.WaitGroup
}

// hook is a subscription. Its exported fields are in the file; all are guarded by Webhooks.mu.
type hook struct {
	ID       string         `json:"id"`
	Who      string         `json:"who"`
	Owner    bool           `json:"owner,omitzero"`
	Name     string         `json:"name"`
	Asked    jsontext.Value `json:"asked"` // the arguments in the order of their names
	Args     jsontext.Value `json:"args"`  // the same, as the source writes them
	URL      string         `json:"url"`
	Secret   string         `json:"secret"`
	Before   string         `json:"before,omitzero"` // the secret before
	Rotated  time.Time      `json:"rotated,omitzero"`
	Until    time.Time      `json:"until"`
	Cursor   string         `json:"cursor,omitzero"`
	MaxAge   int64          `json:"max_age_ms,omitzero"`
	Missed   bool           `json:"missed,omitzero"`   // events were given up, and the receiver was not told
	Declared bool           `json:"declared,omitzero"` // the client knows the SEP's codes

	status Status
	cancel context.CancelFunc
	end    *time.Timer
}

// NewWebhooks returns those that the file has, which go on at once.
func NewWebhooks(o HookOptions) *Webhooks { return newWebhooks(o, nil) }

// newWebhooks is NewWebhooks with the client of a test; nil for none.
func newWebhooks(o HookOptions, client *http.Client) *Webhooks {
	w := &Webhooks{
		HookOptions: o, to: webhook.NewSender(sendTimeout, o.Hosts...),
		writes: quota.RateLimiter{Rate: writeRate}, proofs: quota.RateLimiter{Rate: verifyRate},
	}
	w.to.Client = cmp.Or(client, w.to.Client)
	w.file = webhook.File[hook]{Name: "webhooks.json", What: "webhooks", Read: o.Read, Write: o.Write}
	kept := w.file.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	now, sure := o.Now()
	for _, h := range kept {
		left := h.Until.Sub(now)
		switch _, err := key(h.Secret); {
		case err != nil || w.to.Check(h.URL, whatURL, exampleURL) != nil:
			slog.Warn("a webhook ends: its host is not named any more", "id", h.ID)
			continue
		case sure && left <= 0:
			continue
		default:
			w.expire(h, min(max(left, minTTL), maxTTL)) // a clock that is not set proves nothing
		}
		w.all = append(w.all, h)
		w.start(h, node.Place{}, unseen)
	}
	if len(w.all) < len(kept) {
		w.file.Save(w.all)
	}
	o.Go(w.finish)
	return w
}

// finish waits for the end of the site, and has the file have all cursors.
func (w *Webhooks) finish() {
	<-w.Ending.Done()
	w.mu.Lock() // what begins after this sees that the site ends
	for _, h := range w.all {
		h.end.Stop()
	}
	w.mu.Unlock()
	w.running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.saving != nil {
		w.saving.Stop()
	}
	if w.saving != nil || w.file.Unsaved() {
		w.file.Save(w.all)
	}
}

func (w *Webhooks) on() bool { return w != nil && w.to.On() }

const (
	whatURL    = "a receiver of events"
	exampleURL = "https://hooks.example.com/mcp"
)

// wanted is a request, checked.
type wanted struct {
	event.Request
	asked jsontext.Value
	url   string
}

func (w *Webhooks) wanted(a *Subscribed) (out wanted, err error) {
	if m := a.Delivery.Mode; m != "" && m != webhookMode || !w.on() {
		return out, &refusal{unsupported, "this site sends no webhooks: poll or stream; " +
			"its owner can name hosts for them (http: push_hosts)",
			featureData{Feature: "delivery", Value: webhookMode}}
	}
	if out.Request, err = a.request(); err != nil {
		return out, err
	}
	out.asked = slices.Clone(jsontext.Value(out.Args))
	if err := out.asked.Canonicalize(); err != nil {
		return out, device.Faultf(device.Invalid, "arguments: is an object")
	}
	out.url = a.Delivery.URL
	return out, nil
}

// key returns the bytes of a secret.
func key(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, secretPrefix)
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(b) < 24 || len(b) > 64 {
		return nil, device.Faultf(device.Invalid, "delivery.secret: is %s and 24 to 64 bytes in base64", secretPrefix)
	}
	return b, nil
}

// ttl returns how long a subscription lasts; 0 for no end.
func (a *Subscribed) ttl() (time.Duration, error) {
	if a.TTL.IsZero() {
		return defaultTTL, nil
	}
	if isNull(a.TTL) {
		return maxTTL, nil // no subscription outlives a day without a word of its client
	}
	var ms float64
	if err := a.TTL.Decode(&ms); err != nil || ms <= 0 {
		return 0, device.Faultf(device.Invalid, "ttlMs: is a number of milliseconds above 0, or null")
	}
	ms = min(max(ms, float64(minTTL.Milliseconds())), float64(maxTTL.Milliseconds()))
	return time.Duration(ms) * time.Millisecond, nil
}

// idOf derives the ID of a subscription from its key, so that it is the same after a restart and after a new
// subscription.
func idOf(who, url, name string, args []byte) string {
	h := sha256.New()
	for _, part := range []string{who, url, name, string(args)} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return "sub_" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// Subscribe answers events/subscribe.
func (w *Webhooks) Subscribe(
	ctx context.Context, who agents.Principal, a *Subscribed, declared bool,
) (out SubscribeResult, err error) {
	want, err := w.wanted(a)
	if err != nil {
		return out, err
	}
	ttl, err := a.ttl()
	if err != nil {
		return out, err
	}
	if _, err := key(a.Delivery.Secret); err != nil {
		return out, err
	}
	if err := w.to.Check(want.url, whatURL, exampleURL); err != nil {
		return out, device.Faultf(device.Invalid, "delivery.url: %w", err)
	}
	account, err := w.Node.Account(who)
	if err != nil {
		return out, err
	}
	args, err := w.Source.Check(ctx, who, want.Request)
	if err != nil {
		return out, err
	}
	if w.Node.Owner(who) != nil && !w.writes.Allow(account) {
		return out, device.Faultf(device.Busy,
			"too many subscriptions for you, or for those who share your permission: try again in a minute")
	}
	id := idOf(who.ID, want.url, want.Name, args)
	if out, ok, err := w.refresh(id, a.Delivery.Secret, ttl, declared); ok {
		return out, err
	}
	page, err := w.begin(ctx, who, want.Request)
	if err != nil {
		return out, err
	}
	h := &hook{
		ID: id, Who: who.ID, Owner: who.Owner, Name: want.Name, Asked: want.asked, Args: jsontext.Value(args), URL: want.url,
		Secret: a.Delivery.Secret, Cursor: page.Cursor, MaxAge: want.MaxAge.Milliseconds(), Declared: declared,
	}
	place, err := w.Node.Hold(who, node.Subscriptions)
	if err != nil {
		return out, err
	}
	if err := w.prove(ctx, account, h); err != nil {
		place.Leave()
		return out, err
	}
	if err := w.add(h, place, ttl); err != nil {
		place.Leave()
		return out, err
	}
	return SubscribeResult{ID: id, Refresh: h.refreshBefore(), Cursor: orNull(page.Cursor), Truncated: page.Truncated}, nil
}

// begin returns the cursor from which a new subscription goes on, and whether events are missing before.
func (w *Webhooks) begin(ctx context.Context, who agents.Principal, r event.Request) (event.Page, error) {
	r.Max = 1
	page, err := w.Source.Poll(ctx, who, r)
	if r.Cursor != "" {
		page.Cursor = r.Cursor
	}
	return page, err
}

// refresh gives a subscription that there is another end and secret.
func (w *Webhooks) refresh(
	id, secret string, ttl time.Duration, declared bool,
) (out SubscribeResult, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.find(func(h *hook) bool { return h.ID == id })
	if h == nil {
		return out, false, nil
	}
	if secret != h.Secret {
		now, _ := w.Now()
		h.Before, h.Secret, h.Rotated = h.Secret, secret, now
	}
	out = SubscribeResult{ID: id, Cursor: orNull(h.Cursor), Truncated: h.Missed}
	h.Missed, h.Declared, h.status.Active = false, declared, true
	status := h.status
	out.Status = &status
	w.expire(h, ttl)
	out.Refresh = h.refreshBefore()
	return out, true, w.file.Save(w.all)
}

// find returns the first subscription that is so; nil for none. The lock is held.
func (w *Webhooks) find(is func(*hook) bool) *hook {
	if i := slices.IndexFunc(w.all, is); i >= 0 {
		return w.all[i]
	}
	return nil
}

// add stores a subscription, and starts it.
func (w *Webhooks) add(h *hook, place node.Place, ttl time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.Ending.Err() != nil:
		return device.Faultf(device.Unavailable, "the site is being stopped")
	case w.find(func(o *hook) bool { return o.ID == h.ID }) != nil:
		return device.Faultf(device.Busy, "another request is making this subscription: try again")
	}
	w.expire(h, ttl)
	w.all = append(w.all, h)
	if err := w.file.Save(w.all); err != nil {
		w.all = w.all[:len(w.all)-1]
		h.end.Stop()
		return err
	}
	w.start(h, place, 0)
	return nil
}

// expire has a subscription end after so long. The lock is held.
func (w *Webhooks) expire(h *hook, ttl time.Duration) {
	if h.end != nil {
		h.end.Stop()
	}
	now, _ := w.Now()
	h.Until = now.Add(ttl)
	var timer *time.Timer
	timer = time.AfterFunc(ttl, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if h.end == timer && w.Ending.Err() == nil {
			h.cancel()
			w.remove(h)
		}
	})
	h.end = timer
}

func (h *hook) refreshBefore() *string {
	at := stamp(h.Until)
	return &at
}

// remove forgets a subscription. The lock is held.
func (w *Webhooks) remove(h *hook) error {
	h.end.Stop()
	if i := slices.Index(w.all, h); i >= 0 {
		w.all = slices.Delete(w.all, i, i+1)
		return w.file.Save(w.all)
	}
	return nil
}

// Unsubscribe answers events/unsubscribe. Nothing is sent for the subscription any more, but for what is under way.
func (w *Webhooks) Unsubscribe(ctx context.Context, who agents.Principal, a *Subscribed, declared bool) error {
	want, err := w.wanted(a)
	if err != nil {
		return err
	}
	args, _ := w.Source.Check(ctx, who, want.Request) // it fails where the permission has ended
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.find(func(h *hook) bool {
		return h.Who == who.ID && h.URL == want.url && h.Name == want.Name &&
			(string(h.Asked) == string(want.asked) || args != nil && string(h.Args) == string(args))
	})
	switch {
	case h != nil:
		h.cancel()
		return w.remove(h)
	case w.file.Unsaved(): // the file still has it
		return w.file.Save(w.all)
	case declared:
		return errNoHook
	}
	return nil // to be asked twice does no harm, as ChatGPT's guide has it
}

// touch has the file have the cursors within a time. The lock is held.
func (w *Webhooks) touch() {
	if w.saving != nil {
		return
	}
	w.saving = time.AfterFunc(saveAfter-time.Since(w.saved), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.saving, w.saved = nil, time.Now()
		w.file.Save(w.all)
	})
}

// start runs a subscription. The lock is held.
func (w *Webhooks) start(h *hook, place node.Place, unseen time.Duration) {
	ctx, cancel := context.WithCancel(w.Ending)
	h.cancel, h.status.Active = cancel, true
	who := principal.Parse(h.Who)
	who.Owner = h.Owner
	d := &delivery{Webhooks: w, hook: h, following: following{
		source: w.Source, who: who, unseen: unseen,
		request: event.Request{
			Name: h.Name, Args: []byte(h.Args), Cursor: h.Cursor, MaxAge: time.Duration(h.MaxAge) * time.Millisecond,
		},
	}}
	w.running.Add(1)
	w.Go(func() {
		defer w.running.Done()
		defer cancel()
		err := d.deliver(ctx, place)
		if ctx.Err() != nil { // its end was asked for, or that of the site
			return
		}
		slog.Info("a webhook ends", "id", h.ID, "err", err)
		w.mu.Lock()
		told := control{Type: "terminated", Error: public(err, h.Declared)}
		w.remove(h)
		w.mu.Unlock()
		d.control(ctx, told)
	})
}

// control is a message that is not of an event.
type control struct {
	Type      string     `json:"type"`
	Challenge string     `json:"challenge,omitzero"`
	Cursor    *string    `json:"cursor,omitzero"`
	Error     *rpc.Error `json:"error,omitzero"`
}
