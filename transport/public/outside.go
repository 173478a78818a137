package public

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"agentsite/node/quota"
	"agentsite/transport/web/outbound"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	manet "github.com/multiformats/go-multiaddr/net"
)

// outsideProtocol has a relay connect to the public name of the site that asks, so that the site sees itself as
// others do. The site sends the name, the relay answers with the step that failed and why, both empty for none, and
// then copies bytes both ways: the site does TLS with itself. Each text is its length in one byte, and its bytes.
const outsideProtocol protocol.ID = "/agentsite/outside/1"

// A relay connects for the sites that its owner has listed, to their own names alone, and passes on TLS for that name.
const (
	outsideTimeout = 30 * time.Second // of a connection
	outsideBytes   = 64 << 10         // each way
	maxOutside     = 8                // connections for all sites
	maxText        = 255
)

var outsideRate = quota.Rate{PerSecond: 1.0 / 30, Burst: 4} // of connections for one site

// The steps on the way to a public name.
const (
	StepRefused = "relay" // which does not connect
	StepDNS     = "DNS"
	StepConnect = "connection"
)

// StepError tells which step on the way to a public name failed.
type StepError struct {
	Step string
	Err  error
}

func (e *StepError) Error() string { return e.Err.Error() }
func (e *StepError) Unwrap() error { return e.Err }

func failedStep(step string, format string, args ...any) error {
	return &StepError{step, fmt.Errorf(format, args...)}
}

// lookupIPv4 asks this machine's DNS for the addresses of IPv4, by which programs in clouds come.
func lookupIPv4(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip4", name+".") // without the machine's search list
}

