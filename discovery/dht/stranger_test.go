package dht

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/discoverytest"
	"agentsite/node/identity"
	"agentsite/node/quota"
	"agentsite/transport/p2p"

	ds "github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"
	pb "github.com/libp2p/go-libp2p-kad-dht/pb"
	recpb "github.com/libp2p/go-libp2p-record/pb"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// say sends bytes to a server and returns what it answers.
func (m *node) say(t *testing.T, to peer.ID, b []byte) ([]byte, error) {
	t.Helper()
	s, err := m.host.NewStream(t.Context(), to, Prefix+"/kad/1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Reset()
	s.Write(b) // it may be refused before the end
	s.CloseWrite()
	return io.ReadAll(s)
}

func framed(t testing.TB, m *pb.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(protowire.AppendVarint(nil, uint64(len(b))), b...)
}

// TestStrangers: a server stores only the sender's own entries, short ones, and few for each
// sender.
func TestStrangers(t *testing.T) {
	n := newNet(t, 1)
	server := n.servers[0]
	stranger, other := n.open(identity.New(), Options{Realm: discovery.PublicRealm()}), n.open(identity.New(), Options{Realm: discovery.PublicRealm()})
	if err := stranger.host.Connect(t.Context(), server.at()); err != nil {
		t.Fatal(err)
	}
	value := func(of *node, value []byte) *pb.Message {
		key := []byte(keyOf(of.self))
		return &pb.Message{Type: pb.Message_PUT_VALUE, Key: key, Record: &recpb.Record{Key: key, Value: value}}
	}
	put := func(of *node, v []byte) []byte { return framed(t, value(of, v)) }
	padded := value(stranger, discoverytest.Record(stranger.key, 3).Bytes())
	padded.Record.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 99, protowire.BytesType), make([]byte, 8000)))
	provides := func(p peer.ID, key []byte, addresses int) []byte {
		m := &pb.Message_Peer{Id: []byte(p)}
		for i := range addresses {
			m.Addrs = append(m.Addrs, ma.StringCast(fmt.Sprintf("/ip4/192.0.2.1/tcp/%d", i+1)).Bytes())
		}
		return framed(t, &pb.Message{Type: pb.Message_ADD_PROVIDER, Key: key, ProviderPeers: []*pb.Message_Peer{m}})
	}
	mh := func(i byte) []byte { return append([]byte{0x12, 0x20}, bytes.Repeat([]byte{i}, 32)...) }
	for name, b := range map[string][]byte{
		"another's record":       put(other, discoverytest.Record(other.key, 1).Bytes()),
		"a record of nobody":     put(stranger, []byte("x")),
		"another's under mine":   put(stranger, discoverytest.Record(other.key, 1).Bytes()),
		"another as a provider":  provides(other.self, mh(1), 1),
		"a short key":            provides(stranger.self, []byte("x"), 1),
		"no address":             provides(stranger.self, mh(1), 0),
		"a long message":         append(protowire.AppendVarint(nil, 4<<20), make([]byte, 1<<20)...),
		"a long length":          bytes.Repeat([]byte{0xff}, 20),
		"no message":             {3, 0xff, 0xff, 0xff},
		"an unknown type":        framed(t, &pb.Message{Type: 77}),
		"a value without record": framed(t, &pb.Message{Type: pb.Message_PUT_VALUE, Key: []byte("/agentsite/x")}),
		"no key":                 framed(t, &pb.Message{Type: pb.Message_FIND_NODE}),
	} {
		if got, err := stranger.say(t, server.self, b); err == nil || len(got) > 0 {
			t.Errorf("who sends %s is answered %x, %v", name, got, err)
		}
	}
	if got, err := stranger.say(t, server.self, framed(t, padded)); err != nil || len(got) == 0 {
		t.Errorf("a site's own record: %v", err)
	}
	if r, err := server.library.GetValue(t.Context(), keyOf(stranger.self)); err != nil || len(r) == 0 {
		t.Error(err)
	}
	store := server.store
	for e := store.order.Front(); e != nil; e = e.Next() {
		if n := len(e.Value.(*entry).value); n > 2*discovery.MaxRecord {
			t.Errorf("%d bytes are kept of a record", n)
		}
	}
	for i := range 8 {
		if _, err := stranger.say(t, server.self, provides(stranger.self, mh(1), 40+i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(server.addresses(stranger.self)); n > maxAddrsPerProvider+maxAddresses {
		t.Errorf("%d addresses are kept of one peer", n)
	}
	var streams []network.Stream
	ping := framed(t, &pb.Message{Type: pb.Message_PING})
	for end := time.Now().Add(10 * time.Second); len(streams) < maxRequestsPerPeer; {
		s, err := stranger.host.NewStream(t.Context(), server.self, Prefix+"/kad/1.0.0")
		if err == nil {
			defer s.Reset()
			_, err = s.Write(ping)
		}
		if err == nil {
			_, err = readMessage(bufio.NewReader(s)) // it is served now
		}
		if err == nil {
			streams = append(streams, s)
		} else if time.Now().After(end) { // those before may not have ended there yet
			t.Fatal(err)
		}
	}
	if _, err := stranger.say(t, server.self, framed(t, &pb.Message{Type: pb.Message_PING})); err == nil {
		t.Errorf("one has more than %d streams", len(streams))
	}
	if err := other.contact(t.Context(), server.at()); err != nil {
		t.Errorf("another is not served: %v", err)
	}
	if server.host.ConnManager().IsProtected(stranger.self, "") {
		t.Error("who says that he is a server has a connection that is kept")
	}
}

// TestSilentStrangers: keys of one address that open streams and say nothing keep nobody
// else's request out, and their neighbours' for seconds.
func TestSilentStrangers(t *testing.T) {
	n := newNet(t, 1)
	server := n.servers[0]
	for range maxRequests / maxRequestsPerPeer {
		h, err := p2p.New(p2p.Options{Key: identity.New(), Listen: []string{"/ip4/127.0.0.2/tcp/0"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		connect(t, h, server)
		for range maxRequestsPerPeer {
			if s, err := h.NewStream(t.Context(), server.self, Prefix+"/kad/1.0.0"); err == nil {
				s.Write([]byte{100}) // the length of what never comes
			}
		}
	}
	neighbour, err := p2p.New(p2p.Options{Key: identity.New(), Listen: []string{"/ip4/127.0.0.2/tcp/0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { neighbour.Close() })
	other := n.open(identity.New(), Options{Realm: discovery.PublicRealm()})
	ping := framed(t, &pb.Message{Type: pb.Message_PING})
	for name, c := range map[string]struct {
		*node
		within time.Duration
	}{"another": {other, 2 * time.Second}, "a neighbour": {&node{host: neighbour}, 3 * readTimeout}} {
		connect(t, c.host, server)
		begun := time.Now()
		for {
			if got, err := c.say(t, server.self, ping); err == nil && len(got) > 0 {
				break
			} else if time.Since(begun) > c.within {
				t.Errorf("%s is not served within %v: %v", name, c.within, err)
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// connect connects to a node. A busy machine may not finish a handshake in time.
func connect(t *testing.T, h *p2p.Host, to *node) {
	t.Helper()
	var err error
	for range 5 {
		if err = h.Connect(t.Context(), to.at()); err == nil {
			return
		}
	}
	t.Fatal(err)
}

func TestStore(t *testing.T) {
	s := newStore(func(string) netip.Prefix { return netip.Prefix{} }, func(string) {})
	put := func(key string) error { return s.Put(t.Context(), ds.NewKey(key), []byte("x")) }
	for i := range maxEntriesPerPeer {
		if err := put(fmt.Sprintf("/providers/K%d/ALICE", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("/providers/MORE/ALICE"); err == nil {
		t.Error("one has more than each may")
	}
	if err := put("/providers/K0/ALICE"); err != nil {
		t.Errorf("what is there cannot be said again: %v", err)
	}
	for i := range maxProviders + 10 {
		if err := put(fmt.Sprintf("/providers/K0/BOB%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for prefix, want := range map[string]int{"/providers/K0": maxProviders, "/providers/K1": 1, "/providers/K": 0, "/providers/": maxEntriesPerPeer + maxProviders + 10, "/agentsite": 0, "": 0} {
		r, err := s.Query(t.Context(), query.Query{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		if all, err := r.Rest(); err != nil || len(all) != want {
			t.Errorf("%q has %d entries, %v, not %d", prefix, len(all), err, want)
		}
	}
	if err := s.Delete(t.Context(), ds.NewKey("/providers/K1/ALICE")); err != nil {
		t.Error(err)
	}
	if err := put("/providers/MORE/ALICE"); err != nil {
		t.Errorf("there is room again: %v", err)
	}
	if err := s.Put(t.Context(), ds.NewKey("/agentsite/X"), make([]byte, maxValueSize+1)); err == nil {
		t.Error("a long value is kept")
	}
	for i := range 2 * maxEntriesPerPrefix {
		put(fmt.Sprintf("/agentsite/EVE%d", i))
	}
	if n := s.order.Len(); n != maxEntriesPerPrefix {
		t.Errorf("%d entries of one network", n)
	}
	s.empty(t)
}

// empty drops everything, and looks whether anything is left.
func (s *store) empty(t testing.TB) {
	for s.order.Len() > 0 {
		s.drop(s.order.Front())
	}
	if len(s.folders) > 0 || len(s.prefixes) > 0 || s.largest.most > 0 {
		t.Errorf("%d folders and %d networks are left", len(s.folders), len(s.prefixes))
	}
}

// TestStoreIsFull: whatever keys of one network, or of many, store, keys of others keep their
// entries. A site whose entry is refused is told so.
func TestStoreIsFull(t *testing.T) {
	from := make(map[string]netip.Prefix)
	addresses := make(map[string]bool) // as the library keeps them, of peers
	s := newStore(func(name string) netip.Prefix { return from[name] }, func(name string) { delete(addresses, name) })
	put := func(name string, n int, key string) error {
		addresses[name] = true
		from[name] = quota.Prefix(netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)}))
		return s.Put(t.Context(), ds.NewKey("/providers/"+key+"/"+name), []byte("x"))
	}
	kept := func(name, key string) bool {
		has, _ := s.Has(t.Context(), ds.NewKey("/providers/"+key+"/"+name))
		return has
	}
	all := func(name string) (all bool) {
		all = true
		for i := range 20 {
			all = all && kept(name, fmt.Sprint("H", i))
		}
		return all
	}
	honest := func(name string, n int) {
		for i := range 20 {
			if err := put(name, n, fmt.Sprint("H", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	honest("ANN", 1)
	honest("NEIGHBOUR", 2)
	for key := range 256 { // all from the neighbour's network
		for i := range 2 * reservedPerPeer {
			put(fmt.Sprint("EVE", key), 2, fmt.Sprint("E", i))
		}
	}
	if n := s.order.Len(); n > maxEntriesPerPrefix+20 || !all("NEIGHBOUR") {
		t.Errorf("one network has %d entries, or one of its keys has lost one", n)
	}
	for n := range maxEntries/maxEntriesPerPrefix + 1 { // and from many others
		for i := range maxEntriesPerPrefix {
			put(fmt.Sprint("MALLORY", n, "X", i%64), 100+n, fmt.Sprint("M", i/64))
		}
	}
	honest("LATE", 3)
	for _, name := range []string{"ANN", "LATE"} {
		if !all(name) {
			t.Errorf("%s has lost an entry", name)
		}
	}
	if n := s.order.Len(); n != maxEntries {
		t.Errorf("%d entries", n)
	}
	for n := range maxEntries / reservedPerPrefix { // until all have few
		for i := range reservedPerPrefix {
			put(fmt.Sprint("TRUDY", n), 1000+n, fmt.Sprint("T", i))
		}
	}
	if err := put("TOOLATE", 4, "H"); err != errFull {
		t.Errorf("a table that is full says %v", err)
	}
	if err := put("ANN", 5, "H0"); err != nil || !kept("ANN", "H0") || !kept("LATE", "H0") {
		t.Errorf("one that has a place cannot say so again: %v", err)
	}
	entries := make(map[string]bool)
	for at := s.order.Front(); at != nil; at = at.Next() {
		entries[at.Value.(*entry).name] = true
	}
	if !maps.Equal(addresses, entries) {
		t.Errorf("addresses of %d peers are kept, and entries of %d", len(addresses), len(entries))
	}
	s.empty(t)
}

func TestSelectAddrs(t *testing.T) {
	var all []ma.Multiaddr
	for _, text := range []string{"/ip4/127.0.0.1/tcp/1", "/ip4/192.168.1.7/tcp/1"} {
		all = append(all, ma.StringCast(text))
	}
	for i := range 20 {
		all = append(all, ma.StringCast(fmt.Sprintf("/ip4/198.51.101.%d/tcp/1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN/p2p-circuit", i)))
	}
	public := ma.StringCast("/ip4/198.51.101.7/udp/8475/quic-v1")
	got := selectAddrs(append(all, public))
	if len(got) != maxRelayed+3 || !ma.Contains(got, public) || slices.IndexFunc(got, direct) != maxRelayed || !got[maxRelayed].Equal(public) {
		t.Error(got)
	}
}

// FuzzValidator: of two values that strangers sent, the selected one is a record of the site.
func FuzzValidator(f *testing.F) {
	key := discoverytest.Key()
	under := "/agentsite/" + key.ID().PeerID()
	old, now := discoverytest.Record(key, 1).Bytes(), discoverytest.Record(key, 2).Bytes()
	f.Add(under, old, now)
	f.Add(under, now, []byte{})
	f.Add("/agentsite/", old, now)
	f.Add(under+"/", old, discoverytest.Record(identity.New(), 3).Bytes())
	f.Fuzz(func(t *testing.T, key string, a, b []byte) {
		var v validator
		okA, okB := v.Validate(key, a) == nil, v.Validate(key, b) == nil
		i, err := v.Select(key, [][]byte{a, b})
		if (err == nil) != (okA || okB) || i < 0 || i > 1 || err == nil && v.Validate(key, [][]byte{a, b}[i]) != nil {
			t.Fatalf("of %v and %v it takes %d, %v", okA, okB, i, err)
		}
		if okA && key != under || okB && key != under {
			t.Fatalf("%q is the key of a site whose record nobody has", key)
		}
	})
}

// FuzzDHTAnswer: whatever a server says, the library can work with what is passed on.
func FuzzDHTAnswer(f *testing.F) {
	self, site := peer.ID("self"), discoverytest.Key()
	some := &pb.Message_Peer{Id: []byte(mustPeer(f, site)), Addrs: [][]byte{ma.StringCast("/ip4/192.0.2.1/tcp/1").Bytes()}}
	for kind := range pb.Message_MessageType(6) {
		b := framed(f, &pb.Message{Type: kind, Key: []byte("k"), Record: &recpb.Record{Key: []byte("k")}, CloserPeers: []*pb.Message_Peer{some, some}, ProviderPeers: []*pb.Message_Peer{some, {}}})
		f.Add(int32(kind), b)
	}
	f.Add(int32(0), []byte{6, 8, 3, 0x42, 0, 0x4a, 0})
	f.Fuzz(func(t *testing.T, kind int32, b []byte) {
		to := &pb.Message{Type: pb.Message_MessageType(kind), Key: []byte("k")}
		b, err := readMessage(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		a, err := decodeAnswer(to, b, self)
		if err != nil {
			return
		}
		if a.Type != to.Type || a.Type == pb.Message_PUT_VALUE && a.Record == nil || a.Record != nil && string(a.Record.Key) != "k" {
			t.Fatalf("%v is passed on", a)
		}
		if len(a.CloserPeers) > maxCloser || len(a.ProviderPeers) > maxProviders {
			t.Fatalf("%d and %d peers", len(a.CloserPeers), len(a.ProviderPeers))
		}
		for _, p := range slices.Concat(pb.PBPeersToPeerInfos(a.CloserPeers), pb.PBPeersToPeerInfos(a.ProviderPeers)) {
			if p.ID.Validate() != nil || len(p.Addrs) > maxAddresses {
				t.Fatalf("the peer %v is passed on", p)
			}
		}
		if slices.ContainsFunc(pb.PBPeersToPeerInfos(a.CloserPeers), func(p *peer.AddrInfo) bool { return p.ID == self }) {
			t.Fatal("who asks is told of himself")
		}
	})
}

// FuzzRequest: whatever a stranger sends, no long message is read, and none of it is kept
// that is another's.
func FuzzRequest(f *testing.F) {
	from := mustPeer(f, discoverytest.Key())
	f.Add(framed(f, &pb.Message{Type: pb.Message_PUT_VALUE, Key: []byte(keyOf(from)), Record: &recpb.Record{Key: []byte(keyOf(from))}}))
	f.Add(framed(f, &pb.Message{Type: pb.Message_ADD_PROVIDER, Key: make([]byte, keySize), ProviderPeers: []*pb.Message_Peer{{Id: []byte(from)}, {}}}))
	f.Add(append(protowire.AppendVarint(nil, maxRequest+1), make([]byte, maxRequest+1)...))
	h := listen(f, identity.New(), false)
	f.Cleanup(func() { h.Close() })
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(&limitedStream{Stream: only{Reader: bytes.NewReader(b)}})
		for {
			b, err := readMessage(r)
			if err != nil {
				return
			}
			m := new(pb.Message)
			if len(b) > maxRequest {
				t.Fatalf("%d bytes are read", len(b))
			}
			if proto.Unmarshal(b, m) != nil {
				return
			}
			sanitizeRequest(h, from, m)
			if m.Record != nil && string(m.Key) != keyOf(from) || len(m.ProviderPeers) > 1 || len(m.CloserPeers) > 0 {
				t.Fatalf("%v is kept", m)
			}
			for _, p := range m.ProviderPeers {
				if string(p.Id) != string(from) || len(p.Addrs) > maxAddresses {
					t.Fatalf("%v is kept", p)
				}
			}
		}
	})
}

// only is a stream that is read.
type only struct {
	network.Stream
	io.Reader
}

func (o only) Read(b []byte) (int, error)    { return o.Reader.Read(b) }
func (only) SetReadDeadline(time.Time) error { return nil }

func mustPeer(t testing.TB, key identity.Key) peer.ID {
	t.Helper()
	p, err := peer.Decode(key.ID().PeerID())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestProviderAddresses: of a stranger that announces itself with other addresses each time, a
// server keeps those of its last announcement.
func TestProviderAddresses(t *testing.T) {
	n := newNet(t, 1)
	server := n.servers[0]
	stranger := n.open(identity.New(), Options{Realm: realm(t, "home")})
	for round := range 6 {
		var at []ma.Multiaddr
		for i := range 12 {
			at = append(at, ma.StringCast(fmt.Sprintf("/ip4/198.51.100.%d/tcp/%d", i, 1000+round)))
		}
		key := stranger.DHT.key("site", fmt.Sprint(round)).Hash()
		if err := stranger.messenger.PutProviderAddrs(t.Context(), server.self, key, peer.AddrInfo{ID: stranger.self, Addrs: at}); err != nil {
			t.Fatal(err)
		}
	}
	kept := 0
	server.host.Peerstore().UpdateAddrs(stranger.self, peerstore.TempAddrTTL, 0)
	for _, a := range server.host.Peerstore().Addrs(stranger.self) {
		if strings.HasPrefix(a.String(), "/ip4/198.51.100.") {
			kept++
		}
	}
	if kept != 12 {
		t.Errorf("%d addresses are kept", kept)
	}
}
