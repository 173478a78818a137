package a2a

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/node/quota"
	"agentsite/transport/webhook"
)

// pushConfig is a TaskPushNotificationConfig of 1.0, and the PushNotificationConfig of 0.3.
type pushConfig struct {
	ID    string    `json:"id,omitzero"`
	Task  string    `json:"taskId,omitzero"` // 1.0
	URL   string    `json:"url"`
	Token string    `json:"token,omitzero"`
	Auth  *pushAuth `json:"authentication,omitzero"`
}

type pushAuth struct {
	Scheme      string   `json:"scheme,omitzero"`  // 1.0
	Schemes     []string `json:"schemes,omitzero"` // 0.3
	Credentials string   `json:"credentials,omitzero"`
}

// pushParams are the parameters of all methods of push notifications, in both versions.
type pushParams struct {
	pushConfig
	Old   *pushConfig `json:"pushNotificationConfig,omitzero"` // 0.3, as the next
	OldID string      `json:"pushNotificationConfigId,omitzero"`
	Proto *legacyPush `json:"config,omitzero"` // over HTTP, in place of Old
}

// legacyPush is a TaskPushNotificationConfig of 0.3.
type legacyPush struct {
	Name   string      `json:"name,omitzero"`   // over HTTP
	Task   string      `json:"taskId,omitzero"` // over JSON-RPC
	Config *pushConfig `json:"pushNotificationConfig"`
}

type pushList struct {
	Configs []any `json:"configs"`
}

const (
	maxPushes   = 4 // of a task; those of an account are bounded as subscriptions
	maxToken    = 1 << 10
	pushTimeout = 10 * time.Second
	pushPause   = time.Second // between two notifications of a configuration
	// pushUnseen is the time after a restart for which a configuration is kept without its
	// principal's permission, which may need a set clock.
	pushUnseen = time.Hour
)

// pushPauses are those between tries: about nine minutes.
var pushPauses = []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second,
	32 * time.Second, 64 * time.Second, 128 * time.Second, 256 * time.Second}

// pushRate is the rate at which an account may cause writes of the file; owners are not counted.
var pushRate = quota.Rate{PerSecond: 1. / 30, Burst: 64}

// pushes holds the push notification configurations, each with a goroutine that watches its task.
// Those of tasks of hosted agents are in the file, and are kept over a restart like the tasks.
type pushes struct {
	*server
	to    *webhook.Sender
	often quota.RateLimiter // by account

	mu   sync.Mutex
	all  []*push // the oldest first
	file webhook.File[push]
}

// push is a configuration, and its principal.
type push struct {
	Who    string     `json:"who"`
	Owner  bool       `json:"owner,omitzero"`
	Agent  string     `json:"agent"`
	Legacy bool       `json:"legacy,omitzero"`
	Config pushConfig `json:"config"`

	over   bool        // it has ended; guarded by pushes.mu
	task   chan string // receives the ID of its task, once
	cancel context.CancelFunc
	gone   chan struct{} // closed after its last notification
}

var errNoPush = failf(errPush, "this site sends no push notifications: stream or subscribe to the task, "+
	"or ask for it; its owner can name hosts for them (http: push_hosts)")

// check refuses a malformed configuration, and one whose receiver is not among the hosts that the
// site's owner named.
func (p *pushConfig) check(to *webhook.Sender) error {
	if !to.On() {
		return errNoPush
	}
	bad := func(field, text string) error { return invalid(field, errors.New(text)) }
	if err := to.Check(p.URL, "a receiver of push notifications", "https://hooks.example.com/a2a"); err != nil {
		return invalid("url", err)
	}
	switch {
	case !printable(p.ID):
		return bad("id", "is at most 128 printable characters of ASCII")
	case !visible(p.Token):
		return bad("token", "is at most 1024 characters of ASCII without spaces")
	case p.Auth != nil && (p.Auth.scheme() == "" || !printable(strings.Join(p.Auth.schemes(), " ")) ||
		p.Auth.Credentials == "" || !visible(p.Auth.Credentials)):
		return bad("authentication", "is of the scheme Bearer or Basic, "+
			"with credentials of at most 1024 characters of ASCII without spaces")
	}
	return nil
}

