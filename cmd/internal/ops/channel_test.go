package ops

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/node/update"
)

// publisher serves the releases of a channel.
type publisher struct {
	*httptest.Server
	mux     *http.ServeMux
	key     identity.Key
	channel update.Channel
	served  []byte
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	now := time.Now()
	p := &publisher{mux: http.NewServeMux(), key: identity.New(), channel: update.Channel{
		Name: "stable", Serial: 5, Date: now, Expires: now.Add(time.Hour),
	}}
	p.Server = httptest.NewServer(p.mux)
	t.Cleanup(p.Close)
	for n, version := range []string{3: "v3", 2: "v2"} {
		if version == "" {
			continue
		}
		var b bytes.Buffer
		r := update.Release{Version: version, Sequence: uint64(n), Target: "linux/arm64"}
		if err := update.Sign(&b, r, bytes.Repeat([]byte(version), 3e4), p.key); err != nil {
			t.Fatal(err)
		}
		path := "updates/" + version + ".update"
		sum := sha256.Sum256(b.Bytes())
		file := update.ChannelFile{Target: r.Target, Path: path, Size: int64(b.Len()), SHA256: hex.EncodeToString(sum[:])}
		p.channel.Releases = append([]update.ChannelRelease{
			{Version: version, Sequence: r.Sequence, Files: []update.ChannelFile{file}},
		}, p.channel.Releases...)
		p.mux.HandleFunc("/r/"+path, func(w http.ResponseWriter, _ *http.Request) { w.Write(b.Bytes()) })
	}
	p.mux.HandleFunc("/r/channel/stable", func(w http.ResponseWriter, _ *http.Request) { w.Write(p.served) })
	p.publish(t, p.channel, p.key)
	return p
}

// publish serves a channel, signed by a key.
func (p *publisher) publish(t *testing.T, c update.Channel, by identity.Key) {
	t.Helper()
	var b bytes.Buffer
	if err := update.SignChannel(&b, c, by); err != nil {
		t.Fatal(err)
	}
	p.served = b.Bytes()
}

// options are those of a board with the package v1.
func (p *publisher) options(t *testing.T) UpdateOptions {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "inbox"), 0o755); err != nil {
		t.Fatal(err)
	}
	rules := update.Rules{Keys: []identity.ID{p.key.ID()}, Target: "linux/arm64", Sequence: 1}
	return UpdateOptions{Folder: dir, Release: release{Version: "v1", Rules: rules, Base: p.URL + "/r/"}}
}

func TestChannel(t *testing.T) {
	p := newPublisher(t)
	o := p.options(t)
	offer, err := FindUpdate(t.Context(), o)
	if err != nil || offer.Version != "v3" || offer.Old != nil {
		t.Fatalf("%+v %v", offer, err)
	}
	var done int64
	o.Progress = func(n, _ int64) { done = n }
	if r, err := StageOffer(t.Context(), o, offer); err != nil || r.Version != "v3" || done != offer.Size {
		t.Errorf("%+v %v, %d of %d bytes", r, err, done, offer.Size)
	}
	o.Version = "v2"
	if r, err := StageUpdate(t.Context(), o); err != nil || r.Sequence != 2 {
		t.Errorf("%+v %v", r, err)
	}
	o.Version = "v4"
	if _, err := StageUpdate(t.Context(), o); err == nil {
		t.Error("it has a v4")
	}
	o.Version, o.Release.Sequence = "", 3
	if offer, err := FindUpdate(t.Context(), o); err != nil || !errors.As(offer.Old, new(update.Refused)) {
		t.Errorf("for v3: %+v %v", offer, err)
	}
	o.Release.Target = "linux/arm/6"
	if _, err := FindUpdate(t.Context(), o); err == nil {
		t.Error("there is one for another board")
	}
}

