package gossip

import (
	"bytes"
	"testing"

	"agentsite/discovery"
	"agentsite/node/identity"
)

func is(sequence uint64) message { return message{Kind: alive, Sequence: sequence} }

func TestMessage(t *testing.T) {
	r, id := newRealm(t, "home"), identity.New().ID()
	m := message{Kind: alive, Sequence: 1<<64 - 1, Digest: [32]byte{1}}
	b := m.seal(r, id)
	if len(b) > maxMessage {
		t.Errorf("%d bytes", len(b))
	}
	got, err := decode(r, id, b)
	if err != nil || got.Sequence != m.Sequence || got.Digest != m.Digest || got.Kind != alive {
		t.Errorf("%+v, %v", got, err)
	}
	newer := message{Version: 2, Kind: alive, Sequence: 1}
	newer.MAC = newer.mac(r, id)
	for name, bad := range map[string][]byte{
		"a foreign realm":      m.seal(newRealm(t, "home"), id),
		"the public realm":     m.seal(discovery.PublicRealm(), id),
		"another origin's":     m.seal(r, identity.New().ID()),
		"no proof":             m.encode(),
		"changed":              bytes.Replace(b, []byte{0xff}, []byte{0xfe}, 1),
		"a site without any":   message{Kind: alive}.seal(r, id),
		"a look with one":      message{Kind: query, Sequence: 1}.seal(r, id),
		"no kind":              message{Sequence: 1}.seal(r, id),
		"a kind that is new":   message{Kind: query + 1, Sequence: 1}.seal(r, id),
		"a newer version":      newer.encode(),
		"with something after": append(bytes.Clone(b), 0),
		"cut":                  b[:len(b)-1],
		"nothing":              nil,
		"too long":             make([]byte, maxMessage+1),
	} {
		if _, err := decode(r, id, bad); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if topic := topicOf(r); !isTopic(topic) || topic == topicOf(newRealm(t, "home")) || isTopic(forwarderTopic) ||
		isTopic(topic+"0") || isTopic(topics+topic[len(topics):len(topic)-2]+"AB") || isTopic(topic[1:]) {
		t.Error("the topic of a realm, or what is none, is not known for it")
	}
}

// FuzzGossip: whatever is accepted was written by a member of the realm, in one way.
func FuzzGossip(f *testing.F) {
	realm, err := discovery.ParseRealm("home:aaaaaaaaaaaaaaaaaaaaaaaaaa")
	if err != nil {
		f.Fatal(err)
	}
	var id identity.ID
	id[0] = 9
	for _, m := range []message{is(1), {Kind: goodbye, Sequence: 1 << 40, Digest: [32]byte{1}}, {Kind: query}} {
		f.Add(m.seal(realm, id), uint64(1), true)
	}
	f.Add([]byte{0xa1, 1, 1}, uint64(0), false)
	f.Fuzz(func(t *testing.T, b []byte, number uint64, direct bool) {
		j := newMessageFilter(realm)
		m, result := j.check(start0, id, direct, number, b)
		switch result {
		case accepted:
			if !bytes.Equal(m.seal(realm, id), b) || len(b) > maxMessage {
				t.Fatalf("%x is accepted as %+v", b, m)
			}
			if _, again := j.check(start0, id, direct, number, b); again != ignored {
				t.Fatalf("%x is accepted twice", b)
			}
		case invalid:
			if !direct {
				t.Fatalf("a forwarder is blamed for %x", b)
			}
		}
	})
}
