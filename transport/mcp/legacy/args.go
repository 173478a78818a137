package legacy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// strict are a tool's arguments: an unknown one is refused by name.
type strict []byte

func (a strict) Decode(into any) error { return decode(a, into, json.RejectUnknownMembers(true)) }

// answer is what a client answered. It may say more than was asked.
type answer []byte

func (a answer) Decode(into any) error { return decode(a, into) }

func decode(text []byte, into any, how ...json.Options) error {
	if len(text) == 0 {
		text = []byte("{}")
	}
	err := json.Unmarshal(text, into, how...)
	var semantic *json.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jsontext.ErrDuplicateName):
		return errors.New("a name stands twice in one object")
	case !errors.As(err, &semantic):
		return fmt.Errorf("not valid JSON: %w", err)
	}
	field := strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", ".")
	if errors.Is(err, json.ErrUnknownName) {
		return fmt.Errorf("%s: there is no such field", field)
	}
	return fmt.Errorf("%s: %s does not fit here", field, semantic.JSONKind)
}