// visible reports whether a text is a value of a header without spaces.
func visible(text string) bool {
	return len(text) <= maxToken && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

func (a *pushAuth) schemes() []string { return append(slices.Clip(a.Schemes), a.Scheme) }

// scheme returns the scheme that this site can use; "" for none.
func (a *pushAuth) scheme() string {
	for _, s := range a.schemes() {
		for _, known := range []string{"Bearer", "Basic"} {
			if strings.EqualFold(s, known) {
				return known
			}
		}
	}
	return ""
}

// reserve checks a configuration, and starts its goroutine, which takes a place of the caller's
// subscriptions until the configuration ends. The caller of reserve calls begin or drop.
func (h *pushes) reserve(c *call, config pushConfig) (*push, error) {
	err := config.check(h.to)
	if err == nil {
		err = h.file.Damage()
	}
	if err == nil && h.Node.Owner(c.who) != nil {
		var account string
		if account, err = h.Node.Account(c.who); err == nil && !h.often.Allow(account) {
			err = device.Faultf(device.Busy, "too many push notification configurations for you, "+
				"or for those who share your permission: try again in a minute")
		}
	}
	if err != nil {
		return nil, err
	}
	p := &push{Who: c.who.ID, Owner: c.who.Owner, Agent: c.agent, Legacy: c.form.legacy, Config: config}
	begun := make(chan error, 1)
	h.run(&call{who: c.who, agent: c.agent, tasks: c.tasks, form: form{legacy: c.form.legacy}}, p, 0, begun)
	return p, <-begun
}

// run starts the goroutine of a configuration. begun receives nil when it has its place, otherwise
// the error.
func (h *pushes) run(c *call, p *push, unseen time.Duration, begun chan<- error) {
	ctx, cancel := context.WithCancel(h.Ending)
	p.task, p.cancel, p.gone = make(chan string, 1), cancel, make(chan struct{})
	h.Go(func() {
		defer close(p.gone)
		defer cancel()
		seen := false
		began := time.Now()
		var err error
		for wait := time.Second; ; wait = min(2*wait, time.Minute) {
			err = h.While(ctx, c.who, func(ctx context.Context) error {
				if seen = true; begun != nil {
					begun <- nil
				}
				select {
				case id := <-p.task:
					return h.notify(ctx, c, p, id)
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			if seen || time.Since(began)+wait > unseen || device.Sleep(ctx, wait) != nil {
				break
			}
		}
		if !seen && begun != nil {
			begun <- err
		}
		if h.Ending.Err() == nil { // otherwise it continues after the next start
			h.remove(p)
			if err != nil && ctx.Err() == nil {
				slog.Warn("a push notification configuration ends", "task", p.Config.Task, "err", err)
			}
		}
	})
}

// remove removes a configuration that has ended.
func (h *pushes) remove(p *push) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.over = true
	if i := slices.Index(h.all, p); i >= 0 {
		h.all = slices.Delete(h.all, i, i+1)
		h.save()
	}
}

// drop ends a configuration. After drop returns nothing is sent for it, not even after a restart.
func (h *pushes) drop(p *push) {
	p.cancel()
	<-p.gone
	h.remove(p) // the site may be ending
}

// begin stores a configuration, which replaces one with the same ID, and starts its notifications.
func (h *pushes) begin(p *push, id string) error {
	h.mu.Lock()
	var before *push
	own := 0
	all := slices.Clone(h.all)
	for i, other := range all {
		if other.Who == p.Who && other.Agent == p.Agent && other.Config.Task == id {
			if own++; other.Config.ID == p.Config.ID {
				before, all[i] = other, p // in one write: a crash leaves one of them
			}
		}
	}
	if before == nil {
		all = append(all, p)
	}
	var err error
	if p.over {
		err = device.Faultf(device.Denied, "your permission ended")
	} else if before == nil && own >= maxPushes {
		err = device.Faultf(device.Busy, "this task has %d push notification configurations of yours: delete one", own)
	} else {
		p.Config.Task = id
		was := h.all
		h.all = all
		if err = h.save(); err != nil {
			h.all = was
		}
	}
	h.mu.Unlock()
	switch {
	case err != nil:
		h.drop(p)
		return err
	case before != nil:
		h.drop(before)
	}
	p.task <- id
	return nil
}

// notify sends the task, and again after each change, until it has ended.
func (h *pushes) notify(ctx context.Context, c *call, p *push, id string) error {
	last, none := "", 0
	return c.tasks.Watch(ctx, c.who, id, func(t task.Task) error {
		body, err := encode(c.form.wire(reply{Task: c.form.task(t, &none)}))
		if err != nil || string(body) == last {
			return err
		}
		last = string(body)
		err = webhook.Retry(ctx, pushPauses, func(error) bool { return true }, func() error {
			return h.post(ctx, &p.Config, last)
		})
		if err != nil {
			return err
		}
		if t.State.Ended() {
			return nil
		}
		return device.Sleep(ctx, pushPause)
	})
}

// post sends one notification. It reads only the status of the answer.
func (h *pushes) post(ctx context.Context, p *pushConfig, body string) error {
	header := make(http.Header)
	if p.Token != "" {
		header.Set("X-A2A-Notification-Token", p.Token) // as the libraries for Python and JavaScript
		header.Set("A2A-Notification-Token", p.Token)   // as that for Go
	}
	if p.Auth != nil {
		header.Set("Authorization", p.Auth.scheme()+" "+p.Auth.Credentials)
	}
	_, err := h.to.Post(ctx, p.URL, header, []byte(body), 0)
	return err
}
