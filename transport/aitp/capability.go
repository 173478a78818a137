package aitp

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The capabilities of AITP that a site has.
const (
	decisionsSchema = "https://aitp.dev/capabilities/aitp-02-decisions/v1.0.0/schema.json"
	dataSchema      = "https://aitp.dev/capabilities/aitp-03-data-request/v1.0.0/schema.json"
)

// requestDecision asks the caller to choose.
type requestDecision struct {
	Schema   string `json:"$schema"`
	Decision struct {
		ID          string           `json:"id"`
		Title       string           `json:"title,omitzero"`
		Description string           `json:"description,omitzero"`
		Type        string           `json:"type"` // radio or confirmation
		Options     []decisionOption `json:"options"`
	} `json:"request_decision"`
}

type decisionOption struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitzero"`
	Description string `json:"description,omitzero"`
}

// requestData asks the caller to fill in a form.
type requestData struct {
	Schema string `json:"$schema"`
	Data   struct {
		ID          string `json:"id"`
		Title       string `json:"title,omitzero"`
		Description string `json:"description"`
		Form        struct {
			Fields []formField `json:"fields"`
		} `json:"form"`
	} `json:"request_data"`
}

type formField struct {
	ID          string   `json:"id"`
	Label       string   `json:"label,omitzero"`
	Description string   `json:"description,omitzero"`
	Type        string   `json:"type"` // text, number, textarea or select
	Options     []string `json:"options,omitzero"`
	Required    bool     `json:"required"`
}

// payload is a caller's message of a capability, or an operation with its arguments.
type payload struct {
	Schema   *string `json:"$schema"`
	Decision *struct {
		Request string `json:"request_decision_id"`
		Options []struct {
			ID string `json:"id"`
		} `json:"options"`
	} `json:"decision"`
	Data *struct {
		Request string `json:"request_data_id"`
		Fields  []struct {
			ID    string `json:"id"`
			Value string `json:"value"`
		} `json:"fields"`
	} `json:"data"`
	Operation string         `json:"operation"`
	Arguments jsontext.Value `json:"arguments"`
}

// parsePayload returns the payload among a message's texts; ok is false where all are plain
// words. The name of an operation alone is one without arguments.
func parsePayload(texts []string) (p payload, ok bool, err error) {
	for _, text := range texts {
		if text = strings.TrimSpace(text); !strings.HasPrefix(text, "{") {
			continue
		}
		var this payload
		if err := decode([]byte(text), &this); err != nil {
			return p, false, err
		}
		if ok {
			return p, false, device.Faultf(device.Invalid, "content: one thing at a time")
		}
		p, ok = this, true
	}
	switch {
	case !ok && len(texts) == 1 && isName(texts[0]):
		return payload{Operation: texts[0]}, true, nil
	case !ok:
		return p, false, nil
	case p.Operation == "" && p.Decision == nil && p.Data == nil:
		return p, false, device.Faultf(device.Invalid, "content: this site knows the decisions and the data of AITP-02 and AITP-03, and {\"operation\": name, \"arguments\": object}")
	case p.Arguments != nil && p.Arguments.Kind() != '{':
		return p, false, device.Faultf(device.Invalid, "content: arguments must be an object")
	}
	return p, ok, nil
}

// isName reports whether a text looks like the name of a tool.
func isName(text string) bool {
	if len(text) > 40 || !strings.Contains(text, "_") {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// schema is as much of a tool's JSON Schema as a form needs.
type schema struct {
	Type        jsontext.Value     `json:"type"`
	Enum        []jsontext.Value   `json:"enum"`
	Description string             `json:"description"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Items       *schema            `json:"items"`
}

func (s *schema) is(name string) bool { return string(s.Type) == `"`+name+`"` }

// missing reports whether a required argument is not given.
func (s *schema) missing(args map[string]jsontext.Value) bool {
	return slices.ContainsFunc(s.Required, func(name string) bool { return args[name] == nil })
}

// fields are those of a form for the arguments that are not given, the required ones first.
func (s *schema) fields(args map[string]jsontext.Value) (out []formField) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		if args[name] != nil || p == nil {
			continue
		}
		f := formField{ID: name, Label: strings.ReplaceAll(name, "_", " "), Description: p.Description, Type: "text", Required: slices.Contains(s.Required, name)}
		switch {
		case len(p.Enum) > 0:
			f.Type, f.Options = "select", p.options()
		case p.is("boolean"):
			f.Type, f.Options = "select", []string{"true", "false"}
		case p.is("number"), p.is("integer"):
			f.Type = "number"
		case p.is("array"):
			f.Description = cmp.Or(f.Description, "several are separated by commas")
		case p.is("object"):
			f.Type, f.Description = "textarea", cmp.Or(f.Description, "an object in JSON")
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b formField) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return out
}

// options are the texts of an enum.
func (s *schema) options() (out []string) {
	for _, v := range s.Enum {
		var text string
		if json.Unmarshal(v, &text) != nil {
			text = string(v)
		}
		out = append(out, text)
	}
	return out
}

// value converts the text of a field to its argument.
func (s *schema) value(text string) (jsontext.Value, error) {
	switch {
	case s.is("boolean"), s.is("number"), s.is("integer"), s.is("object"):
		v := jsontext.Value(strings.TrimSpace(text))
		if !v.IsValid() || v.Kind() == '"' {
			return nil, device.Faultf(device.Invalid, "%.40q is not of the field's kind", text)
		}
		return v, nil
	case s.is("array"):
		var all []jsontext.Value
		for _, item := range strings.Split(text, ",") {
			of := s.Items
			if of == nil {
				of = &schema{}
			}
			v, err := of.value(strings.TrimSpace(item))
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return json.Marshal(all)
	}
	return json.Marshal(text)
}
