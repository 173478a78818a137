package config

import "encoding/binary"

// packed is an encoded list of entries. Agents keep theirs while the site runs, and the tree of a rule
// takes more memory than the rule.
type packed string

func pack(entries []entry) packed { return packed(appendEntries(nil, entries)) }

func appendEntries(b []byte, entries []entry) []byte {
	b = binary.AppendUvarint(b, uint64(len(entries)))
	for _, e := range entries {
		b = appendText(appendPos(b, e.at), e.key)
		b = appendPos(b, e.value.at)
		b = append(b, byte(e.value.shape), 0)
		if e.value.quoted {
			b[len(b)-1] = 1
		}
		b = appendEntries(appendText(b, e.value.text), e.value.entries)
	}
	return b
}

func appendPos(b []byte, at pos) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(at.line)), uint64(at.column))
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// entries decodes p. The texts of the entries share its memory.
func (p packed) entries() []entry {
	u := unpacker(p)
	return u.entries()
}

// unpacker is the part of a packed list that is not decoded yet.
type unpacker string

func (u *unpacker) entries() []entry {
	all := make([]entry, u.number())
	for i := range all {
		e := &all[i]
		e.at, e.key, e.value = u.pos(), u.text(), &node{at: u.pos()}
		e.value.shape, e.value.quoted = shape((*u)[0]), (*u)[1] == 1
		*u = (*u)[2:]
		e.value.text, e.value.entries = u.text(), u.entries()
	}
	return all
}

func (u *unpacker) pos() pos { return pos{u.number(), u.number()} }

func (u *unpacker) text() string {
	n := u.number()
	text := (*u)[:n]
	*u = (*u)[n:]
	return string(text)
}

func (u *unpacker) number() (n int) {
	for shift := 0; ; shift += 7 {
		b := (*u)[0]
		*u = (*u)[1:]
		if n |= int(b&0x7f) << shift; b < 0x80 {
			return n
		}
	}
}
