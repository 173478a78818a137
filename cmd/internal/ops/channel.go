package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/node/state"
	"agentsite/node/update"
)

const (
	stable = "stable"
	// channelTimeout bounds the request for a channel, stallTimeout the time without a byte of any download.
	channelTimeout = time.Minute
	stallTimeout   = time.Minute
)

// ErrNoChannel is the error of FindUpdate without an address of the releases.
var ErrNoChannel = state.Mistakef("this build has no address of releases: give it with --releases https://…, or give " +
	"the FILE or ADDRESS of an update")

// Offer is a release that a channel offers for this board.
type Offer struct {
	update.ChannelRelease
	Channel string // its name
	Base    string // the base URL of the releases
	URL     string // of the update
	Size    int64  // of the update, in bytes
	Old     error  // the reason why it is not installed over what is here; nil for a newer release
}

// FindUpdate reads the channel, verifies it and returns the release that the options name. A board
// that has seen a newer channel, or whose channel expired, refuses it.
func FindUpdate(ctx context.Context, o UpdateOptions) (Offer, error) {
	if !o.Installed() {
		return Offer{}, errNotPackaged
	}
	p := o.programs()
	base, name, err := o.channel(p)
	if err != nil {
		return Offer{}, err
	}
	at := base + "/channel/" + name
	ctx, cancel := context.WithTimeout(ctx, channelTimeout)
	defer cancel()
	body, err := download(ctx, at)
	if err != nil {
		return Offer{}, err
	}
	defer body.Close()
	now := time.Now()
	if built := state.BuildTime(); now.Before(built) { // the clock was never set
		now = built
	}
	c, err := update.ReadChannel(body, o.Release.Keys, now)
	if err == nil {
		err = p.See(c, name, o.Release.Keys)
	}
	if err != nil && !(o.CheckOnly && isPermission(err)) {
		return Offer{}, explainUpdate(at, err)
	}
	return o.choose(p, c, base)
}

// choose returns the release of a channel that the options name.
func (o UpdateOptions) choose(p update.Programs, c update.Channel, base string) (Offer, error) {
	r := c.Releases[0]
	if o.Version != "" {
		var versions []string
		found := false
		for _, one := range c.Releases {
			if versions = append(versions, one.Version); one.Version == o.Version {
				r, found = one, true
			}
		}
		if !found {
			return Offer{}, state.Mistakef(
				"the channel %s has no %s%s", c.Name, o.Version, device.Suggest(o.Version, versions, ""),
			)
		}
	}
	file, ok := r.File(o.Release.Target)
	if !ok {
		return Offer{}, state.Mistakef("%s has no update for %s: install its package", r.Version, o.Release.Target)
	}
	old := p.Allow(update.Release{Version: r.Version, Sequence: r.Sequence, Target: file.Target}, o.Release.Rules)
	if refused := (update.Refused{}); old != nil && !errors.As(old, &refused) {
		return Offer{}, old
	}
	return Offer{r, c.Name, base, base + "/" + file.Path, file.Size, old}, nil
}

// channel returns the base URL and the name of the channel: of the options, as the superuser chose, or
// of the program.
func (o UpdateOptions) channel(p update.Programs) (base, name string, err error) {
	f, err := p.Follow()
	if err != nil {
		return "", "", err
	}
	base, name = cmp.Or(o.Channel, f.Base, o.Release.Base), cmp.Or(o.Name, f.Channel, stable)
	switch u, err := url.Parse(base); {
	case base == "":
		return "", "", ErrNoChannel
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "":
		return "", "", state.Mistakef("releases are at an address such as https://example.org/agentsite, not %.200q", base)
	}
	if !update.IsChannelName(name) {
		return "", "", state.Mistakef("a channel is stable or beta, not %.80q", name)
	}
	return strings.TrimRight(base, "/"), name, nil
}

// StageOffer downloads and verifies an offer, and keeps it for the service's next start. It blocks for
// the download.
func StageOffer(ctx context.Context, o UpdateOptions, offer Offer) (update.Release, error) {
	if offer.Old != nil {
		return update.Release{}, explainUpdate(offer.URL, offer.Old)
	}
	o.From = offer.URL
	return o.take(ctx, func(p update.Programs, r io.Reader) (update.Release, error) {
		if o.Progress != nil {
			r = &progressReader{Reader: r, size: offer.Size, progress: o.Progress}
		}
		return p.StageRelease(r, o.Release.Rules, offer.ChannelRelease)
	})
}

// FollowChannel stores the channel of an offer as the superuser's choice, where it differs from the
// program's own.
func FollowChannel(o UpdateOptions, offer Offer) error {
	base, name := offer.Base, offer.Channel
	if base == strings.TrimRight(o.Release.Base, "/") {
		base = ""
	}
	if name == stable {
		name = ""
	}
	return o.programs().SetFollow(base, name)
}

// progressReader reports how much of a download was read.
type progressReader struct {
	io.Reader
	n, size  int64
	progress func(done, size int64)
}

func (r *progressReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.n += int64(n)
	r.progress(r.n, r.size)
	return n, err
}

// httpClient is for updates. Neither a server that does not answer nor a chain of redirects blocks it.
var httpClient = &http.Client{
	Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 20 * time.Second}).DialContext,
		TLSHandshakeTimeout:   20 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		DisableCompression:    true, // sizes and hashes are of the bytes that are sent
		DisableKeepAlives:     true,
	},
	CheckRedirect: func(req *http.Request, via []*http.Request) error {
		// From TLS to plain HTTP only an attacker redirects: to a device of the local network, which a GET switches.
		s := req.URL.Scheme
		if len(via) > 5 || s != "https" && (s != "http" || via[len(via)-1].URL.Scheme == "https") {
			return fmt.Errorf("it redirects to %.200q", req.URL.Redacted())
		}
		return nil
	},
}

// download opens an address. A body that brings nothing for stallTimeout fails.
func download(ctx context.Context, address string) (io.ReadCloser, error) {
	// Plain HTTP too: the download is signed, and an eavesdropper learns only its name.
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		cancel(nil)
		return nil, state.Mistake{Err: err}
	}
	res, err := httpClient.Do(req)
	if err != nil {
		cancel(nil)
		if failed := (*url.Error)(nil); errors.As(err, &failed) {
			err = failed.Err // without the address, which is there already
		}
		return nil, fmt.Errorf("nothing can be downloaded from %s: %w", address, err)
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		cancel(nil)
		return nil, state.Mistakef("there is nothing at %s, the server answers %s", address, res.Status)
	}
	return newBody(ctx, cancel, res.Body), nil
}

func newBody(ctx context.Context, cancel context.CancelCauseFunc, of io.ReadCloser) *body {
	return &body{of, ctx, cancel, time.AfterFunc(stallTimeout, func() { cancel(errStalled) })}
}

var errStalled = errors.New("the server sends nothing: try again later")

// body is the body of a download, which ends with an error when it stalls.
type body struct {
	io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stalled *time.Timer
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.stalled.Reset(stallTimeout)
	}
	if err != nil && err != io.EOF && context.Cause(b.ctx) != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

func (b *body) Close() error {
	b.stalled.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}
