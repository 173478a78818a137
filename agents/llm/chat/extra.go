package chat

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxExtra      = 64 << 10 // of all members that are echoed, in bytes
	maxExtraNames = 32
	// maxExtraElements bounds a list, whose elements are compared with each new one.
	maxExtraElements = 256
	maxExtraDepth    = 4 // deeper, a value is replaced by the next one and not merged with it
)

// Extra holds the members of a message or a call that the client does not know. They are sent back
// with the message: DeepSeek refuses a conversation without its reasoning_content, and Gemini 3 one
// without the thought_signature in extra_content.
type Extra map[string]jsontext.Value

// wire returns the members as they are sent behind others, without those that the server refuses.
func (x Extra) wire(without []string) (text string) {
	for _, name := range slices.Sorted(maps.Keys(x)) {
		if !slices.Contains(without, name) {
			text += "," + Quote(name) + ":" + string(x[name])
		}
	}
	return text
}

// extras are members that come in pieces.
type extras map[string]*pieces

// pieces is a value that comes in pieces.
type pieces struct {
	kind    jsontext.Kind // of the value so far; 0 for none
	text    []byte
	members extras
	list    []*pieces
	other   jsontext.Value
}

// add adds a member, and reports whether there was room for its name. Texts of a member that grows
// are joined; of others the last one counts, because servers repeat them.
func (x extras) add(name string, v jsontext.Value, grows bool, depth int) bool {
	p := x[name]
	if p == nil {
		if isNothing(v) && v.Kind() != '"' {
			return true
		}
		if len(x) == maxExtraNames {
			return false
		}
		p = new(pieces)
		x[name] = p
	}
	return p.add(v, grows, depth)
}

// growing are the texts inside a member that come in pieces, such as reasoning_details of OpenRouter.
var growing = []string{"text", "summary", "thinking", "content"}

func (p *pieces) add(v jsontext.Value, grows bool, depth int) (ok bool) {
	kind := v.Kind()
	if kind == 'n' {
		return true
	}
	if p.kind != kind {
		*p = pieces{kind: kind, members: make(extras)}
	}
	switch {
	case kind == '"' && grows:
		p.text = append(p.text, Text(v)...)
	case kind == '"':
		if text := Text(v); text != "" {
			p.text = []byte(text)
		}
	case kind == '{' && depth < maxExtraDepth:
		for name, member := range Fields(v) {
			if !p.members.add(name, member, slices.Contains(growing, name), depth+1) {
				return false
			}
		}
	case kind == '[' && depth < maxExtraDepth:
		for _, e := range Elements(v) {
			at := p.element(e)
			if at == nil {
				if len(p.list) == maxExtraElements {
					return false
				}
				at = new(pieces)
				p.list = append(p.list, at)
			}
			if !at.add(e, false, depth+1) {
				return false
			}
		}
	default:
		p.other = v.Clone()
	}
	return true
}

// element returns the element of a list that another one continues: it has the same index and type.
func (p *pieces) element(e jsontext.Value) *pieces {
	f := Fields(e)
	if f["index"] == nil {
		return nil
	}
	for _, at := range p.list {
		index, kind := at.members["index"], at.members["type"]
		if index != nil && string(index.value()) == string(f["index"]) && (kind == nil || string(kind.text) == Text(f["type"])) {
			return at
		}
	}
	return nil
}

func (p *pieces) value() jsontext.Value {
	switch {
	case p.other != nil:
		return p.other
	case p.kind == '"':
		return jsontext.Value(Quote(string(p.text)))
	case p.kind == '[':
		text := ""
		for _, e := range p.list {
			text += "," + string(e.value())
		}
		return jsontext.Value("[" + text[min(1, len(text)):] + "]")
	}
	text := p.members.values().wire(nil)
	return jsontext.Value("{" + text[min(1, len(text)):] + "}")
}

// values returns the members; nil for none.
func (x extras) values() (all Extra) {
	for name, p := range x {
		if all == nil {
			all = make(Extra)
		}
		all[name] = p.value()
	}
	return all
}

// isNothing reports whether a value says nothing: null, and an empty text, list or object.
func isNothing(v jsontext.Value) bool {
	switch v.Kind() {
	case '"':
		return Text(v) == ""
	case '[', '{':
		return len(Elements(v)) == 0 && len(Fields(v)) == 0
	}
	return v.Kind() == 'n' || v.Kind() == 0
}
