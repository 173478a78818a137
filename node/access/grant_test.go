package access

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/identity"

	"github.com/fxamacker/cbor/v2"
)

func words(t testing.TB, text string) []Permission {
	all, err := ParsePermissions(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// grant is a chain through the keys, each step with the words.
func grant(t testing.TB, text string, keys ...identity.Key) *Grant {
	var g *Grant
	for i, key := range keys[:len(keys)-1] {
		b, err := Block{Audience: keys[i+1].ID(), Permissions: words(t, text)}, error(nil)
		if g == nil {
			g, err = Issue(key, b)
		} else {
			g, err = g.Delegate(key, b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func keys(n int) []identity.Key {
	all := make([]identity.Key, n)
	for i := range all {
		all[i] = identity.New()
	}
	return all
}

func TestChain(t *testing.T) {
	k := keys(6)
	g := grant(t, "read climate/*, set fan max 10m 10/h", k[:5]...)
	again, err := ParseGrant(g.Bytes())
	if err != nil || again.ID() != g.ID() || again.Audience() != k[4].ID() || again.Issuer != k[0].ID() {
		t.Fatal(again, err)
	}
	if _, err := g.Delegate(k[4], Block{Audience: k[5].ID(), Permissions: words(t, "stop")}); err == nil || !strings.Contains(err.Error(), "can be passed on 3 times") {
		t.Error(err)
	}
	if _, err := grant(t, "stop", k[:3]...).Delegate(k[1], Block{Audience: k[5].ID(), Permissions: words(t, "stop")}); err == nil || !strings.Contains(err.Error(), "only its key") {
		t.Error(err)
	}
	large := Block{Audience: k[1].ID()}
	for i := range maxEntries {
		p := Permission{Tools: []string{"set_level"}}
		for j := range 10 {
			p.Points = append(p.Points, fmt.Sprintf("device-with-a-name-%02d%02d", i, j))
		}
		large.Permissions = append(large.Permissions, p)
	}
	if _, err := Issue(k[0], large); err == nil || !strings.Contains(err.Error(), "longer than 4096") {
		t.Error(err)
	}
}

// TestStrict: nothing is passed over, and everything has one codec.
func TestStrict(t *testing.T) {
	k := keys(2)
	loose, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	sign := func(block any) []byte {
		raw, err := loose.Marshal(block)
		if err != nil {
			t.Fatal(err)
		}
		id := k[0].ID()
		hash := hashBlock(id[:], raw)
		all, err := loose.Marshal(grantWire{Version: version, Issuer: k[0].ID(), Blocks: []signedBlock{{Block: raw, Signature: k[0].Sign(grantPurpose, hash[:])}}})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	with := func(key, value any, part map[any]any) map[any]any {
		p := map[any]any{1: []string{"set_level"}, 2: []string{"fan"}}
		for k, v := range part {
			p[k] = v
		}
		return map[any]any{1: k[1].ID(), 5: [16]byte{}, 6: []any{p}, key: value}
	}
	good := sign(with(4, 1, nil))
	if _, err := ParseGrant(good); err != nil {
		t.Fatal(err)
	}
	raw := func(hex string) cbor.RawMessage { // a value of the block's key 4
		var b []byte
		fmt.Sscanf(hex, "%x", &b)
		return b
	}
	for name, c := range map[string]struct {
		grant []byte
		want  string
	}{
		"an unknown caveat":            {sign(with(9, 1, nil)), "unknown field"},
		"one of a part":                {sign(with(4, 1, map[any]any{7: true})), "unknown field"},
		"one by its name":              {sign(with("only-at-night", true, nil)), "unknown field"},
		"a number for a text":          {sign(with(4, 1, map[any]any{1: []int{1}})), "cannot be read"},
		"a longer number":              {sign(with(4, raw("1801"), nil)), "deterministic"},
		"an end of zero":               {sign(with(4, 0, nil)), "deterministic"},
		"a null":                       {sign(with(4, nil, nil)), "deterministic"},
		"a tag":                        {sign(with(4, raw("c101"), nil)), "tag"},
		"a short key":                  {sign(with(1, []byte{1}, nil)), "deterministic"},
		"a range of a NaN":             {sign(with(4, 1, map[any]any{3: cbor.RawMessage("\x82\xf9\x7e\x00\x01")})), "NaN"},
		"a range the wrong way":        {sign(with(4, 1, map[any]any{3: []float64{2, 1}})), "not a range"},
		"a range of three":             {sign(with(4, 1, map[any]any{3: []float64{1, 2, 3}})), "cannot be read"},
		"points that are not in order": {sign(with(4, 1, map[any]any{2: []string{"fan", "climate"}})), "not sorted"},
		"a point twice":                {sign(with(4, 1, map[any]any{2: []string{"fan", "fan"}})), "not sorted"},
		"no such point":                {sign(with(4, 1, map[any]any{2: []string{"Fan"}})), "is not a point"},
		"no tool":                      {sign(with(4, 1, map[any]any{1: []string{}})), "permits nothing"},
		"a rate without a time":        {sign(with(4, 1, map[any]any{5: []int{1, 0}})), "a rate has 1 to 250 calls"},
		"a large rate":                 {sign(with(4, 1, map[any]any{5: []int{1000, 1}})), "a rate has 1 to 250 calls"},
		"no part":                      {sign(with(6, []any{}, nil)), "1 to 32 parts"},
		"an end before the beginning":  {sign(with(3, 2, nil)), "ends after it begins"}, // 4 is gone, so: until 0
		"for nobody":                   {sign(with(1, identity.ID{}, nil)), "anybody can sign"},
		"trailing bytes":               {append(bytes.Clone(good), 0), "invalid grant"},
		"truncated":                    {good[:len(good)-1], "invalid grant"},
		"another version":              {append([]byte{0x83, 2}, good[2:]...), "unknown version"},
		"empty":                        {nil, "invalid grant"},
		"too long":                     {make([]byte, maxGrant+1), "longer than 4096"},
	} {
		if name == "an end before the beginning" {
			b := with(3, 2, nil)
			b[4] = 1
			c.grant = sign(b)
		}
		if _, err := ParseGrant(c.grant); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	// A map with a key twice, which no encoder of ours can write.
	twice := sign(map[any]any{4: 1, 1: k[1].ID(), 5: [16]byte{}, 6: []any{map[any]any{1: []string{"a"}}}})
	var c grantWire
	if err := codec.Decode(twice, &c); err != nil {
		t.Fatal(err)
	}
	block := append([]byte{0xa5, 4, 2}, c.Blocks[0].Block[1:]...)
	id := k[0].ID()
	hash := hashBlock(id[:], block)
	c.Blocks[0] = signedBlock{Block: block, Signature: k[0].Sign(grantPurpose, hash[:])}
	all, err := codec.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseGrant(all); err == nil || !strings.Contains(err.Error(), "duplicate") {
		t.Error(err)
	}
}

// TestDenials name what is missing, the same whether there is such a point or not.
func TestDenials(t *testing.T) {
	k := keys(2)
	g := grant(t, "read climate, set fan 0..80 max 10m, show *", k...)
	v := 81.0
	for want, a := range map[string]agents.Ask{
		"'set climate/heater'":  {Tool: "set_level", Points: []string{"climate/heater"}},
		"'read fan/speed'":      {Tool: "read_points", Points: []string{"climate/temperature", "fan/speed"}, Effect: agents.Reads},
		"'stop'":                {Tool: "emergency_stop", Effect: agents.Returns},
		"'use water on bed/1'":  {Tool: "water", Points: []string{"bed/1"}},
		"'use water'":           {Tool: "water"},
		"a permission for this": {Tool: "set_level", Points: []string{"Fan' --until never"}},
		"0..80":                 {Tool: "set_level", Points: []string{"fan/speed"}, Value: device.Number(v)},
		"at most 10m":           {Tool: "set_level", Points: []string{"fan/speed"}, Value: device.Number(0), For: 601e9},
	} {
		if _, _, err := g.allow(a); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "never") {
			t.Errorf("%+v: %v, want %s", a, err, want)
		}
	}
}

// FuzzOpen: no bytes are taken in another form than they would be written in, and none
// that nobody signed.
func FuzzOpen(f *testing.F) {
	k := keys(5)
	for n := 2; n <= 5; n++ {
		f.Add(grant(f, "read climate/*, set fan 0..80 max 10m 10/h confirm", k[:n]...).Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := ParseGrant(b)
		if err != nil {
			return
		}
		var c grantWire
		if err := codec.Decode(b, &c); err != nil || !bytes.Equal(g.Bytes(), b) {
			t.Fatal(err)
		}
		for _, block := range g.Blocks {
			if err := block.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzBlock is FuzzOpen without signatures in its way.
func FuzzBlock(f *testing.F) {
	k := keys(2)
	var c grantWire
	if err := codec.Decode(grant(f, "read climate/*, set fan 0..80 max 10m 10/h confirm", k...).Bytes(), &c); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(c.Blocks[0].Block))
	f.Fuzz(func(t *testing.T, b []byte) {
		var block Block
		if codec.Decode(b, &block) != nil || block.check() != nil {
			return
		}
		if again, err := codec.Encode(block); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x and %x are one block", b, again)
		}
		for _, p := range block.Permissions {
			if _, err := ParsePermissions(p.String()); err != nil {
				t.Fatalf("%q cannot be read: %v", p.String(), err)
			}
		}
	})
}

// BenchmarkOpen compares a grant of four blocks with four bare signatures, alternately and by the
// fastest of each, so that other load counts little.
func BenchmarkOpen(b *testing.B) {
	k := keys(5)
	g := grant(b, "read climate/*, set fan 0..80 max 10m 10/h", k...)
	public, private, _ := ed25519.GenerateKey(nil)
	message := make([]byte, 32)
	signature := ed25519.Sign(private, message)
	open, bare := time.Hour, time.Hour
	for b.Loop() {
		begin := time.Now()
		if _, err := ParseGrant(g.Bytes()); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		for range 4 {
			if !ed25519.Verify(public, message, signature) {
				b.Fatal("not signed")
			}
		}
		open, bare = min(open, middle.Sub(begin)), min(bare, time.Since(middle))
	}
	b.ReportMetric(float64(open)/float64(bare), "x-bare(≤1.3)")
	b.ReportMetric(float64(open), "ns-min")
	b.ReportMetric(float64(len(g.Bytes())), "bytes")
}

func BenchmarkMay(b *testing.B) {
	g := grant(b, "read climate/*, set fan 0..80 max 10m 10/h", keys(5)...)
	v := 50.0
	a := agents.Ask{Tool: "set_level", Points: []string{"fan/speed"}, Value: device.Number(v)}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := g.allow(a); err != nil {
			b.Fatal(err)
		}
	}
}
