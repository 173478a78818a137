package skill

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	maxFront       = 8 << 10
	maxName        = 64
	maxDescription = 1024
)

// keys are those of the frontmatter. allowed-tools is missing: nobody takes it from a server.
var keys = []string{"name", "description", "license", "compatibility", "metadata"}

// front is the frontmatter of a file.
type front struct {
	name, description string
	nameLine          int
	all               map[string]any // texts, and metadata as a map of texts
}

// lineError is a mistake at a line of the file.
type lineError struct {
	line int
	says string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.says) }

func at(line int, format string, args ...any) error {
	return &lineError{line, fmt.Sprintf(format, args...)}
}

// frontmatter reads the part of a file between its first line, ---, and the next such line. Values are texts, because
// other programs read the same YAML and have to get the same.
func frontmatter(text []byte) (f front, err error) {
	if !utf8.Valid(text) {
		return f, errors.New("it is not UTF-8 text")
	}
	// Editors on Windows add both; neither changes a line.
	text = bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(text, []byte("---\n"))
	if !ok {
		return f, at(1, "the file has to begin with a line --- and then name: and description:")
	}
	yamlText, body, ok := bytes.Cut(rest, []byte("\n---\n"))
	switch {
	case !ok:
		return f, at(1, "the line --- that ends the frontmatter is missing")
	case len(yamlText) > maxFront:
		return f, at(1, "the frontmatter is longer than %d KiB; write into the text below it", maxFront>>10)
	case len(bytes.TrimSpace(body)) == 0:
		return f, errors.New("there is no text below the frontmatter")
	}
	m, err := mapping(yamlText)
	if err != nil {
		return f, err
	}
	f.all = make(map[string]any)
	for _, v := range m.Values {
		line := lineOf(v.Key)
		key, err := unique(f.all, v.Key)
		switch {
		case err != nil:
			return f, err
		case key == "allowed-tools":
			return f, at(line, "allowed-tools: remove it; what an assistant may do is its permission (agentsite token add)")
		case !slices.Contains(keys, key):
			return f, at(line, "%q is no key of a skill; there are %s", clip(key), strings.Join(keys, ", "))
		case key == "metadata":
			f.all[key], err = metadata(v)
		default:
			f.all[key], err = scalar(v)
		}
		if err != nil {
			return f, err
		}
		if key == "name" {
			f.nameLine = line
		}
	}
	f.name, _ = f.all["name"].(string)
	f.description, _ = f.all["description"].(string)
	switch {
	case f.name == "":
		return f, at(1, "name: is missing")
	case !isName(f.name):
		return f, at(f.nameLine, "name: use at most %d of a-z, 0-9 and single hyphens between them", maxName)
	case f.description == "":
		return f, at(1, "description: is missing; say what the skill does and when to use it")
	case utf8.RuneCountInString(f.description) > maxDescription:
		return f, at(1, "description: at most %d characters", maxDescription)
	}
	return f, nil
}

// isName reports whether a text has the form of a skill's name.
func isName(s string) bool {
	isOther := func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	return len(s) <= maxName && !strings.ContainsFunc(s, isOther) && !strings.Contains("-"+s+"-", "--")
}

// mapping parses YAML that is one mapping. Its lines count from the second of the file.
func mapping(text []byte) (*ast.MappingNode, error) {
	file, err := parser.ParseBytes(text, parser.Mode(0))
	var located interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &located) && located.GetToken() != nil {
		return nil, at(located.GetToken().Position.Line+1, "%s; put a text with a colon in quotes", located.GetMessage())
	} else if err != nil {
		return nil, at(1, "the frontmatter is no YAML")
	}
	if len(file.Docs) == 1 {
		switch m := file.Docs[0].Body.(type) {
		case *ast.MappingNode:
			return m, nil
		case *ast.MappingValueNode:
			return ast.Mapping(m.GetToken(), false, m), nil
		}
	}
	return nil, at(2, "the frontmatter has to be lines such as name: and description:")
}

func metadata(v *ast.MappingValueNode) (any, error) {
	var values []*ast.MappingValueNode
	switch m := v.Value.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		return nil, at(lineOf(v.Key), "metadata: has to be keys with texts")
	}
	all := make(map[string]any)
	for _, v := range values {
		key, err := unique(all, v.Key)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(key, "io.modelcontextprotocol/") {
			return nil, at(lineOf(v.Key), "keys of metadata that begin with io.modelcontextprotocol/ are reserved")
		}
		if all[key], err = scalar(v); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// unique returns a key that is a text and is not in all yet.
func unique(all map[string]any, key ast.MapKeyNode) (string, error) {
	text, ok := key.(*ast.StringNode)
	if !ok {
		return "", at(lineOf(key), "a key has to be a word")
	}
	if _, ok := all[text.Value]; ok {
		return "", at(lineOf(key), "%q stands here twice", clip(text.Value))
	}
	return text.Value, nil
}

func scalar(v *ast.MappingValueNode) (string, error) {
	switch n := v.Value.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	}
	return "", at(lineOf(v.Key), "%s: the value has to be a text; write it in quotes", clip(v.Key.String()))
}

func lineOf(n ast.Node) int { return n.GetToken().Position.Line + 1 }

func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
