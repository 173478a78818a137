package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"agentsite/device"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The limits of a file. Some inputs cost the parser the square of their length or a stack frame
// per level, and a stack overflow is fatal, so both are checked on the flat list of tokens,
// before anything recurses. What costs the lexer itself too much is refused before it.
const (
	MaxBytes  = 1 << 20 // of a configuration
	maxTokens = 1 << 14
	maxDepth  = 16
	maxBlank  = 256 // lines in a row without text, which cost the lexer the square of their number in a text
)

// parsing is held while a text is parsed: the tokens of one that is refused may take 300 times its bytes, and a
// caller can send many at once.
var parsing sync.Mutex

// parseTree parses one YAML document of mappings, lists and scalars, without references, tags
// and repeated keys. The tree keeps each scalar as it is written. The library's own decoder does not: it
// reads 1.5 as the whole number 1, 010 as 8, the text 1.10 as 1.1 and a missing value as zero, and it stops
// at the first mistake.
func parseTree(name string, text []byte) (*node, *source, error) {
	if len(text) > MaxBytes {
		return nil, nil, newSource(name, "").errorf(pos{},
			"the file is larger than 1 MiB; a configuration is a few kilobytes: is this the right file?")
	}
	// Editors on Windows add both; neither changes what a line or a column is.
	clean := strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n")
	src := newSource(name, clean)
	if err := checkText(src); err != nil {
		return nil, nil, err
	}
	parsing.Lock()
	defer parsing.Unlock()
	tokens := lexer.Tokenize(clean)
	if err := checkTokens(src, tokens); err != nil {
		return nil, nil, err
	}
	if err := checkFlow(src, tokens); err != nil {
		return nil, nil, err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, nil, syntaxError(src, tokens, err)
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, nil, src.errorf(pos{}, "the file is empty; it needs at least \"site: { name: my-site }\"")
	}
	r := &report{src: src}
	root := r.tree(file.Docs[0].Body)
	return root, src, r.err()
}

// checkText refuses what no YAML may contain, with a better error than the parser's.
func checkText(src *source) *Error {
	blank := 0
	for i, line := range src.lines {
		if blank++; strings.Trim(line, " \t") != "" {
			blank = 0
		}
		if blank > maxBlank {
			return src.errorf(pos{i + 1, 1}, "more than %d empty lines in a row; remove some", maxBlank)
		}
		if !utf8.ValidString(line) {
			valid := strings.ToValidUTF8(line, "\x00")
			at := pos{i + 1, utf8.RuneCountInString(valid[:strings.IndexByte(valid, 0)]) + 1}
			src.lines[i] = strings.ToValidUTF8(line, "?")
			return src.errorf(at, "this is not UTF-8 text; save the file as UTF-8")
		}
		column := 0
		for _, c := range line {
			column++
			if c < ' ' && c != '\t' || c == 0x7f {
				src.lines[i] = strings.ReplaceAll(line, string(c), "?")
				return src.errorf(pos{i + 1, column}, "the control character %U cannot stand in the file; remove it", c)
			}
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if tab := strings.IndexByte(indent, '\t'); tab >= 0 && indent != line {
			return src.errorf(pos{i + 1, tab + 1}, "a tab cannot indent YAML; use spaces")
		}
	}
	return nil
}

// notUsed has the errors of tokens that are refused.
var notUsed = map[token.Type]string{
	token.AnchorType: "anchors (&) are not used here; write the value out where it is needed, " +
		"and put text that begins with & in quotes",
	token.AliasType: "aliases (*) are not used here; write the value out again, " +
		"and put text that begins with * in quotes",
	token.MergeKeyType:    "merge keys (<<) are not used here; write the keys out again",
	token.TagType:         "tags (!) are not used here; remove it, and put text that begins with ! in quotes",
	token.DirectiveType:   "directives (%) are not used here; remove the line",
	token.MappingKeyType:  "keys are written \"key: value\", without a question mark",
	token.DocumentEndType: "\"...\" is not used here; remove the line",
}

// checkTokens refuses unsupported features of YAML, and too long or too deep content.
func checkTokens(src *source, tokens token.Tokens) *Error {
	if len(tokens) > maxTokens {
		return src.errorf(position(tokens[maxTokens]),
			"the file has too many parts; one site needs far fewer: is this the right file?")
	}
	var open levels
	begun := false
	for _, t := range tokens {
		at := position(t)
		if why, bad := notUsed[t.Type]; bad && !(t.Type == token.DirectiveType && at.column > 1) { // see checkFlow
			return src.errorf(at, "%s", why)
		}
		if t.Type == token.DocumentHeaderType && begun {
			return src.errorf(at, "a second document begins here; one file describes one site")
		}
		begun = begun || t.Type != token.CommentType
		if open.add(t); open.flow+len(open.columns) > maxDepth {
			return src.errorf(at, "this is nested more than %d deep; no key of a site is", maxDepth)
		}
	}
	return nil
}

// levels counts what is open at a token.
type levels struct {
	columns []int // at which the block levels began
	flow    int   // braces and brackets
	line    int   // of the last token
}

// add moves l on to the next token.
func (l *levels) add(t *token.Token) {
	switch t.Type {
	case token.CommentType, token.DocumentHeaderType:
		return
	case token.MappingStartType, token.SequenceStartType:
		l.flow++
	case token.MappingEndType, token.SequenceEndType:
		l.flow = max(0, l.flow-1)
	}
	// A block level begins at the first token of a line or at a list's dash.
	if at := position(t); at.line != l.line || t.Type == token.SequenceEntryType {
		l.columns = append(slices.DeleteFunc(l.columns, func(c int) bool { return c >= at.column }), at.column)
		l.line = at.line
	}
}

func position(t *token.Token) pos { return pos{t.Position.Line, t.Position.Column} }

// hints are remedies for the parser's most frequent messages; the first match counts.
var hints = []struct{ message, hint string }{
	{"mapping value is not allowed",
		"one line holds one \"key: value\"; begin a new line, or put braces around the inner keys"},
	{"value is not allowed in this context", "look at the indentation, and at brackets and quotes"},
	{"could not find flow map content", "write one { and one }"},
	{"non-map value is specified", "write \"key: value\", with a colon and a space"},
	{"unexpected key name", "write \"key: value\", with a space after the colon"},
}

func syntaxError(src *source, tokens token.Tokens, err error) *Error {
	var located interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &located) && located.GetToken() != nil {
		if cause := causeOf(src, tokens, located.GetToken()); cause != nil {
			return cause
		}
		text := located.GetMessage()
		for _, h := range hints {
			if strings.Contains(text, h.message) {
				text += "; " + h.hint
				break
			}
		}
		return src.errorf(position(located.GetToken()), "this is not YAML: %s", text)
	}
	return src.errorf(pos{}, "this is not YAML: %w", err)
}

