package chat

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
)

// part is a call as far as it has come.
type part struct {
	index, id, name string
	args            []byte
	last            int // where the last piece of them begins
	depth           int
	inText, escaped bool
	whole           bool   // the object has ended
	extra, function extras // of the call, and of its function
}

// add adds a piece of the arguments. Whether they are whole is counted on, as to parse them again
// with each piece takes minutes for a hostile answer.
func (p *part) add(args []byte) {
	if len(args) > 0 {
		p.last = len(p.args)
	}
	p.args = append(p.args, args...)
	for _, b := range args {
		switch {
		case p.escaped:
			p.escaped = false
		case p.inText:
			p.escaped, p.inText = b == '\\', b != '"'
		case b == '"':
			p.inText = true
		case b == '{' || b == '[':
			p.depth++
		case b == '}' || b == ']':
			p.depth--
			p.whole = p.depth == 0
		}
	}
}

// complete reports whether no piece can belong to the arguments any more.
func (p *part) complete() bool { return p.whole || len(p.args) > 0 && isNone(p.args) }

// isNone reports whether arguments are a spelling of none.
func isNone(args []byte) bool {
	switch string(bytes.TrimSpace(args)) {
	case "", "{}", "[]", `""`, "null", "None":
		return true
	}
	return false
}

// object returns the arguments as a JSON object; false where they are no single one. Servers that
// send them in pieces repeat them whole, or send {} before.
func (p *part) object() (jsontext.Value, bool) {
	text := bytes.TrimSpace(p.args)
	if inner := Text(text); inner != "" { // an object in a text
		text = []byte(inner)
	}
	if isNone(text) {
		return jsontext.Value("{}"), true
	}
	var found jsontext.Value
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		v, err := d.ReadValue()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || v.Kind() != '{' && !isNone(v) {
			if tail := jsontext.Value(p.args[p.last:]); tail.Kind() == '{' && tail.IsValid() && bytes.HasPrefix(tail, p.args[:p.last]) {
				return tail, true // what came of them before, repeated and ended
			}
			return nil, false
		}
		if isNone(v) || isNothing(v) {
			continue
		}
		if found != nil && !equal(found, v) {
			return nil, false // nobody knows which of them is meant
		}
		found = v.Clone()
	}
	if found == nil {
		found = jsontext.Value("{}")
	}
	return found, true
}

// equal reports whether two valid values are the same, however they are written.
func equal(a, b jsontext.Value) bool {
	a, b = a.Clone(), b.Clone()
	return a.Canonicalize() == nil && b.Canonicalize() == nil && bytes.Equal(a, b)
}

// of returns the call that a part belongs to; nil where there are too many. That is the call with its
// index and its ID, else that with its ID, else the last one with its index: some servers have all
// calls at one index, and others another ID in each part. A part without a name begins no call beside
// one that goes on. One with a name begins a call where that has another name, or is complete and is
// not the call of that index and ID.
func (m *merger) of(index, id, name string) *part {
	var at *part
	best, same := 0, 3
	for _, p := range m.calls {
		n := 0
		switch {
		case p.index == index && p.id == id && (id != "" || index != ""):
			n = same
		case id != "" && p.id == id:
			n = 2
		case p.index == index && (index != "" || id == ""):
			n = 1
		}
		if n > 0 && n >= best {
			at, best = p, n
		}
	}
	if at == nil && name == "" && len(m.calls) > 0 {
		if last := m.calls[len(m.calls)-1]; index == "" || last.name != "" && !last.complete() {
			at = last
		}
	}
	if at != nil && name != "" && at.name != "" {
		repeats := best == same && id != ""
		if other := name != at.name; other && (at.complete() || !repeats) || at.complete() && !repeats {
			at = nil
		}
	}
	if at == nil {
		if len(m.calls) == maxCalls {
			return nil
		}
		at = &part{index: index, extra: make(extras), function: make(extras)}
		m.calls = append(m.calls, at)
	}
	if at.id == "" {
		at.id = id
	}
	if at.name == "" {
		at.name = name
	}
	return at
}

// addCall adds a part of a call.
func (m *merger) addCall(v jsontext.Value) error {
	c := Fields(v)
	f := Fields(c["function"])
	id := Text(c["id"]) // some have a signature in it, and want it back whole
	p := m.of(string(c["index"]), id, device.Clip(Text(f["name"]), maxName))
	if p == nil {
		return device.Faultf(device.Unavailable, "the model makes more than %d calls at a time", maxCalls)
	}
	args := []byte(f["arguments"]) // a part of a text, or an object
	switch f["arguments"].Kind() {
	case '"':
		args = []byte(Text(args))
	case 'n':
		args = nil
	}
	if m.size += len(args) + len(id); m.size > maxArguments {
		return device.Faultf(device.Unavailable, "the arguments of the model's calls are more than %d KiB", maxArguments>>10)
	}
	p.add(args)
	for name, v := range c {
		if name != "index" && name != "id" && name != "type" && name != "function" {
			m.addExtra(p.extra, name, v, false)
		}
	}
	for name, v := range f {
		if name != "name" && name != "arguments" {
			m.addExtra(p.function, name, v, false)
		}
	}
	return nil
}

// made returns the calls, with IDs of which no two are equal.
func (m *merger) made() (all []Call, err error) {
	used := make(map[string]bool)
	for i, p := range m.calls {
		args, ok := p.object()
		if p.name == "" {
			if ok && isNone(args) {
				continue
			}
			return nil, device.Faultf(device.Unavailable, "the model's server sends a call without the name of its tool: %s", quote(string(p.args), m.key))
		}
		c := Call{ID: p.id, Name: p.name, Arguments: args}
		if !ok {
			c.Broken = device.Clip(string(p.args), 300)
		}
		for n := i + 1; c.ID == "" || used[c.ID]; n++ {
			c.ID = "call_" + strconv.Itoa(n)
		}
		used[c.ID] = true
		if m.extraSize <= maxExtra {
			c.Extra, c.FunctionExtra = p.extra.values(), p.function.values()
		}
		all = append(all, c)
	}
	return all, nil
}
