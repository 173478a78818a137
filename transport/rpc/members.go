package rpc

// Members is a struct that decodes its usual members by itself, in either encoding, because
// reflection takes several times as long.
type Members interface {
	// SetMember decodes one member. It returns false for a name that it does not know, and for a
	// value that it would not decode exactly as Decode does.
	SetMember(name []byte, value Raw) bool
}

// Walk sets the members of an object. It returns false, with m undefined, for another value, one that
// is refused by Decode, and one that is so unusual that it is left to Decode.
func (r Raw) Walk(m Members) bool {
	if r.codec == JSON {
		return walkJSON(r.b, m)
	}
	return r.codec == CBOR && walkCBOR(r.b, m)
}

// SetText sets a text of at least one byte. It returns false for another value, and leaves escapes
// to Decode. One of the usual texts is not allocated.
func (r Raw) SetText(into *string, usual ...string) bool {
	text, ok := r.text()
	for _, u := range usual {
		if string(text) == u {
			*into = u
			return ok
		}
	}
	*into = string(text)
	return ok && len(text) > 0
}

// text returns the bytes of a text without escapes.
func (r Raw) text() (text []byte, ok bool) {
	switch r.codec {
	case JSON:
		text, rest, escaped, ok := cutJSONText(r.b)
		return text, ok && !escaped && len(rest) == 0
	case CBOR:
		text, _, ok = cutText(r.b)
	}
	return text, ok
}

// walk decodes a usual message. It leaves another one to the codecs, with m zero.
func (m *message) walk(r Raw) bool {
	if r.Walk(m) {
		return true
	}
	*m = message{}
	return false
}

// SetMember decodes a member of a request, a notification or a result.
func (m *message) SetMember(name []byte, value Raw) bool {
	switch string(name) {
	case "jsonrpc":
		text, ok := value.text()
		m.Version = version
		return ok && string(text) == version
	case "method":
		return value.SetText(&m.Method, methodCall)
	case "id":
		return m.ID.set(value)
	case "params":
		m.Params = value
	case "result":
		m.Result = value
	default:
		return false
	}
	return true
}

// set sets an id that is valid and, if it is a text in JSON, has no escapes.
func (id *ID) set(value Raw) bool {
	if value.codec == CBOR {
		return id.UnmarshalCBOR(value.b) == nil
	}
	if text, ok := value.text(); ok {
		return id.setText(string(text)) == nil
	}
	return id.setNumber(string(value.b))
}
