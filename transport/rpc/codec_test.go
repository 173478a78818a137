package rpc

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// anyID draws ids over their whole range.
func anyID() *rapid.Generator[ID] {
	return rapid.OneOf(
		rapid.Map(rapid.StringN(0, 30, maxIDLength), TextID),
		rapid.Map(rapid.Uint64(), NumberID),
		rapid.Map(rapid.Int64(), intID),
		rapid.SampledFrom([]ID{NumberID(math.MaxUint64), intID(math.MinInt64), NumberID(1<<53 + 1), TextID(""), TextID("1")}),
	)
}

// tree draws a value of JSON's model, its numbers within 64 bits.
func tree(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Map(rapid.Bool(), toAny[bool]), rapid.Map(rapid.String(), toAny[string]),
		rapid.Map(rapid.Int64(), toAny[int64]), rapid.Map(rapid.Uint64(), toAny[uint64]), rapid.Map(rapid.Float64(), toAny[float64]),
	}
	if depth > 0 {
		leaves = append(leaves,
			rapid.Map(rapid.SliceOfN(tree(depth-1), 0, 4), toAny[[]any]),
			rapid.Map(rapid.MapOfN(rapid.String(), tree(depth-1), 0, 4), toAny[map[string]any]))
	}
	return rapid.OneOf(leaves...)
}

func toAny[T any](v T) any { return v }

func encode(t interface{ Fatalf(string, ...any) }, c Codec, v any) []byte {
	var b bytes.Buffer
	if err := c.Encode(&b, v); err != nil {
		t.Fatalf("%s: encode %#v: %v", c.ContentType(), v, err)
	}
	return b.Bytes()
}

// TestRoundTrip takes every kind of message from JSON to CBOR and back and finds
// the same text: ids keep their type and numbers their value.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := func(label string) any { return tree(3).Draw(t, label) }
		id, method := anyID().Draw(t, "id"), rapid.StringN(1, 20, 60).Draw(t, "method")
		for _, m := range []any{
			request{version, id, method, raw("params")},
			notification{version, method, raw("params")},
			response{version, id, raw("result"), nil},
			response{version, id, nil, &Error{Code: rapid.Int().Draw(t, "code"), Message: "m", Data: raw("data")}},
		} {
			first := encode(t, JSON, m)
			var fromJSON, fromCBOR message
			if err := JSON.Decode(first, &fromJSON); err != nil {
				t.Fatalf("decode %s: %v", first, err)
			}
			if err := CBOR.Decode(encode(t, CBOR, fromJSON), &fromCBOR); err != nil {
				t.Fatalf("decode the CBOR of %s: %v", first, err)
			}
			if fromJSON.ID != fromCBOR.ID {
				t.Fatalf("the id %v came back as %v", fromJSON.ID, fromCBOR.ID)
			}
			if again := encode(t, JSON, fromCBOR); !bytes.Equal(canonicalJSON(t, first), canonicalJSON(t, again)) {
				t.Fatalf("%s came back as %s", first, again)
			}
		}
	})
}

// TestJSONText checks that text of JSON in a struct is a value of the message in either encoding.
func TestJSONText(t *testing.T) {
	type holder struct {
		Value jsontext.Value   `json:"value,omitzero"`
		List  []jsontext.Value `json:"list"`
	}
	rapid.Check(t, func(t *rapid.T) {
		text := encode(t, JSON, tree(3).Draw(t, "value"))
		first := holder{Value: text, List: []jsontext.Value{text}}
		crossed := encode(t, CBOR, first)
		if want := encode(t, CBOR, map[string]any{"value": RawJSON(text), "list": []Raw{RawJSON(text)}}); !bytes.Equal(crossed, want) {
			t.Fatalf("%s is encoded as %x, want %x", text, crossed, want)
		}
		var back holder
		if err := CBOR.DecodeStrict(crossed, &back); err != nil {
			t.Fatalf("%x: %v", crossed, err)
		}
		if a, b := encode(t, JSON, first), encode(t, JSON, back); !bytes.Equal(canonicalJSON(t, a), canonicalJSON(t, b)) {
			t.Fatalf("%s came back as %s", a, b)
		}
	})
	var back holder
	if err := CBOR.Decode(encode(t, CBOR, map[string]any{"list": []any{}}), &back); err != nil || back.Value != nil {
		t.Errorf("a value that is left out: %q, %v", back.Value, err)
	}
}

