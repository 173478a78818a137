package things

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"
)

// verb is a tool and what it does. A verb without plan is not offered.
type verb struct {
	tool agents.Tool
	plan func(p agents.Principal, c agents.Call) (*agents.Plan, error)
}

// limits narrow a tool's arguments to this site, in the schema and in the check
// alike, by the names of its fields.
type limits struct {
	enums  map[string][]string
	ranges map[string]device.Range
}

// illustrated is a tool's result that shows more than its value.
type illustrated interface{ contents() []agents.Content }

// define makes a verb of typed functions: the schemas come from In and Out, and
// arguments are checked against them before do sees them. A field of In without
// omitzero is required; a required number or bool is a pointer, so that its absence can
// be seen. ask sees them unchecked, and move, nil for what moves nothing, completes the
// plan of checked ones.
func define[In, Out any](t agents.Tool, l limits, ask func(In) agents.Ask, move func(agents.Principal, In, *agents.Plan), do func(context.Context, agents.Principal, In, agents.Limits) (Out, error)) (v verb, err error) {
	fields, err := fieldsOf(reflect.TypeFor[In](), l)
	if err != nil {
		return v, err
	}
	if t.Input, err = inputSchema[In](l); err != nil {
		return v, err
	}
	if t.Output, err = outputSchema[Out](); err != nil {
		return v, err
	}
	return verb{t, func(p agents.Principal, c agents.Call) (*agents.Plan, error) {
		var in In
		wrong := c.Args.Decode(&in)
		plan := &agents.Plan{Ask: ask(in)}
		plan.Ask.Tool = t.Name
		if wrong != nil {
			return plan, device.Faultf(device.Invalid, "%s: %w", t.Name, wrong)
		}
		for _, f := range fields {
			if err := f.check(reflect.ValueOf(&in).Elem()); err != nil {
				return plan, err
			}
		}
		if move != nil {
			move(p, in, plan)
		}
		plan.Make = func(ctx context.Context, l agents.Limits) (agents.Result, error) { return result(do(ctx, p, in, l)) }
		plan.Args = func() ([]byte, error) { return json.Marshal(in, json.Deterministic(true)) }
		return plan, nil
	}}, nil
}

func result[Out any](out Out, err error) (agents.Result, error) {
	if err != nil {
		return agents.Result{}, err
	}
	res := agents.Result{Value: out}
	if i, ok := any(out).(illustrated); ok {
		res.Content = i.contents()
	}
	return res, nil
}

// field is what is checked of one argument.
type field struct {
	name     string
	index    int
	required bool
	enum     []string
	limit    *device.Range
}

func fieldsOf(t reflect.Type, l limits) ([]field, error) {
	var fields []field
	for i := range t.NumField() {
		name, opts, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		f := field{name: name, index: i, required: !strings.Contains(opts, "omitzero"), enum: l.enums[name]}
		if r, ok := l.ranges[name]; ok {
			f.limit = &r
		}
		fields = append(fields, f)
	}
	for _, name := range slices.AppendSeq(slices.Collect(maps.Keys(l.enums)), maps.Keys(l.ranges)) {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			return nil, fmt.Errorf("%v has no field %s to limit", t, name)
		}
	}
	return fields, nil
}

func (f field) check(in reflect.Value) error {
	v := in.Field(f.index)
	if v.IsZero() {
		if f.required {
			return device.Faultf(device.Invalid, "%s is missing%s", f.name, f.allowed())
		}
		return nil
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return f.member(v.String())
	case reflect.Slice:
		for i := range v.Len() {
			if err := f.member(v.Index(i).String()); err != nil {
				return err
			}
		}
	case reflect.Float64:
		if f.limit != nil && !f.limit.Contains(v.Float()) {
			return device.Faultf(device.Invalid, "%s is %v%s", f.name, v.Float(), f.allowed())
		}
	}
	return nil
}

func (f field) member(s string) error {
	if f.enum == nil || slices.Contains(f.enum, s) {
		return nil
	}
	if near := device.Nearest(s, f.enum); len(near) > 0 {
		return device.Faultf(device.Invalid, "%s: there is no %.60q here; did you mean %s?", f.name, s, strings.Join(near, " or "))
	}
	return device.Faultf(device.Invalid, "%s: there is no %.60q here%s", f.name, s, f.allowed())
}

// allowed lists what a field may be, as the end of a sentence.
func (f field) allowed() string {
	const most = 30
	switch {
	case f.limit != nil:
		return fmt.Sprintf("; it must be within %s", f.limit)
	case len(f.enum) > most:
		return fmt.Sprintf("; use one of %s and %d more (list_points names them)", strings.Join(f.enum[:most], ", "), len(f.enum)-most)
	case len(f.enum) > 0:
		return "; use " + strings.Join(f.enum, ", ")
	}
	return ""
}

func inputSchema[T any](l limits) ([]byte, error) {
	s, err := schemaOf[T]()
	if err != nil {
		return nil, err
	}
	for name, p := range s.Properties {
		if enum := l.enums[name]; enum != nil {
			into := p
			if p.Items != nil {
				into = p.Items
			}
			for _, e := range enum {
				into.Enum = append(into.Enum, e)
			}
		}
		if r, ok := l.ranges[name]; ok {
			p.Minimum, p.Maximum = &r.Min, &r.Max
		}
	}
	if len(s.Properties) > 0 {
		s.AdditionalProperties = nil // a call with more is refused all the same
	}
	return json.Marshal(s, json.Deterministic(true))
}

// outputSchema says what a result holds, and leaves out that it holds nothing
// else and always all: every client pays for these bytes with its model's.
func outputSchema[T any]() ([]byte, error) {
	s, err := schemaOf[T]()
	if err != nil {
		return nil, err
	}
	loosen(s)
	b, err := json.Marshal(s, json.Deterministic(true))
	return bytes.ReplaceAll(b, []byte(":true"), []byte(":{}")), err // not every client knows true for a schema
}

func loosen(s *jsonschema.Schema) {
	s.Required, s.AdditionalProperties = nil, nil
	for _, p := range s.Properties {
		loosen(p)
	}
	if s.Items != nil {
		loosen(s.Items)
	}
}

// schemaOf is the library's schema without the nulls that it allows for pointers
// and lists: we send none. A null that comes all the same, as models send for what
// they leave out, is taken for left out.
func schemaOf[T any]() (*jsonschema.Schema, error) {
	s, err := jsonschema.For[T](nil)
	if err == nil {
		dropNull(s)
	}
	return s, err
}

func dropNull(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		dropNull(p)
	}
	if s.Items != nil {
		dropNull(s.Items)
	}
}
