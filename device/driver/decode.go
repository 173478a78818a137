package driver

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
	"agentsite/device/ucum"
)

// Decode returns the value of an input that the other side says as JSON: a number, a numeric text, a bool, or one of
// the words on, off, true, false, yes and no. nil, null and every other type is a fault, as is a number outside of the
// range: never a zero.
func (i InputPoint) Decode(raw jsontext.Value) (device.Value, error) {
	switch {
	case i.State:
		return decodeSwitch(raw)
	case len(i.Values) > 0:
		text, err := scalar(raw)
		if err == nil && !slices.Contains(i.Values, text) {
			err = device.Faultf(device.Offline,
				"it says %s, which is none of its values; add it to values if it is right", QuoteWord(text))
		}
		if err != nil {
			return device.Value{}, err
		}
		return device.Text(text), nil
	}
	return i.decodeNumber(raw)
}

// DecodeText is Decode for a text that is no JSON, such as the payload ON.
func (i InputPoint) DecodeText(text string) (device.Value, error) { return i.Decode(quote(text)) }

// Decode returns the value of an output that the other side says. See InputPoint.Decode.
func (o OutputPoint) Decode(raw jsontext.Value) (device.Value, error) {
	if o.number() {
		return o.decodeNumber(raw)
	}
	return decodeSwitch(raw)
}

// DecodeText is Decode for a text that is no JSON.
func (o OutputPoint) DecodeText(text string) (device.Value, error) { return o.Decode(quote(text)) }

func quote(text string) jsontext.Value {
	raw, err := jsontext.AppendQuote(nil, device.Clip(text, maxScalar))
	if err != nil {
		return nil
	}
	return raw
}

// QuoteWord quotes what the other side says for a message. Only a short word is shown: messages reach people and models,
// and a text from elsewhere could pretend to be an instruction.
func QuoteWord(text string) string {
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_+-.%°/", r))
	}
	if len(text) <= 24 && !strings.ContainsFunc(text, odd) {
		return strconv.Quote(text)
	}
	return "a text of " + strconv.Itoa(len(text)) + " bytes"
}

// decodeNumber returns the point's number of a raw one.
func (q Quantity) decodeNumber(raw jsontext.Value) (device.Value, error) {
	if k := raw.Kind(); len(raw) > 0 && (k == 't' || k == 'f') {
		return device.Value{}, device.Faultf(device.Offline,
			"it says %s, which is no number; write state: on instead of unit and range if it is a state", raw)
	}
	text, err := scalar(raw)
	if err != nil {
		return device.Value{}, err
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || strings.Trim(strings.TrimSpace(text), "+-.0123456789eE") != "" { // nor NaN, Inf, 0x1p3 and 1_000
		return device.Value{}, device.Faultf(device.Offline, "it says %s, which is no finite number", QuoteWord(text))
	}
	if n = q.Number(n); !q.Range.Contains(n) {
		return device.Value{}, device.Faultf(device.Offline,
			"it says %s, which cannot be: only %s can; look at the other device, and at unit, scale and range",
			device.Number(n), q.Range)
	}
	return device.Number(n), nil
}

// CheckUnit compares the unit that the other side says with that of the number; a text that is the same unit in another
// notation, such as °C, is right.
func (q Quantity) CheckUnit(raw jsontext.Value) error {
	var said string
	if raw.Kind() == '"' {
		said, _ = scalar(raw)
	}
	if ucum.Same(said, q.Unit) {
		return nil
	}
	return device.Faultf(device.Offline, "the other side gives the unit %s, and the configuration %q; correct unit, "+
		"range and scale",
		QuoteWord(said), q.Unit)
}

func decodeSwitch(raw jsontext.Value) (device.Value, error) {
	text, err := scalar(raw)
	if err != nil {
		return device.Value{}, err
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "on", "yes", "1":
		return device.Bool(true), nil
	case "false", "off", "no", "0":
		return device.Bool(false), nil
	}
	return device.Value{}, device.Faultf(device.Offline, "it says %s, which is neither on nor off", QuoteWord(text))
}

// scalar returns the text of a JSON number, text or bool.
func scalar(raw jsontext.Value) (string, error) {
	if len(raw) == 0 {
		return "", device.Faultf(device.Offline,
			"the answer has no such value; look at the path, and at what the other side says now")
	}
	switch raw.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return "", device.Faultf(device.Offline, "it says a text that is not valid")
		}
		return string(text), nil
	case '0', 't', 'f':
		return string(raw), nil
	case 'n':
		return "", device.Faultf(device.Offline, "it says null: the other side does not know it now")
	case '{':
		return "", device.Faultf(device.Offline, "it is an object; extend the path to a value in it")
	case '[':
		return "", device.Faultf(device.Offline, "it is a list; extend the path to a value in it, such as [0]")
	}
	return "", device.Faultf(device.Offline, "it says no value")
}