// TestFollow: the superuser's choice of a channel stays, and the serials with it.
func TestFollow(t *testing.T) {
	p := newPublisher(t)
	o := p.options(t)
	o.Release.Base = ""
	if _, err := FindUpdate(t.Context(), o); !errors.Is(err, ErrNoChannel) {
		t.Fatal(err)
	}
	o.Channel = p.URL + "/r"
	offer, err := FindUpdate(t.Context(), o)
	if err == nil {
		err = FollowChannel(o, offer)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Channel = ""
	if offer, err := FindUpdate(t.Context(), o); err != nil || offer.Version != "v3" {
		t.Fatalf("%+v %v", offer, err)
	}
	p.channel.Serial = 4
	p.publish(t, p.channel, p.key)
	if _, err := FindUpdate(t.Context(), o); !errors.As(err, new(update.Refused)) {
		t.Errorf("an older channel: %v", err)
	}
	// A stolen key signed the greatest serial: with a program that has other keys, the successor's channels count.
	p.channel.Serial = math.MaxUint64
	p.publish(t, p.channel, p.key)
	if _, err := FindUpdate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	successor := identity.New()
	p.channel.Serial = 4
	p.publish(t, p.channel, successor)
	for _, keys := range [][]identity.ID{{p.key.ID()}, {successor.ID(), identity.New().ID()}} {
		o.Release.Keys = keys
		if _, err := FindUpdate(t.Context(), o); (err == nil) != (keys[0] == successor.ID()) {
			t.Errorf("after the loss of a key, with %v: %v", keys, err)
		}
	}
	p.channel.Serial = 3
	p.publish(t, p.channel, successor)
	if _, err := FindUpdate(t.Context(), o); !errors.As(err, new(update.Refused)) {
		t.Errorf("an older channel of the successor: %v", err)
	}
	for _, bad := range []string{"ftp://example.org", "example.org", "https://", "http://x/?y", "file:///etc"} {
		o.Channel = bad
		if _, err := FindUpdate(t.Context(), o); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	o.Channel, o.Name = "", "../stable"
	if _, err := FindUpdate(t.Context(), o); err == nil {
		t.Errorf("%s is accepted", o.Name)
	}
}

// TestRedirect: a redirect leaves neither HTTP nor, once there, TLS.
func TestRedirect(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		well     bool
	}{
		{"https", "https", true}, {"http", "http", true}, {"http", "https", true}, {"https", "http", false},
		{"http", "file", false}, {"https", "unix", false},
	} {
		request := func(scheme string) *http.Request {
			return &http.Request{URL: &url.URL{Scheme: scheme, Host: "example.org"}}
		}
		err := httpClient.CheckRedirect(request(tt.to), []*http.Request{request("http"), request(tt.from)})
		if (err == nil) != tt.well {
			t.Errorf("from %s to %s: %v", tt.from, tt.to, err)
		}
	}
}

// TestHostileChannel: what a server sends instead of a channel or an update is refused, and nothing waits.
func TestHostileChannel(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}
	for name, spoil := range map[string]func(p *publisher, c *update.Channel){
		"another key": func(p *publisher, c *update.Channel) { p.key = identity.New() },
		"expired": func(_ *publisher, c *update.Channel) {
			c.Date, c.Expires = c.Date.Add(-2*time.Hour), c.Expires.Add(-2*time.Hour)
		},
		"another channel":  func(_ *publisher, c *update.Channel) { c.Name = "beta" },
		"another hash":     func(_ *publisher, c *update.Channel) { c.Releases[0].Files[0].SHA256 = strings.Repeat("0", 64) },
		"longer":           func(_ *publisher, c *update.Channel) { c.Releases[0].Files[0].Size++ },
		"shorter":          func(_ *publisher, c *update.Channel) { c.Releases[0].Files[0].Size-- },
		"another version":  func(_ *publisher, c *update.Channel) { c.Releases[0].Version = "v4" },
		"another sequence": func(_ *publisher, c *update.Channel) { c.Releases[0].Sequence = 4 },
		"not there":        func(_ *publisher, c *update.Channel) { c.Releases[0].Files[0].Path = "none" },
		"endless update": func(p *publisher, c *update.Channel) {
			c.Releases[0].Files[0].Path = "endless"
			p.mux.HandleFunc("/r/endless", endless)
		},
		"redirect to a file": func(p *publisher, c *update.Channel) {
			c.Releases[0].Files[0].Path = "there"
			p.mux.HandleFunc("/r/there", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
			})
		},
		"endless redirects": func(p *publisher, c *update.Channel) {
			c.Releases[0].Files[0].Path = "round"
			p.mux.HandleFunc(
				"/r/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/r/round", http.StatusFound) },
			)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublisher(t)
			o := p.options(t)
			spoil(p, &p.channel)
			p.publish(t, p.channel, p.key)
			if r, err := StageUpdate(t.Context(), o); err == nil {
				t.Errorf("%+v is taken", r)
			}
			if s, err := ReadUpdateStatus(o); s.Waits || err != nil {
				t.Errorf("%+v %v", s, err)
			}
		})
	}
	for name, served := range map[string]http.HandlerFunc{
		"endless channel": endless,
		"an altered channel": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "agentsite channel 1\n{}\nsignature x y\n")
		},
	} {
		server := httptest.NewServer(served)
		defer server.Close()
		o := newPublisher(t).options(t)
		o.Channel = server.URL
		if offer, err := FindUpdate(t.Context(), o); err == nil {
			t.Errorf("%s: %+v", name, offer)
		}
	}
}

// TestDeadServer: nobody answers, and the caller gives up or is told to.
func TestDeadServer(t *testing.T) {
	silent := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-silent:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(silent)
	o := newPublisher(t).options(t)
	o.Channel = server.URL
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := FindUpdate(ctx, o); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// silent is a body without bytes, which ends with its request.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, s.ctx.Err() }
func (silent) Close() error               { return nil }

// TestStall: a download that stands still fails after a minute.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		b := newBody(ctx, cancel, io.NopCloser(io.MultiReader(strings.NewReader("x"), silent{ctx})))
		defer b.Close()
		begun := time.Now()
		if text, err := io.ReadAll(b); string(text) != "x" || !errors.Is(err, errStalled) ||
			time.Since(begun) != stallTimeout {
			t.Errorf("%q %v after %v", text, err, time.Since(begun))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		b := newBody(ctx, cancel, io.NopCloser(slow{ctx, strings.NewReader("slow")}))
		defer b.Close()
		if text, err := io.ReadAll(iotest.OneByteReader(b)); string(text) != "slow" || err != nil {
			t.Errorf("a slow download: %q %v", text, err)
		}
	})
}

// slow has each read take most of stallTimeout.
type slow struct {
	ctx context.Context
	io.Reader
}

func (s slow) Read(p []byte) (int, error) {
	if err := device.Sleep(s.ctx, stallTimeout-time.Second); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

// TestAddress: releases are downloaded from the web, and from nothing else.
func TestAddress(t *testing.T) {
	o := newPublisher(t).options(t)
	for _, o.Channel = range []string{"ftp://example.org/r", "file:///r", "example.org/r", "https:///r",
		"https://example.org/r?a", "https://example.org/r#a"} {
		if _, _, err := o.channel(o.programs()); !errors.As(err, new(state.Mistake)) {
			t.Errorf("%s: %v", o.Channel, err)
		}
	}
}