// shape is the kind of a node.
type shape uint8

const (
	empty   shape = iota // nothing, ~ or null
	scalar               // one word, number or text
	mapping              // keys with values
	list
)

// node is one value of the file.
type node struct {
	at      pos
	shape   shape
	quoted  bool
	text    string  // of a scalar, without its quotes
	entries []entry // of a mapping, in file order; of a list, without keys
	digest  string  // of the content of the file that a scalar names
}

// items are those of a list; none of anything else.
func (n *node) items() []entry {
	if n.shape != list {
		return nil
	}
	return n.entries
}

// entry is a key with its value.
type entry struct {
	at    pos
	key   string
	value *node
}

func scalarEntry(key, text string, at pos) entry {
	return entry{at, key, &node{at: at, shape: scalar, text: text}}
}

func find(entries []entry, key string) (entry, bool) {
	for _, e := range entries {
		if e.key == key {
			return e, true
		}
	}
	return entry{}, false
}

// what describes the node in an error.
func (n *node) what() string {
	switch n.shape {
	case scalar:
		return fmt.Sprintf("%q", clip(n.text))
	case mapping:
		return "keys"
	case list:
		return "a list"
	}
	return "an empty value"
}

func clip(s string) string { return device.Clip(s, 60) }

// tree converts the parser's tree, and refuses a key that is written twice.
func (r *report) tree(n ast.Node) *node {
	switch n := n.(type) {
	case ast.MapNode:
		return r.mapping(n)
	case *ast.SequenceNode:
		out := &node{at: position(n.GetToken()), shape: list, entries: make([]entry, len(n.Values))}
		for i, item := range n.Values {
			value := r.tree(item)
			out.entries[i] = entry{at: value.at, value: value}
		}
		return out
	case *ast.NullNode:
		return &node{at: position(n.GetToken()), shape: empty}
	case *ast.LiteralNode:
		return &node{at: position(n.GetToken()), shape: scalar, text: n.Value.Value, quoted: true}
	default:
		t := n.GetToken()
		return &node{at: position(t), shape: scalar, text: t.Value, quoted: quoted(t)}
	}
}

func (r *report) mapping(n ast.MapNode) *node {
	out := &node{shape: mapping, entries: make([]entry, 0, lengthOf(n))}
	if n, ok := n.(ast.Node); ok {
		out.at = position(n.GetToken())
	}
	first := map[string]int{}
	for it := n.MapRange(); it.Next(); {
		t := it.Key().GetToken()
		e := entry{at: position(t), key: t.Value, value: r.tree(it.Value())}
		if line, twice := first[e.key]; twice {
			r.fail(e.at, "", "%s is written twice, first in line %d; remove one of them", clip(e.key), line)
			continue
		}
		first[e.key] = e.at.line
		out.entries = append(out.entries, e)
	}
	return out
}

// lengthOf returns how many keys a mapping has: the tree is kept, and so is no larger than it has to be.
func lengthOf(n ast.MapNode) int {
	if n, ok := n.(*ast.MappingNode); ok {
		return len(n.Values)
	}
	return 1
}
