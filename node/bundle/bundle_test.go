package bundle

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/identity"
)

func good() Content {
	return Content{
		Name: "frost", Kind: "rule", Definition: "when: need/temperature < 5 Cel\nhold: { need/heater: on }\n",
		Needs: []Need{{Name: "heater", Kind: device.KindSwitch, For: "warms"}, {Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel"}},
		May:   "set need/heater max 5m", Created: 1_790_000_000,
	}
}

// forge signs a content that Seal would refuse.
func forge(t testing.TB, key identity.Key, content any) []byte {
	t.Helper()
	if c, ok := content.(Content); ok {
		content = c.signed()
	}
	raw, err := codec.Encode(content)
	if err != nil {
		t.Fatal(err)
	}
	id := digest(key.ID(), raw)
	b, err := codec.Encode(file{version, key.ID(), raw, key.Sign(purpose, id[:])})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSealOpen(t *testing.T) {
	key := identity.New()
	b, err := Seal(key, good())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Open(b)
	if err != nil || got.Author != key.ID() || fmt.Sprint(got.Content) != fmt.Sprint(good()) || got.Excess() != nil {
		t.Fatal(got, err)
	}
	again, err := Seal(key, good())
	if err != nil || !bytes.Equal(b, again) {
		t.Error("two bundles of one content differ")
	}
	// No bit of it can be changed, and no end cut off.
	for i := range b {
		changed := bytes.Clone(b)
		changed[i] ^= 1 << (i % 8)
		if _, err := Open(changed); err == nil {
			t.Fatalf("byte %d is changed, and it is accepted", i)
		}
		if _, err := Open(b[:i]); err == nil {
			t.Fatalf("it is cut at %d, and accepted", i)
		}
	}
	if _, err := Open(append(bytes.Clone(b), 0)); err == nil {
		t.Error("more behind its end is accepted")
	}
}

// TestHostileBundles: each of these is signed well by its author, and refused in one line of text.
func TestHostileBundles(t *testing.T) {
	key := identity.New()
	type more struct {
		signedContent
		Command string `cbor:"10,keyasint"`
	}
	change := func(change func(*Content)) Content {
		c := good()
		change(&c)
		return c
	}
	needs := make([]Need, 10_000)
	for i := range needs {
		needs[i] = Need{Name: fmt.Sprintf("n%06d", i), Kind: device.KindSwitch}
	}
	deep := any("x")
	for range 100 {
		deep = []any{deep}
	}
	for name, content := range map[string]any{
		"a name with a path":         change(func(c *Content) { c.Name = "../frost" }),
		"a name of a principal":      change(func(c *Content) { c.Name = "rule:frost" }),
		"a name that looks alike":    change(func(c *Content) { c.Name = "frоst" }), // Cyrillic
		"a name turned around":       change(func(c *Content) { c.Name = "fr\u202eost" }),
		"no name":                    change(func(c *Content) { c.Name = "" }),
		"a program":                  change(func(c *Content) { c.Kind = "mcp" }),
		"a link to another site":     change(func(c *Content) { c.Kind = "remote" }),
		"a kind that looks alike":    change(func(c *Content) { c.Kind = "rulе" }),
		"an escape sequence":         change(func(c *Content) { c.Definition += "# \x1b[31m" }),
		"a text turned around":       change(func(c *Content) { c.Definition += "# \u202e" }),
		"an invisible character":     change(func(c *Content) { c.Definition += "# \u200b" }),
		"a line separator":           change(func(c *Content) { c.Definition += "# \u2028" }),
		"a carriage return":          change(func(c *Content) { c.Definition += "\r" }),
		"a long definition":          change(func(c *Content) { c.Definition = strings.Repeat("x", maxText+1) }),
		"10,000 needs":               change(func(c *Content) { c.Needs = needs[:3_000] }),
		"33 needs":                   change(func(c *Content) { c.Needs = needs[:33] }),
		"needs not sorted":           change(func(c *Content) { c.Needs[0], c.Needs[1] = c.Needs[1], c.Needs[0] }),
		"a need twice":               change(func(c *Content) { c.Needs[1].Name = c.Needs[0].Name }),
		"a need with a path":         change(func(c *Content) { c.Needs[0].Name = "../heater" }),
		"a need of no kind":          change(func(c *Content) { c.Needs[0].Kind = "door" }),
		"a need of lines":            change(func(c *Content) { c.Needs[0].For = "warms\nall" }),
		"a unit that is an escape":   change(func(c *Content) { c.Needs[1].Unit = "\x1b[2J" }),
		"a long text of a need":      change(func(c *Content) { c.Needs[0].For = strings.Repeat("x", 1000) }),
		"a wish that is none":        change(func(c *Content) { c.May = "everything" }),
		"a wish in another form":     change(func(c *Content) { c.May = "set  need/heater" }),
		"a long wish":                change(func(c *Content) { c.May = "set need/heater" + strings.Repeat(" max 5m", 1000) }),
		"no date":                    change(func(c *Content) { c.Created = 0 }),
		"a date of the far future":   change(func(c *Content) { c.Created = 1 << 62 }),
		"a date of the far past":     change(func(c *Content) { c.Created = -1 << 62 }),
		"another field":              more{good().signed(), "rm -r /"},
		"deep nesting":               deep,
		"deep nesting in a field":    map[int]any{1: deep},
		"a number for a text":        map[int]any{1: 7},
		"text keys":                  map[string]any{"name": "frost"},
		"not even a map":             []int{1},
		"a number of another length": map[int]any{6: uint64(1 << 63)},
	} {
		_, err := Open(forge(t, key, content))
		if err == nil || strings.ContainsAny(err.Error(), "\n\x1b\u202e") || len(err.Error()) > 300 {
			t.Errorf("%s: %v", name, err)
		} else {
			t.Logf("%s: %v", name, err)
		}
		if c, ok := content.(Content); ok {
			if _, err := Seal(key, c); err == nil {
				t.Errorf("%s is signed", name)
			}
		}
	}
}

// TestHostileFiles: a malformed bundle, or a bundle not signed by its author, is refused before its
// content is used.
func TestHostileFiles(t *testing.T) {
	key, other := identity.New(), identity.New()
	raw, _ := codec.Encode(good().signed())
	id := digest(key.ID(), raw)
	signed := key.Sign(purpose, id[:])
	widened := good()
	widened.May = "set *"
	wider, _ := codec.Encode(widened.signed())
	encode := func(v any) []byte {
		b, err := codec.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, b := range map[string][]byte{
		"nothing":                   nil,
		"text":                      []byte("when: a/b"),
		"too large":                 make([]byte, MaxBytes+1),
		"deep nesting":              bytes.Repeat([]byte{0x81}, MaxBytes),
		"a length that is a lie":    {0xa4, 0x01, 0x01, 0x02, 0x5b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"a map that is a lie":       {0xbb, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"no end":                    {0xbf, 0x01, 0x01},
		"a tag":                     append([]byte{0xd9, 0xd9, 0xf7}, encode(file{version, key.ID(), raw, signed})...),
		"another version":           encode(file{2, key.ID(), raw, signed}),
		"version 0":                 encode(file{0, key.ID(), raw, signed}),
		"a later form":              encode(map[int]any{1: 2, 7: "more"}),
		"another author":            encode(file{version, other.ID(), raw, signed}),
		"another key's signature":   encode(file{version, key.ID(), raw, other.Sign(purpose, id[:])}),
		"a signature for a grant":   encode(file{version, key.ID(), raw, key.Sign("grant", id[:])}),
		"a signature of the bytes":  encode(file{version, key.ID(), raw, key.Sign(purpose, raw)}),
		"no signature":              encode(file{version, key.ID(), raw, nil}),
		"a widened permission":      encode(file{version, key.ID(), wider, signed}),
		"a key with which all sign": encode(file{version, identity.ID{}, raw, make([]byte, 64)}),
	} {
		if _, err := Open(b); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestExcess: a wish about more than the needs is pointed out.
func TestExcess(t *testing.T) {
	for may, excess := range map[string]int{
		"": 0, "set need/heater": 0, "read need/temperature, set need/heater 0..1 max 5m 10/h": 0,
		"set *": 1, "set need": 1, "set house/heater": 1, "set need/heater+need/other": 1, "read need/temperature, stop": 1, "set need/heater, capture *": 1,
	} {
		c := good()
		c.May = may
		if may != "" {
			all, err := access.ParsePermissions(may)
			if err != nil || access.FormatPermissions(all) != may {
				t.Fatal(may, err)
			}
		}
		if got := c.Excess(); len(got) != excess {
			t.Errorf("%s: %v", may, got)
		}
	}
}

// TestImports: stored imports are read again, bounded, and verified.
func TestImports(t *testing.T) {
	key := identity.New()
	var s Imports
	add := func(name string) error {
		c := good()
		c.Name = name
		b, err := Seal(key, c)
		if err != nil {
			t.Fatal(err)
		}
		opened, err := Open(b)
		if err != nil {
			t.Fatal(err)
		}
		return s.Add(
			Import{Name: name, File: b, Bundle: opened, Bound: []BoundNeed{{"heater", "a/b"}, {"temperature", "c/d"}}}, false,
		)
	}
	for i := range maxImports {
		if err := add(fmt.Sprintf("a%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("one-more"); err == nil {
		t.Error("too many are kept")
	}
	s.Remove(0)
	if err := add("a1"); err == nil {
		t.Error("two have one name")
	}
	if err := add("a0"); err == nil {
		t.Error("what was removed comes back by itself")
	}
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeImports(b)
	if err != nil || len(got.All) != maxImports-1 || got.All[0].Author != key.ID() || len(got.Removed) != 1 {
		t.Fatal(got, err)
	}
	for i := 0; i < len(b); i += 97 {
		changed := bytes.Clone(b)
		changed[i] ^= 0x10
		if again, err := DecodeImports(changed); err == nil {
			for _, one := range again.All { // names, bindings and digests of what was removed are the site's own
				if fmt.Sprint(one.Content) == "" || one.Author != key.ID() {
					t.Errorf("byte %d is changed, and another bundle is accepted", i)
				}
			}
		}
	}
	s.Version = 2
	later, _ := importCodec.Encode(s)
	if _, err := DecodeImports(later); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Error(err)
	}
}

// FuzzBundle: no file panics, takes long, or is accepted although check refuses its content. An
// accepted file is the canonical form of its content.
func FuzzBundle(f *testing.F) {
	key := identity.New()
	b, err := Seal(key, good())
	if err != nil {
		f.Fatal(err)
	}
	raw, _ := codec.Encode(good().signed())
	f.Add(b, false)
	f.Add(raw, true)
	none := good()
	none.Needs, none.May = nil, ""
	raw, _ = codec.Encode(none.signed())
	f.Add(raw, true)
	f.Add([]byte{0xa1, 0x04, 0x9b, 0, 0, 0, 1, 0, 0, 0, 0}, true)
	f.Fuzz(func(t *testing.T, b []byte, sign bool) {
		if sign { // b is a content
			id := digest(key.ID(), b)
			var err error
			if b, err = codec.Encode(file{version, key.ID(), b, key.Sign(purpose, id[:])}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Open(b)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%q", err)
			}
			return
		}
		if sign {
			again, err := Seal(key, got.Content)
			if err != nil || !bytes.Equal(again, b) {
				t.Errorf("%v: another form of %+v is accepted", err, got.Content)
			}
		}
	})
}
