package driver

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
)

// Path is the YAML of a value's place in a JSON document: keys joined by dots, and indexes of lists in brackets, such
// as a.b[0].c. A key that contains a dot or a bracket is written in brackets and quotes: ["a.b"]. The empty path is the
// whole document.
type Path string

// Bounds of a path.
const (
	maxPath  = 200
	maxSteps = 16
)

// step is a key of an object, or an index of a list if list is set.
type step struct {
	key   string
	index int
	list  bool
}

// Validate finds mistakes; of names the key of the YAML in its fault.
func (p Path) Validate(of string) error {
	_, err := p.steps()
	if err != nil {
		return device.Faultf(device.Invalid,
			"%s: %q is not a path: %w; write keys with dots and indexes in brackets, such as meters[0].power",
			of, device.Clip(string(p), 60), err)
	}
	return nil
}

var (
	errPathLong  = errors.New("it is longer than 200 letters or 16 steps")
	errPathEmpty = errors.New("a key is empty")
	errPathIndex = errors.New("a bracket holds neither an index below 100000 nor a key in quotes")
	errPathText  = errors.New("it has invisible letters")
	errPathQuery = errors.New("$ and * of JSONPath have no meaning here")
)

func (p Path) steps() (steps []step, err error) {
	rest := string(p)
	if len(rest) > maxPath {
		return nil, errPathLong
	}
	if !utf8.ValidString(rest) || strings.ContainsFunc(rest, unicode.IsControl) {
		return nil, errPathText
	}
	for rest != "" {
		var s step
		if rest[0] == '[' {
			s, rest, err = bracket(rest[1:])
		} else {
			if len(steps) > 0 {
				if rest[0] != '.' {
					return nil, errPathIndex // a key directly behind a bracket
				}
				rest = rest[1:]
			}
			end := strings.IndexAny(rest, ".[]")
			if end < 0 {
				end = len(rest)
			}
			if s.key, rest = rest[:end], rest[end:]; s.key == "" {
				err = errPathEmpty
			} else if s.key == "$" || s.key == "*" {
				err = errPathQuery
			}
		}
		if err != nil {
			return nil, err
		}
		if steps = append(steps, s); len(steps) > maxSteps {
			return nil, errPathLong
		}
	}
	return steps, nil
}

// bracket parses the step that begins behind its opening bracket.
func bracket(text string) (s step, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err == nil {
			s.key, err = strconv.Unquote(quoted)
		}
		if err != nil || !strings.HasPrefix(text[len(quoted):], "]") {
			return s, "", errPathIndex
		}
		return s, text[len(quoted)+1:], nil
	}
	digits, rest, closed := strings.Cut(text, "]")
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || !closed || n >= 100_000 {
		return s, "", errPathIndex
	}
	return step{index: int(n), list: true}, rest, nil
}

// Paths finds the values of several paths in documents, in one pass over each. It is safe for concurrent use.
type Paths struct{ steps [][]step }

// NewPaths returns the finder of paths that Validate accepts.
func NewPaths(paths []Path) (p Paths, err error) {
	for _, path := range paths {
		if err := path.Validate("path"); err != nil {
			return Paths{}, err
		}
		steps, _ := path.steps()
		p.steps = append(p.steps, steps)
	}
	return p, nil
}

// maxScalar bounds a found value: a number, a word or a text of a state.
const maxScalar = 1024

// compositeObject and compositeList are found in place of values that no point can have.
var (
	compositeObject = jsontext.Value(`{}`)
	compositeList   = jsontext.Value(`[]`)
)

// In returns the value of each path in a JSON document (RFC 8259), in the order of the paths; nil where there is none.
// In place of an object or a list it returns an empty one. It refuses what is not one document, and a document that has
// the value of a path twice. The size of the document is bounded by the caller; what In needs of memory beside it does
// not depend on its content.
func (p Paths) In(doc []byte) ([]jsontext.Value, error) {
	s := pathSearch{dec: jsontext.NewDecoder(bytes.NewReader(doc), jsontext.AllowDuplicateNames(true)), paths: p.steps,
		found: make([]jsontext.Value, len(p.steps))}
	all := make([]int, len(p.steps))
	for i := range all {
		all[i] = i
	}
	err := s.value(all, 0)
	if err == nil {
		if _, err = s.dec.ReadToken(); err == io.EOF {
			return s.found, nil
		}
	}
	if known := (*device.Fault)(nil); errors.As(err, &known) {
		return nil, err
	}
	return nil, device.Faultf(device.Offline,
		"the other side did not answer with one JSON document; look at the address, and at the answer in a browser")
}

// pathSearch is one pass over a document.
type pathSearch struct {
	dec   *jsontext.Decoder
	paths [][]step
	found []jsontext.Value
}

// value reads the next value, whose place is that of the first depth steps of the paths that are called active.
func (s *pathSearch) value(active []int, depth int) error {
	var whole, deeper []int
	for _, i := range active {
		if len(s.paths[i]) == depth {
			whole = append(whole, i)
		} else {
			deeper = append(deeper, i)
		}
	}
	kind := s.dec.PeekKind()
	var v jsontext.Value
	var err error
	switch kind {
	case '{', '[':
		v = compositeObject
		if kind == '[' {
			v = compositeList
		}
		if len(deeper) == 0 {
			err = s.dec.SkipValue()
		} else {
			err = s.members(kind, deeper, depth)
		}
	default:
		if v, err = s.dec.ReadValue(); err == nil && len(whole) > 0 {
			if len(v) > maxScalar {
				return device.Faultf(device.Offline, "a value in the document has %d letters; at most %d are read",
					len(v), maxScalar)
			}
			v = v.Clone()
		}
	}
	if err != nil {
		return err
	}
	for _, i := range whole {
		if s.found[i] != nil {
			return device.Faultf(device.Offline, "the document has %s twice; ask for one that has it once",
				device.Clip(s.name(i), 80))
		}
		s.found[i] = v
	}
	return nil
}

// members reads an object or a list, and in it the values that belong to a path.
func (s *pathSearch) members(kind jsontext.Kind, active []int, depth int) error {
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	in := make([]int, 0, len(active))
	for n := 0; s.dec.PeekKind() != '}' && s.dec.PeekKind() != ']'; n++ {
		in = in[:0]
		key := ""
		if kind == '{' {
			t, err := s.dec.ReadToken()
			if err != nil {
				return err
			}
			key = t.String()
		}
		for _, i := range active {
			if at := s.paths[i][depth]; at.list == (kind == '[') && (at.list && at.index == n || !at.list &&
				at.key == key) {
				in = append(in, i)
			}
		}
		if len(in) == 0 {
			if err := s.dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if err := s.value(in, depth+1); err != nil {
			return err
		}
	}
	_, err := s.dec.ReadToken()
	return err
}

func (s *pathSearch) name(i int) string {
	var b strings.Builder
	for n, at := range s.paths[i] {
		switch {
		case at.list:
			b.WriteString("[" + strconv.Itoa(at.index) + "]")
		case strings.ContainsAny(at.key, `.[]"`):
			b.WriteString("[" + strconv.Quote(at.key) + "]")
		default:
			if n > 0 {
				b.WriteByte('.')
			}
			b.WriteString(at.key)
		}
	}
	return strconv.Quote(b.String())
}
