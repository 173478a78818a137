package gossip

import (
	"reflect"
	"testing"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/p2p"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/peerstore"
)

// TestNoRecordsKept: gossipsub remembers nothing of strangers who come and go. Its address
// book, which it shows to nobody, would keep what it has for ever.
func TestNoRecordsKept(t *testing.T) {
	w := newTown(t, 0)
	m := w.member(identity.New(), w.realm)
	host := m.o.Host.(*p2p.Host)
	events, err := host.EventBus().Subscribe([]any{new(event.EvtPeerIdentificationCompleted), new(event.EvtPeerConnectednessChanged)})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	await := func(is func(any) bool) {
		t.Helper()
		for end := time.After(10 * time.Second); ; {
			select {
			case e := <-events.Out():
				if is(e) {
					return
				}
			case <-end:
				t.Fatal("a stranger is not noticed")
			}
		}
	}
	for range 5 {
		stranger := w.host(identity.New(), nil) // it listens, and says where
		w.connect(stranger, host)
		await(func(e any) bool {
			i, ok := e.(event.EvtPeerIdentificationCompleted)
			return ok && i.SignedPeerRecord != nil
		})
		stranger.Close()
		await(func(e any) bool { _, ok := e.(event.EvtPeerConnectednessChanged); return ok })
	}
	router := reflect.ValueOf(m.ps).Elem().FieldByName("rt").Elem().Elem()
	field := router.FieldByName("cab")
	book := reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem().Interface().(peerstore.AddrBook)
	if all := book.PeersWithAddrs(); len(all) > 0 {
		t.Errorf("%d of 5 strangers are remembered", len(all))
	}
}
