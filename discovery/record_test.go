package discovery

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/node/identity"

	"github.com/fxamacker/cbor/v2"
)

func record(key identity.Key) Record {
	return Record{
		Site: key.ID(), Sequence: 1, Name: "greenhouse", Lifetime: 24 * time.Hour,
		Addresses: []string{"http://" + HostName(key.ID()) + ":8473/mcp", "http://192.0.2.7:8473/mcp", "http://[2001:db8::7]:8473/mcp"},
	}
}

func sign(t testing.TB, key identity.Key, r Record) *Signed {
	t.Helper()
	s, err := r.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// greenhouses is an offer of 30 devices: their measurements and switches, many alike.
func greenhouses() []Kind {
	measurement := Kind{Kind: "measurement"}
	for _, what := range []string{"temperature", "humidity", "pressure", "soil", "light", "co2", "wind", "rain", "battery", "load"} {
		for _, where := range []string{"", "-north", "-south"} {
			measurement.Points = append(measurement.Points, what+where)
		}
	}
	return []Kind{
		measurement,
		{Kind: "switch", Points: []string{"pump", "heater", "lamp", "fan", "mist", "valve"}},
		{Kind: "level", Points: []string{"vent", "shade"}},
		{Kind: "event", Points: []string{"door", "tank-empty"}},
	}
}

func TestRecord(t *testing.T) {
	key := identity.New()
	r := record(key)
	r.Offer = greenhouses()
	before := fmt.Sprint(r.Offer)
	s := sign(t, key, r)
	if fmt.Sprint(r.Offer) != before {
		t.Error("what was signed is in another order now")
	}
	whole, short := s.Bytes(), s.Short()
	t.Logf("30 devices: %d bytes, %d without the offer", len(whole), len(short))
	if len(whole) > MaxRecord {
		t.Errorf("a site of 30 devices has %d bytes", len(whole))
	}
	for _, b := range [][]byte{whole, short} {
		got, err := Open(b)
		if err != nil {
			t.Fatal(err)
		}
		want := s.Record
		if len(b) == len(short) {
			want.Offer = nil
		}
		if !reflect.DeepEqual(got.Record, want) {
			t.Errorf("%+v, want %+v", got.Record, want)
		}
		if !bytes.Equal(got.Short(), short) {
			t.Error("its short form is another one")
		}
	}
	if again := sign(t, key, r); !bytes.Equal(again.Bytes(), whole) {
		t.Error("the same record has two forms")
	}
}

// TestLongest: a record within the limits of each field fits the limit of the whole, or is refused
// with advice.
func TestLongest(t *testing.T) {
	key := identity.New()
	r := record(key)
	r.Name, r.Sequence, r.Lifetime = strings.Repeat("n", maxName), 1<<64-1, MaxLifetime
	r.Addresses = nil
	for i := range maxAddresses {
		r.Addresses = append(r.Addresses, fmt.Sprintf("https://[2001:db8:1111:2222:3333:4444:5555:%d]:65535/mcp", 6666+i))
	}
	r.Digest[0] = 1
	t.Logf("8 addresses of IPv6: %d bytes", len(sign(t, key, r).Short()))

	r.Addresses[0] = "https://" + strings.Repeat("a", 63) + "." + strings.Repeat("b", 40) + ":65535/mcp"
	if _, err := r.Sign(key); err == nil || !strings.Contains(err.Error(), "fewer or shorter addresses") {
		t.Error(err)
	}
	r = record(key)
	r.Offer = []Kind{{Kind: "measurement"}}
	for i := range maxPoints {
		r.Offer[0].Points = append(r.Offer[0].Points, fmt.Sprintf("point-%d", i))
	}
	if _, err := r.Sign(key); err == nil || !strings.Contains(err.Error(), "make fewer points public") {
		t.Error(err)
	}
}

func TestSignRefuses(t *testing.T) {
	key := identity.New()
	offer := func(kinds ...Kind) func(*Record) { return func(r *Record) { r.Offer = kinds } }
	for _, test := range []struct {
		word   string // of the field that is wrong
		change func(*Record)
	}{
		{"key", func(r *Record) { r.Site = identity.New().ID() }},
		{"sequence", func(r *Record) { r.Sequence = 0 }},
		{"Greenhouse", func(r *Record) { r.Name = "Greenhouse" }},
		{"name a site", func(r *Record) { r.Name = "" }},
		{"addresses", func(r *Record) { r.Addresses = nil }},
		{"lifetime", func(r *Record) { r.Lifetime += time.Millisecond }},
		{"lifetime", func(r *Record) { r.Lifetime = time.Second }},
		{"x y", offer(Kind{Kind: "x y", Points: []string{"a"}})},
		{"points", offer(Kind{Kind: "x", Points: []string{"a", "a"}})},
		{"kinds", offer(Kind{Kind: "x", Points: []string{"a"}}, Kind{Kind: "x", Points: []string{"a"}})},
		{"points", offer(Kind{Kind: "x"})},
		{"a/b", offer(Kind{Kind: "x", Points: []string{"a/b"}})},
		{"kinds", offer(make([]Kind, 17)...)},
	} {
		r := record(key)
		test.change(&r)
		if _, err := r.Sign(key); err == nil || !strings.Contains(err.Error(), test.word) {
			t.Errorf("%v, want %s", err, test.word)
		}
	}
}

const (
	relay   = "/ip4/203.0.113.5/udp/8475/quic-v1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
	circuit = relay + "/p2p-circuit"
)

func TestAddresses(t *testing.T) {
	for _, good := range []string{
		"http://192.0.2.7:8473/mcp", "https://greenhouse.local/mcp", "https://[2001:db8::1]:8473/mcp", "http://a", "https://example.org:443/sites/a%20b",
		"/ip4/192.0.2.7/tcp/8475", "/ip6/2001:db8::7/udp/8475/quic-v1", "/dns4/relay.example/udp/8475/quic-v1", circuit,
	} {
		if err := checkAddress(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{
		"", "192.0.2.7:8473", "ftp://a", "http://", "http:///mcp", "http://a b/", "http://a/?q", "http://a/#f", "http://u@a/", "http://a/?", "//a/b",
		"http://a:0/", "http://a:99999999999999999999/" + strings.Repeat("x", 128), "http://a/ü", "http://a/\x00", "javascript:alert(1)", "http://[::1/", "HTTP://a/", "file:///etc/passwd",
		"/", "/ip4/192.0.2.7/tcp/8475/", "/ip4/192.0.2.7/tcp/08475", "/ip6/2001:DB8::7/tcp/1", "/ip4/192.0.2.777/tcp/1", "/unix/etc/passwd",
		relay, circuit + "/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN", "/ip4/192.0.2.7/tcp/1/p2p-circuit", "/p2p-circuit",
		strings.TrimPrefix(circuit, "/ip4/203.0.113.5/udp/8475/quic-v1"), "/dns4/ü/tcp/1", "/dns4/a b/tcp/1", circuit + "/p2p-circuit",
		"/dns4/" + strings.Repeat("a", 122) + "/tcp/1", "/ip4/192.0.2.7/tcp/8475/ipfs/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN/p2p-circuit",
	} {
		if err := checkAddress(bad); err == nil {
			t.Errorf("%q is an address", bad)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	key, other := identity.New(), identity.New()
	r := record(key)
	r.Offer = []Kind{{Kind: "switch", Points: []string{"lamp"}}}
	s := sign(t, key, r)
	must := func(v any) []byte {
		b, err := form.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	forge := func(change func(*envelope)) []byte {
		e := envelope{version, s.body, s.signature, s.offer}
		change(&e)
		return must(e)
	}
	// signed is a body that the site signed, though it is none.
	signed := func(change func(map[int]any)) []byte {
		var m map[int]any
		if err := cbor.Unmarshal(s.body, &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		b := must(m)
		return must(envelope{version, b, key.Sign(purpose, b), nil})
	}
	nothing := must([]Kind{})
	empty := envelope{version, nil, nil, nothing}
	empty.Body = must(body{r.Site, 1, r.Name, r.Addresses, sha256.Sum256(nothing), 3600})
	empty.Signature = key.Sign(purpose, empty.Body)
	whole := s.Bytes()
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":           {nil, ErrMalformed},
		"text":              {[]byte("greenhouse"), ErrMalformed},
		"cut":               {whole[:len(whole)-1], ErrMalformed},
		"more behind":       {append(slices.Clone(whole), 0), ErrMalformed},
		"too long":          {append(slices.Clone(whole), make([]byte, MaxRecord)...), ErrOversized},
		"another version":   {forge(func(e *envelope) { e.Version = 2 }), ErrMalformed},
		"another's":         {forge(func(e *envelope) { e.Signature = other.Sign(purpose, s.body) }), ErrForged},
		"another purpose":   {forge(func(e *envelope) { e.Signature = key.Sign("grant", s.body) }), ErrForged},
		"no signature":      {forge(func(e *envelope) { e.Signature = nil }), ErrForged},
		"another offer":     {forge(func(e *envelope) { e.Offer = must([]Kind{{Kind: "switch", Points: []string{"bomb"}}}) }), ErrForged},
		"another body":      {forge(func(e *envelope) { e.Body = bytes.Replace(s.body, []byte("greenhouse"), []byte("greenhousf"), 1) }), ErrForged},
		"an unknown field":  {signed(func(m map[int]any) { m[9] = 1 }), ErrMalformed},
		"a missing name":    {signed(func(m map[int]any) { delete(m, 3) }), ErrMalformed},
		"a capital":         {signed(func(m map[int]any) { m[3] = "Greenhouse" }), ErrMalformed},
		"no address":        {signed(func(m map[int]any) { m[4] = []string{} }), ErrMalformed},
		"a hundred":         {signed(func(m map[int]any) { m[4] = slices.Repeat([]string{"http://a"}, 60) }), ErrMalformed},
		"an old sequence":   {signed(func(m map[int]any) { m[2] = 0 }), ErrMalformed},
		"for a second":      {signed(func(m map[int]any) { m[6] = 1 }), ErrMalformed},
		"for ever":          {signed(func(m map[int]any) { m[6] = uint32(1<<32 - 1) }), ErrMalformed},
		"long addresses":    {signed(func(m map[int]any) { m[4] = slices.Repeat([]string{"http://a/" + strings.Repeat("b", 119)}, 5) }), ErrOversized},
		"nobody":            {signed(func(m map[int]any) { m[1] = make([]byte, 32) }), ErrMalformed},
		"an empty offer":    {must(empty), ErrMalformed},
		"a tag":             {append([]byte{0xc1}, whole...), ErrMalformed},
		"indefinite length": {append(append([]byte{0xbf}, whole[1:]...), 0xff), ErrMalformed},
	} {
		if got, err := Open(c.b); !errors.Is(err, c.want) || got != nil {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
	if _, err := Open(forge(func(e *envelope) { e.Version = 2 })); err == nil || !strings.Contains(err.Error(), "newer agentsite") {
		t.Error(err)
	}
}

// TestKindsOfAddresses: each sort of address is given to clients that can use it.
func TestKindsOfAddresses(t *testing.T) {
	key := identity.New()
	r := record(key)
	urls := r.Addresses[1:]
	r.Addresses = append([]string{"/ip4/192.0.2.7/udp/8473/quic-v1", circuit}, urls...)
	s := Site{Signed: sign(t, key, r)}
	if got := s.URLs(); !slices.Equal(got, urls) {
		t.Error(got)
	}
	if got := s.Multiaddrs(); !slices.Equal(got, r.Addresses[:2]) {
		t.Error(got)
	}
}

func TestLabel(t *testing.T) {
	id, err := identity.Parse("12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN")
	if err != nil {
		t.Fatal(err)
	}
	if got := HostName(id); got != "agentsite-hnvcppgo.local" {
		t.Error(got, hex.EncodeToString(id[:5]))
	}
}

// FuzzRecord: whatever is read is written the same again, and within the bounds.
func FuzzRecord(f *testing.F) {
	key := identity.New()
	r := record(key)
	f.Add(sign(f, key, r).Bytes())
	r.Offer = greenhouses()
	f.Add(sign(f, key, r).Bytes())
	f.Add(sign(f, key, r).Short())
	r.Addresses = []string{r.Addresses[0], "/ip4/192.0.2.7/udp/8473/quic-v1", circuit}
	f.Add(sign(f, key, r).Bytes())
	f.Add([]byte{0xa1, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := read(b)
		if err != nil {
			if !errors.Is(err, ErrOversized) && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrForged) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(s.Bytes(), b) {
			t.Fatalf("%x is written as %x", b, s.Bytes())
		}
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
	})
}
