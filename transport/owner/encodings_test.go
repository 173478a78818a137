package owner

import (
	"bytes"
	"context"
	"reflect"
	"testing"
	"time"

	"agentsite/agents/op"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TestEncodings: each request and each answer, with all members set, crosses the wire unchanged in both encodings.
func TestEncodings(t *testing.T) {
	types := map[string][2]reflect.Type{
		string(ChallengeMethod): {reflect.TypeFor[op.None](), reflect.TypeFor[challenge]()},
		string(ProveMethod):     {reflect.TypeFor[access.Proof](), reflect.TypeFor[claimed]()},
		string(ReclaimMethod):   {reflect.TypeFor[acts.Recovery](), reflect.TypeFor[op.None]()},
		string(PresentMethod):   {reflect.TypeFor[acts.Signed](), reflect.TypeFor[acts.Reached]()},
	}
	for _, row := range (&acts.Site{}).Operations() {
		types[row.Name] = [2]reflect.Type{row.Request, row.Answer}
	}
	for name, of := range types {
		request, answer := filled(of[0]), filled(of[1])
		for _, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
			came := reflect.New(of[0]).Interface()
			site := rpc.NewDispatcher(map[string]rpc.Method{name: func(_ context.Context, c *rpc.Call) (any, error) {
				return answer, c.Params.Decode(came)
			}})
			var body bytes.Buffer
			call := rpc.Request{ID: rpc.NumberID(1), Method: name, Params: request}
			if err := rpc.EncodeRequest(codec, &body, call); err != nil {
				t.Errorf("%s, %s: the request: %v", name, codec.ContentType(), err)
				continue
			}
			site.Serve(t.Context(), &rpc.Incoming{Codec: codec, Body: body.Bytes(), Send: func(o rpc.Outgoing) error {
				result, _, _, err := rpc.DecodeResponse(codec, o.Body)
				if err != nil {
					t.Errorf("%s, %s: %v", name, codec.ContentType(), err)
					return nil
				}
				back := reflect.New(of[1]).Interface()
				text, err := result.JSONText()
				if err == nil {
					err = json.Unmarshal(text, back)
				}
				if err != nil || asText(t, back) != asText(t, answer) {
					t.Errorf("%s, %s: %v, the answer %s came as %s", name, codec.ContentType(), err, asText(t, answer), text)
				}
				return nil
			}})
			if asText(t, came) != asText(t, request) {
				t.Errorf("%s, %s: the request %s came as %s", name, codec.ContentType(), asText(t, request), asText(t, came))
			}
		}
	}
}

func asText(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Errorf("%T: %v", v, err)
	}
	return string(b)
}

// filled returns a value of a type with all members set, and one element in each list.
func filled(of reflect.Type) any {
	v := reflect.New(of).Elem()
	fill(v)
	return v.Interface()
}

func fill(v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 28, 7, 0, 0, 5e6, time.UTC)))
		return
	case reflect.TypeFor[jsontext.Value]():
		v.Set(reflect.ValueOf(jsontext.Value(`{"a":[1,"x"]}`)))
		return
	case reflect.TypeFor[device.Value]():
		v.Set(reflect.ValueOf(device.Number(1.5)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				fill(field)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	default:
		panic("no value of " + v.Type().String())
	}
}
