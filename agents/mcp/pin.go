package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxDefinition = 2 << 10 // bytes of canonical JSON
	maxListed     = 256     // tools of a child
	maxPages      = 8
	maxBook       = 256 // children with accepted tools
)

// definition is all of a tool that a model is told, or that a client may act by.
type definition struct {
	Name        string         `json:"name"`
	Title       string         `json:"title,omitzero"`
	Description string         `json:"description,omitzero"`
	Input       jsontext.Value `json:"inputSchema"`
	Output      jsontext.Value `json:"outputSchema,omitzero"`
	Annotations jsontext.Value `json:"annotations,omitzero"`
}

// canonical returns the one text of a tool's definition, by RFC 8785.
func canonical(t *sdk.Tool) (jsontext.Value, error) {
	d := definition{Name: t.Name, Title: t.Title, Description: t.Description}
	for part, into := range map[any]*jsontext.Value{&t.InputSchema: &d.Input, &t.OutputSchema: &d.Output, &t.Annotations: &d.Annotations} {
		text, err := json.Marshal(part)
		if err != nil {
			return nil, errors.New("its definition is not JSON")
		}
		if string(text) != "null" {
			*into = text
		}
	}
	if d.Input == nil {
		d.Input = jsontext.Value("{}")
	}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, errors.New("its definition is not JSON")
	}
	v := jsontext.Value(text)
	if err := v.Canonicalize(); err != nil {
		return nil, errors.New("its definition is not JSON")
	}
	return v, checkDefinition(v)
}

// checkDefinition refuses a definition that cannot be offered.
func checkDefinition(text jsontext.Value) error {
	if len(text) > maxDefinition {
		return fmt.Errorf("its definition has %d bytes, at most %d are offered", len(text), maxDefinition)
	}
	if strings.Contains(string(text), `\u00`) { // canonical JSON writes no other characters so
		return errors.New("its definition has control characters")
	}
	if strings.Contains(string(text), `"x-mcp-header"`) { // which has clients send arguments outside the call, where nothing here compares them
		return errors.New("its schemas have x-mcp-header, which is not passed on")
	}
	if hidesText(string(text)) {
		return errors.New("its definition has characters that people do not see")
	}
	var d definition
	if err := json.Unmarshal(text, &d); err != nil || !toolName().MatchString(d.Name) {
		return errors.New("its definition is not one of a tool")
	}
	for _, schema := range []jsontext.Value{d.Input, d.Output} {
		if schema == nil {
			continue
		}
		var s struct {
			Type any `json:"type"`
		}
		if err := json.Unmarshal(schema, &s); err != nil || s.Type != "object" {
			return errors.New("its schemas are not of type object")
		}
	}
	return nil
}

// tool returns a definition as the site offers it.
func (d definition) tool(name string) tools.Tool {
	var hints struct {
		ReadOnly    bool  `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
		Idempotent  bool  `json:"idempotentHint"`
	}
	if d.Annotations != nil && json.Unmarshal(d.Annotations, &hints) != nil {
		hints.ReadOnly = false
	}
	t := tools.Tool{Name: name, Title: d.Title, Description: d.Description, Input: d.Input, Hints: tools.Hints{
		ReadOnly: hints.ReadOnly, Destructive: !hints.ReadOnly && (hints.Destructive == nil || *hints.Destructive), Idempotent: hints.Idempotent,
	}}
	if d.Output != nil {
		t.Output = d.Output
	}
	return t
}

// digest is that of several definitions, in their order.
func digest(texts []jsontext.Value) string {
	h := sha256.New()
	for _, text := range texts {
		sum := sha256.Sum256(text)
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Book stores the definitions that owners accepted, in their canonical form. It is safe for
// concurrent use.
type Book struct {
	keep func([]byte) error

	mu  sync.Mutex
	all map[string]map[string]jsontext.Value // by agent and the child's name of the tool
}

// ReadBook decodes the last argument of keep, nil for none. keep makes it durable.
func ReadBook(text []byte, keep func([]byte) error) (*Book, error) {
	b := &Book{keep: keep, all: make(map[string]map[string]jsontext.Value)}
	if len(text) == 0 {
		return b, nil
	}
	if err := json.Unmarshal(text, &b.all); err != nil {
		return nil, fmt.Errorf("the accepted tools cannot be read: %w", err)
	}
	if len(b.all) > maxBook {
		return nil, errors.New("the accepted tools are of too many children")
	}
	for name, accepted := range b.all {
		if err := device.CheckName(name); err != nil {
			return nil, fmt.Errorf("the accepted tools: %w", err)
		}
		for tool, v := range accepted {
			var d definition
			if err := v.Canonicalize(); err != nil {
				return nil, fmt.Errorf("the accepted tool %.70q of %s: %w", tool, name, err)
			}
			if err := checkDefinition(v); err != nil {
				return nil, fmt.Errorf("the accepted tool %.70q of %s: %w", tool, name, err)
			}
			if err := json.Unmarshal(v, &d); err != nil || d.Name != tool {
				return nil, fmt.Errorf("the accepted tool %.70q of %s has another name", tool, name)
			}
			accepted[tool] = v
		}
	}
	return b, nil
}

// of returns the accepted definition of a tool; nil for none.
func (b *Book) of(agent, tool string) jsontext.Value {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[agent][tool]
}

// accept replaces the accepted tools of a child.
func (b *Book) accept(agent string, all map[string]jsontext.Value) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, had := b.all[agent]
	if !had && len(b.all) >= maxBook {
		return device.Faultf(device.Unavailable, "tools of %d children are accepted, and a site keeps no more", maxBook)
	}
	b.all[agent] = all
	text, err := json.Marshal(b.all, json.Deterministic(true))
	if err == nil {
		err = b.keep(text)
	}
	if err != nil {
		if b.all[agent] = before; !had {
			delete(b.all, agent)
		}
		return device.Faultf(device.Unavailable, "nothing is accepted, because the disk does not store it: %w", err)
	}
	return nil
}
