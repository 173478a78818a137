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

	ttl         = 120 * time.Second      // of our records, and the longest that is accepted
	changeDelay = 200 * time.Millisecond // one change of the network is several events
)

// Medium is the local link. The zero value is ready; each Announce and Find has sockets of
// its own. Both follow changes of the interfaces.
type Medium struct {
	// Services are announced beside the site, under its label and port, for clients that know
	// nothing of agentsite. They say where, and no more.
	Services []Service
}

// Service is a service of DNS-SD.
type Service struct {
	Type    string   // "_wot._tcp"
	Subtype string   // "_directory", by which it can be looked for as well; "" for none
	Text    []string // of its TXT record: "td=/.well-known/wot"
}

var _ discovery.Medium = (*Medium)(nil)

// Announce implements discovery.Medium. It also answers for the host
// agentsite-k5qjb3xz.local, and for NAME.local unless another host has it, and announces the
// site as an MCP server.
func (m *Medium) Announce(ctx context.Context, record *discovery.Signed) error {
	port, text, err := serviceOf(record)
	if err != nil {
		return err
	}
	return onInterfaces(ctx, func(ctx context.Context, own map[int]iface) error {
		label := discovery.Label(record.Site)
		var subtypes []subtype
		var list []net.Interface
		for _, i := range own {
			list = append(list, i.Interface)
		}
		for _, s := range append([]Service{{Type: service, Text: text}, {Type: mcp, Text: []string{"path=/mcp"}}}, m.Services...) {
			// No addresses: it reads those of the interface for each answer.
			announced := s.Type
			if s.Subtype != "" {
				announced += "," + s.Subtype
				subtypes = append(subtypes, subtype{s.Subtype + "._sub." + s.Type + ".local.", label + "." + s.Type + ".local."})
			}
			server, err := zeroconf.RegisterProxy(label, announced, "local", port, label, nil, s.Text, list)
			if err != nil {
				return fmt.Errorf("cannot announce the site (%w)", err)
			}
			defer server.Shutdown() // with a goodbye
			server.TTL(uint32(ttl.Seconds()))
		}

		// This socket is opened after the library's. Of sockets that share a port, the last one gets
		// unicast packets, and this one answers only packets from the link.
		n := nameResponder{keyName: discovery.HostName(record.Site) + ".", siteName: record.Name + ".local.", subtypes: subtypes}
		if n.link, err = listen(own, n.mentionsName); err != nil {
			return err
		}
		defer n.close()
		return n.run(ctx)
	})
}

// Find implements discovery.Medium. It queries at once, then at intervals that grow to a
// minute, and receives unsolicited announcements.
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

// onInterfaces calls do with the interfaces, and again after each change, until ctx ends or
// do fails. do returns nil when its context ends.
func onInterfaces(ctx context.Context, do func(ctx context.Context, own map[int]iface) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := networkEvents(ctx)
	if err != nil {
		return fmt.Errorf("cannot follow network changes (%w)", err)
	}
	for ctx.Err() == nil {
		was, own, err := snapshot()
		if err != nil {
			return err
		}
		during, end := context.WithCancelCause(ctx)
		var watching sync.WaitGroup
		watching.Go(func() { end(waitChange(during, was, events)) })
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

var errNoEvents = errors.New("the events of network changes have ended")

// waitChange returns nil when the network has changed, or ctx has ended.
func waitChange(ctx context.Context, was string, events <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-events:
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

// snapshot returns the interfaces and a text that changes with them.
func snapshot() (string, map[int]iface, error) {
	own, err := interfaces()
	return fmt.Sprint(own, addressState()), own, err
}
