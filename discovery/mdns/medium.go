package mdns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"agentsite/discovery"

	"github.com/grandcat/zeroconf"
)

const (
	service  = "_agentsite._tcp"
	mcp      = "_mcp._tcp" // for clients that know nothing of us; it says where, and no more
	services = service + ".local."

	ttl         = 120 * time.Second      // of what is said here, and the longest that is believed
	changeDelay = 200 * time.Millisecond // one change of the network is several to the kernel
)

// Medium is the local link. It can be made by new(Medium); each Announce and each Find
// has sockets of its own. Both follow the interfaces as they come and go.
type Medium struct{}

var _ discovery.Medium = (*Medium)(nil)

// Announce is that of discovery.Medium. The host agentsite-k5qjb3xz.local is answered
// for while it lasts, and NAME.local if nobody else has it. It is also announced as a
// server of MCP, which each site is.
func (*Medium) Announce(ctx context.Context, record *discovery.Signed) error {
	port, text, err := serviceOf(record)
	if err != nil {
		return err
	}
	return onInterfaces(ctx, func(ctx context.Context, own map[int]iface) error {
		label := discovery.Label(record.Site)
		var list []net.Interface
		for _, i := range own {
			list = append(list, i.Interface)
		}
		for _, s := range []struct {
			service string
			text    []string
		}{{service, text}, {mcp, []string{"path=/mcp"}}} {
			// No addresses: it reads those of the interface for each answer.
			server, err := zeroconf.RegisterProxy(label, s.service, "local", port, label, nil, s.text, list)
			if err != nil {
				return fmt.Errorf("the site cannot be announced: %w", err)
			}
			defer server.Shutdown() // with a goodbye
			server.TTL(uint32(ttl.Seconds()))
		}

		// After the library's: of sockets that share a port, the last one gets what is
		// sent to this host alone, and this one answers only what comes from the link.
		n := nameResponder{keyName: discovery.HostName(record.Site) + ".", siteName: record.Name + ".local."}
		if n.link, err = listen(own, n.mentionsName); err != nil {
			return err
		}
		defer n.close()
		return n.run(ctx)
	})
}

// Find is that of discovery.Medium. It asks at once, then after a pause that grows to a
// minute, and hears what is said unasked.
func (*Medium) Find(ctx context.Context, emit func(discovery.Sighting) error) error {
	f := finder{emit: emit, known: make(map[string]*instance)}
	return onInterfaces(ctx, func(ctx context.Context, own map[int]iface) error {
		l, err := listen(own, isSiteAnswer)
		if err != nil {
			return err
		}
		defer l.close()
		return f.run(ctx, l)
	})
}

// onInterfaces does something with the interfaces that there are, and again whenever
// they or their addresses are other ones, until ctx ends or do fails. do returns nil
// when its context ends.
func onInterfaces(ctx context.Context, do func(ctx context.Context, own map[int]iface) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	news, err := networkEvents(ctx)
	if err != nil {
		return fmt.Errorf("the system does not say when the network changes: %w", err)
	}
	for ctx.Err() == nil {
		was, own, err := snapshot()
		if err != nil {
			return err
		}
		during, end := context.WithCancelCause(ctx)
		var watching sync.WaitGroup
		watching.Go(func() { end(waitChange(during, was, news)) })
		if len(own) > 0 {
			err = do(during, own)
		} else {
			<-during.Done() // a cable may come
		}
		end(nil)
		watching.Wait()
		if err != nil {
			return err
		}
		if errors.Is(context.Cause(during), errNoEvents) && ctx.Err() == nil {
			return errNoEvents
		}
	}
	return nil
}

var errNoEvents = errors.New("the system does not say any more when the network changes")

// untilOther returns when the network is not as it was, or ctx has ended.
func waitChange(ctx context.Context, was string, news <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-news:
			if !ok {
				return errNoEvents
			}
		}
		settled := time.NewTimer(changeDelay)
		select {
		case <-ctx.Done():
		case <-settled.C:
		}
		settled.Stop()
		if now, _, err := snapshot(); err == nil && now != was {
			return nil
		}
	}
}

// snapshot are the interfaces, and a text that is another one when they are.
func snapshot() (string, map[int]iface, error) {
	own, err := interfaces()
	return fmt.Sprint(own, addressState()), own, err
}