// canonicalJSON sorts names; unlike RFC 8785 it leaves integers alone.
func canonicalJSON(t *rapid.T, b []byte) []byte {
	v := jsontext.Value(bytes.Clone(b))
	if err := v.Format(jsontext.CanonicalizeRawInts(false), jsontext.ReorderRawObjects(true)); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}

func TestTranscodeNumbers(t *testing.T) {
	for _, text := range []string{
		"0", "-0", "-1", "9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551615",
		"0.1", "1e300", "100000000000000000000", "5e-324", "-2.5",
	} {
		b, err := toCBOR([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if back, err := toJSON(b); err != nil || string(back) != canonicalNumber(text) {
			t.Errorf("%s came back as %s, %v", text, back, err)
		}
	}
	for _, text := range []string{"18446744073709551616", "-9223372036854775809", "123456789012345678901234567890", "1e400"} {
		if _, err := toCBOR([]byte(text)); err == nil {
			t.Errorf("%s was taken, though it needs more than 64 bits", text)
		}
	}
}

func canonicalNumber(text string) string {
	switch text {
	case "1e300", "5e-324":
		var f float64
		json.Unmarshal([]byte(text), &f)
		b, _ := json.Marshal(f)
		return string(b)
	}
	return text
}

// TestStrict lists what neither codec lets through.
func TestStrict(t *testing.T) {
	var into struct {
		A int    `json:"a"`
		B string `json:"b"`
	}
	for name, c := range map[string]struct {
		codec Codec
		in    string
		says  string
	}{
		"duplicate name":       {JSON, `{"a":1,"a":2}`, "twice"},
		"other case":           {JSON, `{"A":1}`, "A: there is no"},
		"unknown field":        {JSON, `{"a":1,"c":2}`, "c: there is no"},
		"trailing bytes":       {JSON, `{"a":1} x`, "not valid JSON"},
		"two values":           {JSON, `{"a":1}{"a":2}`, "not valid JSON"},
		"wrong type":           {JSON, `{"a":"1"}`, "a: must be"},
		"bad UTF-8":            {JSON, "{\"b\":\"\xff\"}", "not valid JSON"},
		"NaN":                  {JSON, `{"a":NaN}`, "not valid JSON"},
		"cut off":              {JSON, `{"a":1`, "not valid JSON"},
		"empty":                {JSON, ``, "not valid JSON"},
		"escaped name twice":   {JSON, `{"a":1,"\u0061":2}`, "twice"},
		"byte order mark":      {JSON, "\ufeff{}", "not valid JSON"},
		"UTF-16":               {JSON, "\xff\xfe{\x00}\x00", "not valid JSON"},
		"overlong UTF-8":       {JSON, "{\"b\":\"\xc0\xaf\"}", "not valid JSON"},
		"lone surrogate":       {JSON, `{"b":"\ud800"}`, "not valid JSON"},
		"comment":              {JSON, `{/* */"a":1}`, "not valid JSON"},
		"NUL at the end":       {JSON, "{}\x00", "not valid JSON"},
		"__proto__":            {JSON, `{"__proto__":{"a":1}}`, "__proto__"},
		"text for an object":   {JSON, `"{}"`, "object"},
		"cbor duplicate key":   {CBOR, "\xa2\x61a\x01\x61a\x02", "duplicate"},
		"cbor other case":      {CBOR, "\xa1\x61A\x01", "A: there is no"},
		"cbor unknown field":   {CBOR, "\xa1\x61c\x01", "c: there is no"},
		"cbor trailing bytes":  {CBOR, "\xa1\x61a\x01\x00", "extraneous"},
		"cbor wrong type":      {CBOR, "\xa1\x61a\x61x", "a: must be"},
		"cbor indefinite":      {CBOR, "\xbf\x61a\x01\xff", "indefinite"},
		"cbor tag":             {CBOR, "\xc1\x01", "tag"},
		"cbor bad UTF-8":       {CBOR, "\xa1\x61b\x61\xff", "UTF-8"},
		"cbor NaN":             {CBOR, "\xa1\x61a\xf9\x7e\x00", "not valid here"},
		"cbor bytes for text":  {CBOR, "\xa1\x61b\x41x", "b"},
		"cbor a long way down": {CBOR, strings.Repeat("\x81", 40) + "\x01", "nested"},
		"cbor empty":           {CBOR, "", "EOF"},
		"cbor of JSON":         {CBOR, `{"a":1}`, ""},
		"cbor array":           {CBOR, "\x81\xa1\x61a\x01", "object"},
	} {
		err := c.codec.DecodeStrict([]byte(c.in), &into)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want something with %q", name, err, c.says)
		}
	}
}

// TestStrictEverywhere: unknown fields of a message are checked as strictly as others.
func TestStrictEverywhere(t *testing.T) {
	long := strings.Repeat("x", 30)
	for name, value := range map[string]string{
		"bad UTF-8": "\x61\xff", "a bad key": "\xa1\x61\xff\x01", "a number as a key": "\xa1\x01\x01", "a key twice": "\xa2\x61a\x01\x61a\x02",
		"a key twice, apart": "\xa3\x61b\x01\x61a\x02\x61b\x02", "a key twice, written in two ways": "\xa2\x61a\x01\x78\x01a\x02", "a long key twice": "\xa2\x78\x1e" + long + "\x01\x78\x1e" + long + "\x01",
		"undefined": "\xf7", "a simple value": "\xe1", "a longer one": "\xf8\xff", "NaN": "\xf9\x7e\x00", "infinity": "\xfa\x7f\x80\x00\x00", "a large negative": "\x3b\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		for where, in := range map[string]string{
			"unknown": "\xa3\x67jsonrpc\x632.0\x66method\x61m\x61x" + value, "in unknown": "\xa3\x67jsonrpc\x632.0\x66method\x61m\x61x\x82\x01\xa1\x61y" + value,
			"params": "\xa3\x67jsonrpc\x632.0\x66method\x61m\x66params" + value, "in params": "\xa3\x67jsonrpc\x632.0\x66method\x61m\x66params\xa2\x61x\x81" + value + "\x61y\x01",
			"a result": "\xa3\x67jsonrpc\x632.0\x62id\x01\x66result\xa1\x61x" + value, "an error": "\xa3\x67jsonrpc\x632.0\x62id\x01\x65error\xa3\x64code\x01\x67message\x61m\x61x" + value,
		} {
			if err := CBOR.Decode([]byte(in), new(message)); err == nil {
				t.Errorf("%s as %s is taken", name, where)
			}
		}
	}
	for name, value := range map[string]string{
		"bytes": "\x42\xff\xfe", "null": "\xf6", "numbers": "\x85\x3b\x7f\xff\xff\xff\xff\xff\xff\xff\x1b\xff\xff\xff\xff\xff\xff\xff\xff\xf9\x7b\xff\xfa\x7f\x7f\xff\xff\xfb\x7f\xef\xff\xff\xff\xff\xff\xff",
		"keys in any order": "\xa4\x61c\x01\x61a\xf4\x61b\xf5\x62aa\x80", "nothing": "\xa0",
	} {
		in := []byte("\xa3\x67jsonrpc\x632.0\x66method\x61m\x61x" + value)
		if err := CBOR.Decode(in, new(message)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNulls: a null is no number, bool or text that was left out.
func TestNulls(t *testing.T) {
	type optional struct {
		N    *float64 `json:"n,omitzero"`
		S    *string  `json:"s,omitzero"`
		B    *bool    `json:"b,omitzero"`
		I    *int     `json:"i,omitzero"`
		List []string `json:"list,omitzero"`
		Text string   `json:"text,omitzero"`
		Any  any      `json:"any,omitzero"`
		Raw  Raw      `json:"raw,omitzero"`
		In   *struct {
			N *float64 `json:"n"`
		} `json:"in,omitzero"`
	}
	for _, c := range []Codec{JSON, CBOR} {
		for text, ok := range map[string]bool{
			`{"n":null}`: false, `{"s":null}`: false, `{"b":null}`: false, `{"i":null}`: false, `{"in":{"n":null}}`: false,
			`{"list":null}`: true, `{"text":null}`: true, `{"in":null}`: true, `null`: true,
			`{"any":null,"raw":null}`: true, `{"any":[null],"raw":{"n":null},"s":"null"}`: true, `{}`: true, `{"n":0,"s":""}`: true,
		} {
			b := []byte(text)
			if c == CBOR {
				var err error
				if b, err = toCBOR(b); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Decode(b, new(optional)); (err == nil) != ok {
				t.Errorf("%s, %s: %v", c.ContentType(), text, err)
			}
			if err := c.DecodeStrict(b, new(optional)); (err == nil) != ok {
				t.Errorf("%s, %s, strictly: %v", c.ContentType(), text, err)
			} else if err != nil && strings.Contains(text, `"n"`) && !strings.Contains(err.Error(), "n: must be a number") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// TestStrictAsJSON: whatever CBOR is taken, the whole of it is JSON that is taken.
func TestStrictAsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := encode(t, CBOR, map[string]any{"jsonrpc": version, "id": anyID().Draw(t, "id"), "method": "m", "x": tree(3).Draw(t, "x"), "params": tree(3).Draw(t, "params")})
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		asJSON(t, b)
	})
}

func asJSON(t interface{ Fatalf(string, ...any) }, b []byte) {
	if CBOR.Decode(b, new(message)) != nil {
		return
	}
	text, err := toJSON(b)
	if err == nil {
		err = JSON.Decode(text, new(message))
	}
	if err != nil {
		t.Fatalf("%x is taken, and as JSON it is %q: %v", b, text, err)
	}
}

func TestJSONBounds(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	many := "[" + strings.Repeat("0,", maxValues) + "0]"
	quoted := `{"jsonrpc":"2.0","id":1,"method":"m","params":{"s":"` + strings.Repeat(`[{\"`, 100) + `"}}`
	for in, ok := range map[string]bool{deep: false, many: false, quoted: true, deep[1 : len(deep)-1]: true} {
		if err := checkJSONBounds([]byte(in)); (err == nil) != ok {
			t.Errorf("%.60s…: %v", in, err)
		}
	}
}

func TestID(t *testing.T) {
	for text, want := range map[string]ID{
		`"a"`: TextID("a"), `""`: TextID(""), `0`: NumberID(0), `-5`: intID(-5), `18446744073709551615`: NumberID(math.MaxUint64),
	} {
		var got ID
		if err := JSON.Decode([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %#v, %v", text, got, err)
		}
	}
	for _, text := range []string{`null`, `1.5`, `1e3`, `true`, `{}`, `[]`, `18446744073709551616`, `"` + strings.Repeat("x", maxIDLength+1) + `"`} {
		var got ID
		if err := JSON.Decode([]byte(text), &got); err == nil {
			t.Errorf("%s was taken for the id %v", text, got)
		}
	}
}

func parse(codec Codec, b []byte) (*message, *Error) {
	in := &Incoming{Codec: codec, Body: b}
	fault := in.parse()
	return &in.m, fault
}

// fuzzed decodes into all that a message becomes, and what is accepted has to
// come out again as it went in.
func fuzzed(t *testing.T, codec, other Codec, b []byte) {
	m, fault := parse(codec, b)
	if fault != nil {
		return
	}
	again, fault := parse(codec, encode(t, codec, m))
	if fault != nil || again.ID != m.ID || again.Method != m.Method {
		t.Fatalf("%q came back as %+v, %v", b, again, fault)
	}
	var crossed bytes.Buffer
	if other.Encode(&crossed, m) != nil {
		return // a number or a byte string that the other has no form for
	}
	if there, fault := parse(other, crossed.Bytes()); fault != nil || there.ID != m.ID || there.Method != m.Method {
		t.Fatalf("%q became %q and then %+v, %v", b, crossed.Bytes(), there, fault)
	}
}

var seeds = []string{
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_points","arguments":{"points":["a/b"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	`{"jsonrpc":"2.0","id":"x","method":"server/discover"}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":18446744073709551615}}`,
	`{"jsonrpc":"2.0","id":-9223372036854775808,"method":"m","params":[1.5,-0,1e300,null,true,"é",{}]}`,
}

func FuzzJSON(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) { fuzzed(t, JSON, CBOR, b) })
}

func FuzzCBOR(f *testing.F) {
	for _, s := range seeds {
		b, err := toCBOR([]byte(s))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		sameMessage(t, b)
		asJSON(t, b)
		fuzzed(t, CBOR, JSON, b)
	})
}

// TestResults: values of special Go types are encoded alike by both codecs.
func TestResults(t *testing.T) {
	type result struct {
		At    time.Time `json:"at"`
		Bytes []byte    `json:"bytes"`
	}
	r := result{time.Date(2026, 11, 21, 18, 0, 0, 500, time.UTC), []byte{0, 1, 254}}
	text, err := toJSON(encode(t, CBOR, r))
	if err != nil {
		t.Fatal(err)
	}
	if want := encode(t, JSON, r); string(text) != string(want) {
		t.Errorf("CBOR came out as %s, and JSON as %s", text, want)
	}
	var back result
	if err := CBOR.Decode(encode(t, CBOR, r), &back); err != nil || !back.At.Equal(r.At) || !bytes.Equal(back.Bytes, r.Bytes) {
		t.Errorf("%+v came back as %+v, %v", r, back, err)
	}
}

// TestDecodeFast: the fast path decodes as the library does.
func TestDecodeFast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := message{
			Version: version, ID: anyID().Draw(t, "id"), Method: rapid.String().Draw(t, "method"),
			Params: Raw{CBOR, encode(t, CBOR, tree(3).Draw(t, "params"))},
		}
		b := encode(t, CBOR, sent)
		if changed := rapid.IntRange(0, 2*len(b)).Draw(t, "at"); changed < len(b) {
			b[changed] = rapid.Byte().Draw(t, "byte")
		}
		sameMessage(t, b)
	})
	for name, b := range map[string]string{
		"a key twice":         "\xa2\x66method\x61m\x66method\x61n",
		"an empty one first":  "\xa2\x66method\x60\x66method\x61n",
		"bad UTF-8":           "\xa1\x66method\x61\xff",
		"a null":              "\xa2\x66method\x61m\x66params\xf6",
		"a number for a name": "\xa2\x01\x61m\x66method\x61n",
		"another key":         "\xa2\x61x\x81\xa1\x61y\x01\x66method\x61n",
		"an indefinite text":  "\xa1\x66method\x7f\x61m\xff",
		"a tag":               "\xa2\x66method\x61m\x66params\xc1\x01",
		"a long head":         "\xa2\x78\x06method\x79\x00\x01m\x62id\x1b\x00\x00\x00\x00\x00\x00\x00\x01",
		"a long id":           "\xa2\x66method\x61m\x62id\x79\x01\x00" + strings.Repeat("x", 256),
		"more than one":       "\xa1\x66method\x61m\xa0",
		"a list":              "\x82\x66method\x61m",
		"cut off":             "\xa2\x66method\x61m\x66params",
	} {
		t.Run(name, func(t *testing.T) { sameMessage(t, []byte(b)) })
	}
	usual := encode(t, CBOR, request{version, NumberID(300), "tools/call", map[string]any{"a": []any{1, "x", nil, 1.5}}})
	if !walkCBOR(usual, new(message)) {
		t.Errorf("%x is not read quickly", usual)
	}
}

func sameMessage(t interface{ Fatalf(string, ...any) }, b []byte) {
	var got, want message
	if cborDec.Wellformed(b) != nil || !walkCBOR(b, &got) {
		return
	}
	if err := cborDec.Unmarshal(b, &want); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%x: %+v, and the library says %+v, %v", b, got, want, err)
	}
}
