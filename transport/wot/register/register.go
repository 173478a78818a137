// Package register keeps a site registered with a directory of W3C Web of Things Discovery.
package register

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentsite/transport/web/outbound"
)

const (
	life      = time.Hour // how long a registration lasts that is not renewed
	renewal   = life / 2
	callLimit = 30 * time.Second
	minPause  = 10 * time.Second // after a failure
	maxPause  = life / 4
)

// Options say what is registered, and where.
type Options struct {
	URL   string                 // of the directory, which the owner wrote
	ID    string                 // of the description
	TD    []byte                 // without registration information
	Token func() (string, error) // nil for none
	HTTP  *http.Client           // nil for one of outbound's
}

// Run registers the description, and renews the registration before it expires, until ctx ends. It
// does not remove it then: a restarted site keeps its registration, and that of a stopped one
// expires.
func Run(ctx context.Context, o Options) {
	if o.HTTP == nil {
		var hosts []string
		if u, err := url.Parse(o.URL); err == nil {
			hosts = append(hosts, u.Hostname())
		}
		o.HTTP = outbound.Client(callLimit, hosts...)
	}
	at := strings.TrimSuffix(o.URL, "/") + "/things/" + url.PathEscape(o.ID)
	timer := time.NewTimer(0)
	defer timer.Stop()
	registered := false
	for pause := minPause; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := o.renew(ctx, at, registered)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if !registered {
				slog.Info("registered with the directory", "directory", o.URL)
			}
			registered, pause = true, minPause
			timer.Reset(renewal)
		default:
			slog.Warn("not registered with the directory", "directory", o.URL, "retry", pause, "err", err)
			registered = false
			timer.Reset(pause)
			pause = min(2*pause, maxPause)
		}
	}
}

// renew renews a registration by an empty merge patch, or registers anew.
func (o *Options) renew(ctx context.Context, at string, registered bool) error {
	if registered && o.send(ctx, http.MethodPatch, at, "application/merge-patch+json", []byte("{}")) == nil {
		return nil
	}
	text := fmt.Appendf(slices.Clip(bytes.TrimSuffix(o.TD, []byte("}"))), `,"registration":{"ttl":%d}}`, int(life.Seconds()))
	return o.send(ctx, http.MethodPut, at, "application/td+json", text)
}

func (o *Options) send(ctx context.Context, verb, at, contentType string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, verb, at, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", contentType)
	if o.Token != nil {
		token, err := o.Token()
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	_, err = outbound.Do(o.HTTP, r, 16<<10)
	var status *outbound.StatusError
	if errors.As(err, &status) && (status.Code == http.StatusCreated || status.Code == http.StatusNoContent) {
		return nil
	}
	return err
}
