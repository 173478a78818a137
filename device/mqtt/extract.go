package mqtt

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
)

const (
	maxPayload = 32 << 10 // bytes of a message
	maxDepth   = 16       // of JSON
	maxPath    = 8        // names and indexes of a path
	maxText    = 256      // bytes of a text that is a value
)

// path is the place of a value in a JSON document: names of objects and indexes of lists. The empty path is the whole
// message, which need not be JSON.
type path []string

// parsePath parses names and indexes that are joined by dots, such as ENERGY.Power or sensors.0.value.
func parsePath(text string) (path, error) {
	if text == "" {
		return nil, nil
	}
	p := path(strings.Split(text, "."))
	bad := func(name string) bool {
		return name == "" || len(name) > 64 || strings.ContainsFunc(name,
			func(r rune) bool { return r < ' ' || r == '$' || r == '*' })
	}
	if len(p) > maxPath || slices.ContainsFunc(p, bad) {
		return nil, device.Faultf(device.Invalid,
			"%.80q is not a path; write at most %d names or indexes with dots between, such as ENERGY.Power", text, maxPath)
	}
	return p, nil
}

// want is a value that is wanted from a document. extract sets the rest: whether it is there, its value, which is zero
// for null, and whether it is a list or an object.
type want struct {
	path  path
	seen  bool
	found device.Value
	other bool
}

// extract finds the wanted values in a document, which it reads once. The error is that of a document that is no JSON,
// or too deep.
func extract(doc []byte, wants []*want) error {
	if !shallow(doc) {
		return device.Faultf(device.Invalid, "its JSON is nested too deep")
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	if err := descend(dec, wants, 0); err != nil {
		return device.Faultf(device.Invalid, "it is no JSON")
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return device.Faultf(device.Invalid, "there is more after its JSON")
	}
	return nil
}

// shallow reports whether no list or object is nested deeper than maxDepth.
func shallow(doc []byte) bool {
	depth, text := 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return true
}

// descend reads one value, of which wants are parts.
func descend(dec *jsontext.Decoder, wants []*want, level int) error {
	if len(wants) == 0 {
		return dec.SkipValue()
	}
	kind := dec.PeekKind()
	for _, w := range wants {
		if len(w.path) == level {
			w.seen, w.other = true, kind == '{' || kind == '['
		}
	}
	if kind != '{' && kind != '[' {
		return scalar(dec, wants, level)
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for i := 0; dec.PeekKind() != '}' && dec.PeekKind() != ']'; i++ {
		name := strconv.Itoa(i)
		if kind == '{' {
			token, err := dec.ReadToken()
			if err != nil {
				return err
			}
			name = token.String()
		}
		var inside []*want
		for _, w := range wants {
			if len(w.path) > level && w.path[level] == name {
				inside = append(inside, w)
			}
		}
		if err := descend(dec, inside, level+1); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// scalar reads a number, a text, a bool or null.
func scalar(dec *jsontext.Decoder, wants []*want, level int) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	var v device.Value
	switch token.Kind() {
	case '0':
		if n, err := token.Float(); err == nil {
			v = device.Number(n)
		}
	case '"':
		if text := token.String(); len(text) <= maxText {
			v = device.Text(text)
		}
	case 't', 'f':
		v = device.Bool(token.Bool())
	}
	for _, w := range wants {
		if len(w.path) == level {
			w.found = v
		}
	}
	return nil
}

// plain returns the value of a message that is no JSON document: a text, without the spaces around it.
func plain(message []byte) device.Value {
	message = bytes.TrimSpace(message)
	if len(message) == 0 || len(message) > maxText || !isPrintable(message) {
		return device.Value{}
	}
	return device.Text(string(message))
}

func isPrintable(text []byte) bool {
	return strings.ToValidUTF8(string(text), "") == string(text) &&
		!strings.ContainsFunc(string(text), func(r rune) bool { return r < ' ' || r == 0x7f })
}

// number returns the number that a value is or that its text is in decimal: many devices send texts.
func number(v device.Value) (float64, bool) {
	switch v.Type() {
	case device.TypeNumber:
		return v.Number(), v.Finite()
	case device.TypeText:
		text := v.Text()
		if text == "" || strings.Trim(text, "0123456789.eE+-") != "" { // neither NaN, Inf nor hexadecimal
			return 0, false
		}
		n, err := strconv.ParseFloat(text, 64)
		return n, err == nil
	}
	return 0, false
}

// spell returns a value as the YAML of a device writes it: texts as they are, bools as true and false.
func spell(v device.Value) string {
	if v.Type() == device.TypeBool {
		return strconv.FormatBool(v.Bool())
	}
	return v.String()
}
