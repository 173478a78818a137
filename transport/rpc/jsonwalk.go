package rpc

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// walkJSON is Raw.Walk for JSON.
func walkJSON(b []byte, m Members) bool {
	s := jsonScanner{b: b}
	return s.next() == '{' && s.container('}', m) && s.next() == 0 && s.i == len(b)
}

// jsonScanner checks JSON in one pass, as strictly as the library and within the limits of a
// message. It returns false, too, for an escape in a name, for \u anywhere, and for too many names.
type jsonScanner struct {
	b      []byte
	i      int // of the next byte
	depth  int
	commas int
	// names are those of the objects that i is in, the outermost first.
	names [32][]byte
	named int
}

// next passes over white space, and returns the byte after it; 0 at the end.
func (s *jsonScanner) next() byte {
	for ; s.i < len(s.b); s.i++ {
		if c := s.b[s.i]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
	}
	return 0
}

// value passes over a value.
func (s *jsonScanner) value() bool {
	switch s.next() {
	case '{':
		return s.container('}', nil)
	case '[':
		return s.container(']', nil)
	case '"':
		_, rest, _, ok := cutJSONText(s.b[s.i:])
		s.i = len(s.b) - len(rest)
		return ok
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

// container passes over an object or a list, and sets the members of an object where m is not nil.
func (s *jsonScanner) container(end byte, m Members) bool {
	if s.depth++; s.depth > maxDepth {
		return false
	}
	outer := s.named
	s.i++
	if s.next() != end {
		for more := true; more; {
			if end == ']' && !s.value() || end == '}' && !s.member(outer, m) {
				return false
			}
			if more = s.next() == ','; more {
				s.i++
				s.commas++
			}
		}
	}
	if s.next() != end || s.commas >= maxValues {
		return false
	}
	s.i++
	s.depth--
	s.named = outer
	return true
}

// member passes over a member of the object whose names begin at first.
func (s *jsonScanner) member(first int, m Members) bool {
	s.next()
	name, rest, escaped, ok := cutJSONText(s.b[s.i:])
	if !ok || escaped || s.named == len(s.names) {
		return false
	}
	for _, n := range s.names[first:s.named] {
		if bytes.Equal(n, name) {
			return false
		}
	}
	s.names[s.named] = name
	s.named++
	s.i = len(s.b) - len(rest)
	if s.next() != ':' {
		return false
	}
	s.i++
	s.next()
	begin := s.i
	return s.value() && (m == nil || m.SetMember(name, Raw{JSON, s.b[begin:s.i:s.i]}))
}

func (s *jsonScanner) literal(word string) bool {
	ok := bytes.HasPrefix(s.b[s.i:], []byte(word))
	s.i += len(word)
	return ok
}

// number passes over a number (RFC 8259, section 6).
func (s *jsonScanner) number() bool {
	s.skip("-")
	if s.skip("0") == 0 && s.digits() == 0 {
		return false
	}
	if s.skip(".") > 0 && s.digits() == 0 {
		return false
	}
	if s.skip("eE") > 0 {
		s.skip("+-")
		return s.digits() > 0
	}
	return true
}

// skip passes over one byte if it is one of set, and returns how many it passed over.
func (s *jsonScanner) skip(set string) int {
	if s.i < len(s.b) && strings.IndexByte(set, s.b[s.i]) >= 0 {
		s.i++
		return 1
	}
	return 0
}

func (s *jsonScanner) digits() (n int) {
	for ; s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9'; s.i++ {
		n++
	}
	return n
}

// cutJSONText splits off a text, and returns what is between its quotes. Of a text that is escaped
// this is not the value.
func cutJSONText(b []byte) (inside, rest []byte, escaped, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false, false
	}
	var all byte
	for i := 1; i < len(b); i++ {
		c := b[i]
		switch {
		case c == '"':
			inside = b[1:i]
			return inside, b[i+1:], escaped, all < utf8.RuneSelf || utf8.Valid(inside)
		case c < ' ':
			return nil, nil, false, false
		case c == '\\':
			escaped = true
			if i++; i == len(b) || strings.IndexByte(`"\/bfnrt`, b[i]) < 0 {
				return nil, nil, false, false
			}
		}
		all |= c
	}
	return nil, nil, false, false
}
