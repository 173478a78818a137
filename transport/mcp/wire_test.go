package mcp

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"testing"

	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// wireTypes are all that goes over the wire.
var wireTypes = []any{
	listParams{}, callParams{}, readParams{}, promptParams{}, completeParams{}, listenParams{},
	discoverResult{}, toolsResult{}, CallResult{}, resourcesResult{}, templatesResult{}, readResult{},
	promptsResult{}, promptResult{}, completeResult{}, inputRequired{}, progressParams{}, logParams{}, subscriptionParams{},
	taskParams{}, taskResult{}, taskNotification{},
}

// TestLossless takes every message type from JSON to CBOR and back, filled with
// whatever its fields can hold, and finds the same text again.
func TestLossless(t *testing.T) {
	for _, sample := range wireTypes {
		typ := reflect.TypeOf(sample)
		t.Run(typ.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v := reflect.New(typ)
				fill(t, v.Elem(), 3)
				first := encode(t, rpc.JSON, v.Interface())
				there := reflect.New(typ)
				decode(t, rpc.JSON, first, there.Interface())
				crossed := encode(t, rpc.CBOR, there.Interface())
				back := reflect.New(typ)
				decode(t, rpc.CBOR, crossed, back.Interface())
				if again := encode(t, rpc.JSON, back.Interface()); !bytes.Equal(ordered(t, first), ordered(t, again)) {
					t.Fatalf("%s\ncame back as\n%s", first, again)
				}
			})
		})
	}
}

func encode(t *rapid.T, c rpc.Codec, v any) []byte {
	var b bytes.Buffer
	if err := c.Encode(&b, v); err != nil {
		t.Fatalf("%s of %+v: %v", c.ContentType(), v, err)
	}
	return bytes.Clone(b.Bytes())
}

func decode(t *rapid.T, c rpc.Codec, b []byte, into any) {
	if err := c.DecodeStrict(b, into); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
}

// ordered sorts names and leaves numbers as they are.
func ordered(t *rapid.T, b []byte) []byte {
	v := jsontext.Value(bytes.Clone(b))
	if err := v.Format(jsontext.CanonicalizeRawInts(false), jsontext.ReorderRawObjects(true)); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}

var numbers = []string{"0", "-1", "9007199254740993", "-9223372036854775808", "18446744073709551615", "0.1", "1e+300", "-2.5"}

// fill sets a value to something that its type can hold.
func fill(t *rapid.T, v reflect.Value, depth int) {
	switch v.Type() {
	case reflect.TypeFor[rpc.ID]():
		id := rapid.SampledFrom([]rpc.ID{rpc.TextID("a"), rpc.TextID(""), rpc.NumberID(0), rpc.NumberID(math.MaxUint64), rpc.NumberID(1<<53 + 1)}).Draw(t, "id")
		v.Set(reflect.ValueOf(id))
		return
	case reflect.TypeFor[jsontext.Value]():
		v.SetBytes(tree(t, depth))
		return
	case reflect.TypeFor[rpc.Raw]():
		v.Set(reflect.ValueOf(rpc.RawJSON(tree(t, depth))))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "string"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "float"))
	case reflect.Interface: // a tool's own value: what it is made of is the tool's choice
		v.Set(reflect.ValueOf(map[string]any{"t": rapid.String().Draw(t, "t"), "n": rapid.Float64().Draw(t, "n")}))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth)
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, "length")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), depth)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(t, e, depth)
			v.SetMapIndex(reflect.ValueOf(rapid.String().Draw(t, "key")), e)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				fill(t, v.Field(i), depth)
			}
		}
	default:
		t.Fatalf("no way to fill a %v", v.Type())
	}
}

// tree draws JSON text.
func tree(t *rapid.T, depth int) []byte {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return []byte(rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word"))
	case 1, 2:
		return []byte(rapid.SampledFrom(numbers).Draw(t, "number"))
	case 3:
		b, err := jsontext.AppendQuote(nil, rapid.String().Draw(t, "text"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	case 4:
		return fmt.Appendf(nil, "[%s,%s]", tree(t, depth-1), tree(t, depth-1))
	}
	return fmt.Appendf(nil, `{"b":%s,"a":%s}`, tree(t, depth-1), tree(t, depth-1))
}
