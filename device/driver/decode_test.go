package driver

import (
	"math"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
)

// TestDecode: what the other side says is the point's value or a fault, and never another value.
func TestDecode(t *testing.T) {
	number := InputPoint{Quantity: Quantity{Unit: "Cel", Range: device.Range{Min: -40, Max: 85}}}
	state, values := InputPoint{State: true}, InputPoint{Values: []string{"idle", "1"}}
	bad := device.Value{}
	for _, tt := range []struct {
		in   InputPoint
		raw  string
		want device.Value
	}{
		{number, `21.5`, device.Number(21.5)}, {number, `"21.5"`, device.Number(21.5)}, {number, `" 2e1 "`, device.Number(20)},
		{number, `true`, bad}, {number, `false`, bad}, {number, `null`, bad}, {number, ``, bad}, {number, `"nan"`, bad},
		{number, `"0x10"`, bad}, {number, `"1_0"`, bad}, {number, `85.5`, bad}, {number, `{}`, bad}, {number, `[]`, bad},
		{state, `true`, device.Bool(true)}, {state, `1`, device.Bool(true)}, {state, `"ON"`, device.Bool(true)},
		{state, `"yes"`, device.Bool(true)}, {state, `0`, device.Bool(false)}, {state, `"off"`, device.Bool(false)},
		{state, `"no"`, device.Bool(false)}, {state, `2`, bad}, {state, `"unavailable"`, bad}, {state, `null`, bad},
		{values, `"idle"`, device.Text("idle")}, {values, `1`, device.Text("1")}, {values, `"heat"`, bad},
	} {
		got, err := tt.in.Decode(jsontext.Value(tt.raw))
		if got != tt.want || (err == nil) == (tt.want == bad) {
			t.Errorf("%s is %v: %v", tt.raw, got, err)
		}
		if err != nil && device.AsFault(err).Kind != device.Offline {
			t.Errorf("%s: %v", tt.raw, err)
		}
	}
	for raw, right := range map[string]bool{`"°C"`: true, `"Cel"`: true, `"K"`: false, `null`: false, `1`: false, ``: false} {
		if err := number.CheckUnit(jsontext.Value(raw)); (err == nil) != right {
			t.Errorf("the unit %s: %v", raw, err)
		}
	}
}

// TestDescribed: a quantity that cannot be is refused, and so is a path in another language.
func TestDescribed(t *testing.T) {
	zero, huge := 0., 1e13
	long := strings.Repeat("a", 121)
	around := device.Range{Min: -1, Max: 1}
	for _, q := range []Quantity{
		{}, {Range: device.Range{Min: 1, Max: 1}}, {Range: device.Range{Min: 1, Max: -1}}, {Range: around, Scale: &zero},
		{Range: around, Scale: &huge}, {Range: around, Offset: math.NaN()}, {Range: around, Unit: "°C"},
		{Range: around, About: long},
	} {
		if err := q.Validate("it"); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if err := (Quantity{Range: around, Unit: "Cel", About: long[:120]}).Validate("it"); err != nil {
		t.Error(err)
	}
	for _, in := range []InputPoint{{State: true, Values: []string{"a"}}, {State: true, Quantity: Quantity{Unit: "Cel"}},
		{Values: make([]string, 65)}, {State: true, Quantity: Quantity{About: long}}} {
		if err := in.Validate("it"); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%+v: %v", in, err)
		}
	}
	for _, p := range []Path{"$.x", "a.*", "a..b", "a[x]"} {
		if err := p.Validate("it"); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%s: %v", p, err)
		}
	}
}