// Dial connects to port 443 of a name. It dials public addresses alone and, instead of what the DNS answers, those in
// to, which the owner named.
func Dial(ctx context.Context, name string, to ...netip.Addr) (net.Conn, error) {
	var named []string
	for _, a := range to {
		named = append(named, a.String())
	}
	if len(to) == 0 {
		var err error
		if to, err = lookupIPv4(ctx, name); err != nil {
			return nil, &StepError{StepDNS, err}
		}
	}
	return dialAny(ctx, outbound.Dialer(named...).DialContext, to)
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialAny connects to the first of at most four addresses that answers.
func dialAny(ctx context.Context, dial dialFunc, to []netip.Addr) (net.Conn, error) {
	failed := errors.New("the name has no address of IPv4, by which programs in clouds come")
	for _, a := range to[:min(len(to), 4)] {
		c, err := dial(ctx, "tcp", netip.AddrPortFrom(a.Unmap(), 443).String())
		if err == nil {
			return c, nil
		}
		failed = err
	}
	return nil, &StepError{StepConnect, failed}
}

// outside connects for sites.
type outside struct {
	names  *names
	lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	dial   dialFunc
	often  quota.RateLimiter
	held   quota.Quota
}

func newOutside(n *names) *outside {
	return &outside{
		names: n, lookup: lookupIPv4, dial: outbound.Dialer().DialContext, often: quota.RateLimiter{Rate: outsideRate},
	}
}

// serve connects until stop is called.
func (o *outside) serve() (stop func()) {
	o.names.host.SetStreamHandler(outsideProtocol, o.answer)
	return func() { o.names.host.RemoveStreamHandler(outsideProtocol) }
}

// answer serves a stream of outsideProtocol.
func (o *outside) answer(s network.Stream) {
	site := s.Conn().RemotePeer()
	turn := []quota.Limit{{Group: asker{site}, Most: 1}, {Most: maxOutside}}
	if s.Conn().Stat().Limited || !o.names.allowed(site) || !o.held.Take(turn...) {
		s.Reset()
		return
	}
	defer o.held.Release(turn...)
	ctx, cancel := context.WithTimeout(context.Background(), outsideTimeout)
	defer cancel()
	until, _ := ctx.Deadline()
	s.SetDeadline(until)
	name, err := readText(s)
	if err != nil {
		s.Reset()
		return
	}
	c, err := o.connect(ctx, s.Conn(), name)
	step, why := "", ""
	if failed := (*StepError)(nil); errors.As(err, &failed) {
		step, why = failed.Step, failed.Error()
	}
	_, told := s.Write(appendText(appendText(nil, step), why))
	if c == nil {
		s.Close()
		return
	}
	defer c.Close()
	c.SetDeadline(until)
	if told == nil {
		told = passOutside(s, c, name, until)
	}
	if told != nil {
		slog.Debug("a site does not see itself from outside", "site", site, "err", told)
		s.Reset()
		return
	}
	s.Close()
}

// connect connects to a name of the site that asks. That it is the site's own shows by its first label, or that of
// the name at the end of its CNAMEs, which is of the site's key, or by its address, which is the site's own.
func (o *outside) connect(ctx context.Context, asks network.Conn, name string) (net.Conn, error) {
	site := asks.RemotePeer()
	switch {
	case !IsName(name):
		return nil, failedStep(StepRefused, "%.80q is no name", name)
	case !o.often.Allow(site):
		return nil, failedStep(StepRefused, "this site asks too often: wait a minute")
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	own := isOf(name, site)
	if !own {
		canonical, err := o.names.resolve(ctx, name+".")
		if err != nil {
			return nil, &StepError{StepDNS, err}
		}
		own = isOf(strings.ToLower(canonical), site)
	}
	to, err := o.lookup(ctx, name)
	if err != nil {
		return nil, &StepError{StepDNS, err}
	}
	if !own {
		at := addressOf(asks)
		for _, a := range to {
			own = own || a.Unmap() == at
		}
		if to = []netip.Addr{at}; !own {
			return nil, failedStep(StepDNS, "%s leads neither to this site's name nor to its address", name)
		}
	}
	return dialAny(ctx, o.dial, to)
}

// isOf reports whether a name is of a site's key.
func isOf(name string, site peer.ID) bool { return strings.HasPrefix(name, Label(site)+".") }

// addressOf returns the address that a peer connects from.
func addressOf(c network.Conn) netip.Addr {
	ip, err := manet.ToIP(c.RemoteMultiaddr())
	if err != nil {
		return netip.Addr{}
	}
	at, _ := netip.AddrFromSlice(ip)
	return at.Unmap()
}

// passOutside copies bytes between a site and its public name until a time at most, if they are of a TLS connection to
// that name.
func passOutside(s interface {
	stream
	deadlineReader
}, c net.Conn, name string, until time.Time) error {
	h, err := peek(s)
	if err == nil && (h.name != name || h.acme) {
		err = errors.New("the connection is for another name")
	}
	if err != nil {
		return err
	}
	s.SetReadDeadline(until)
	if _, err := c.Write(h.bytes); err != nil {
		return err
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(c, io.LimitReader(s, outsideBytes))
		c.Close()
	})
	both.Go(func() {
		_, _ = io.Copy(s, io.LimitReader(c, outsideBytes))
		_ = s.CloseWrite()
	})
	both.Wait()
	return nil
}

// DialBy has a relay connect to port 443 of this site's public name. The connection is to be used for TLS with that
// name, and ends after half a minute.
func DialBy(ctx context.Context, h host.Host, relay peer.ID, name string) (net.Conn, error) {
	s, err := h.NewStream(network.WithNoDial(ctx, "relays are asked that are connected"), relay, outsideProtocol)
	if err != nil {
		return nil, &StepError{StepRefused, err}
	}
	s.SetDeadline(time.Now().Add(outsideTimeout))
	defer context.AfterFunc(ctx, func() { s.Reset() })()
	_, err = s.Write(appendText(nil, name))
	var step, why string
	if err == nil {
		step, err = readText(s)
	}
	if err == nil {
		why, err = readText(s)
	}
	switch {
	case err != nil:
		err = &StepError{StepRefused, fmt.Errorf("it does not connect for this site: %w", err)}
	case step == StepDNS, step == StepConnect:
		err = failedStep(step, "%s", why)
	case step != "":
		err = failedStep(StepRefused, "%s", why)
	}
	if err != nil {
		s.Reset()
		return nil, err
	}
	return &conn{stream: s, from: relayed{}, release: func() {}}, nil
}

func appendText(b []byte, text string) []byte {
	text = text[:min(len(text), maxText)]
	return append(append(b, byte(len(text))), text...)
}

func readText(r io.Reader) (string, error) {
	var b [1 + maxText]byte
	if _, err := io.ReadFull(r, b[:1]); err != nil {
		return "", err
	}
	n := int(b[0])
	_, err := io.ReadFull(r, b[1:1+n])
	return strings.ToValidUTF8(string(b[1:1+n]), "?"), err
}
