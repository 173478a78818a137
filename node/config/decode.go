package config

import (
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// field is a key of a Go struct.
type field struct {
	key      string
	index    []int
	optional bool // its tag has omitempty or omitzero
	doc      string
}

// fieldsByType has the result of fieldsOf for each type: a file may have many entries of one.
var fieldsByType sync.Map

// fieldsOf lists the keys of a struct as encoding/json names them; the fields of an embedded
// struct without a name are its own. Other types have none. The list is not to be changed.
func fieldsOf(t reflect.Type) []field {
	if t.Kind() != reflect.Struct {
		return nil
	}
	if known, ok := fieldsByType.Load(t); ok {
		return known.([]field)
	}
	fields := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && key == "" && f.Type.Kind() == reflect.Struct {
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
			continue
		}
		if !f.IsExported() || key == "-" && options == "" {
			continue
		}
		if key == "" {
			key = f.Name
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		fields = append(fields, field{key, f.Index, optional, f.Tag.Get("jsonschema")})
	}
	fieldsByType.Store(t, fields)
	return fields
}

// required reports whether the key must be written: its tag does not make it optional and it
// has no default.
func (f field) required(defaults reflect.Value) bool {
	return !f.optional && defaults.FieldByIndex(f.index).IsZero()
}

// keysOf lists the keys of a struct; see fieldsOf.
func keysOf(t reflect.Type) []string {
	fields := fieldsOf(t)
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}

// decoder decodes nodes into Go values and reports every mistake under where: a section, a
// device or a device/point.
type decoder struct {
	*report
	where string
	of    *driver.Driver // whose keys are decoded; nil for other keys
	files *[]file        // gets the files that the keys name; nil if none is read
}

func (d decoder) fail(at pos, format string, args ...any) {
	d.report.fail(at, d.where, format, args...)
}

// fields decodes entries into the struct v. at is the place of the struct's name; alsoKnown
// are further keys that are allowed here, for the suggestions.
func (d decoder) fields(at pos, path string, entries []entry, v reflect.Value, alsoKnown ...string) {
	fields := fieldsOf(v.Type())
	var meant []string // keys that are written in other words
	for _, e := range entries {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.key == e.key }) {
			hint, keys := d.suggestKey(e.key, keysOf(v.Type()), alsoKnown)
			d.fail(e.at, "there is no key %q here%s", clip(e.key), hint)
			meant = append(meant, keys...)
		}
	}
	for _, f := range fields {
		if _, written := find(entries, f.key); !written && f.required(v) && !slices.Contains(meant, f.key) {
			value := "…"
			if t := v.FieldByIndex(f.index).Type(); t.Kind() == reflect.Bool || t == valueType {
				value = "off"
			}
			d.fail(at, "%s is missing; add \"%s: %s\"%s", join(path, f.key), f.key, value, inBrackets(f.doc))
		}
	}
	for _, e := range entries {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == e.key })
		if i >= 0 {
			d.value(join(path, e.key), e.value, v.FieldByIndex(fields[i].index))
		}
	}
}

// named returns the entries of a section whose keys are names, such as those of devices. The section may be
// empty.
func (d decoder) named(e entry, what, example string) (all []entry) {
	if e.value.shape != mapping && e.value.shape != empty {
		d.fail(e.value.at, "expects a name per %s, such as \"%s\", not %s", what, example, e.value.what())
		return nil
	}
	for _, e := range e.value.entries {
		if err := device.CheckName(e.key); err != nil {
			d.fail(e.at, "%w", err)
			continue
		}
		all = append(all, e)
	}
	return all
}

// areKeys reports whether n is written as keys; an example shows what else is expected.
func (d decoder) areKeys(n *node, example string) bool {
	if n.shape != mapping {
		d.fail(n.at, "expects keys such as \"%s\", not %s", example, n.what())
	}
	return n.shape == mapping
}

func inBrackets(doc string) string {
	if doc == "" {
		return ""
	}
	return " (" + doc + ")"
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

var (
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	durationType    = reflect.TypeFor[time.Duration]()
	valueType       = reflect.TypeFor[device.Value]()
	rangeType       = reflect.TypeFor[device.Range]()
)

// parsers parse the types that are written in one value and have no UnmarshalText.
var parsers = map[reflect.Type]func(*node) (any, error){
	durationType: func(n *node) (any, error) { return parseDuration(n.text) },
	valueType:    func(n *node) (any, error) { return parseValue(n) },
	rangeType:    func(n *node) (any, error) { return parseRange(n.text) },
}

// value decodes n, the value of the key path, into v.
func (d decoder) value(path string, n *node, v reflect.Value) {
	text, isText := v.Addr().Interface().(encoding.TextUnmarshaler)
	parse := parsers[v.Type()]
	switch {
	case n.shape == empty:
		d.fail(n.at, "%s has no value; write one or remove the key", path)
	case parse == nil && !isText:
		d.kind(path, n, v)
	case !d.scalar(path, n, "one value"):
	case isText:
		if err := text.UnmarshalText([]byte(n.text)); err != nil {
			d.fail(n.at, "%s %w", path, err)
		}
	default:
		got, err := parse(n)
		if err != nil {
			d.fail(n.at, "%s %w", path, err)
			return
		}
		v.Set(reflect.ValueOf(got))
	}
}

func (d decoder) scalar(path string, n *node, wanted string) bool {
	if n.shape != scalar {
		d.fail(n.at, "%s takes %s, not %s%s", path, wanted, n.what(), asText(path, wanted, n))
		return false
	}
	return true
}

// asText returns the hint for a list or keys that were meant as a text: a unit such as [degF] or {count}
// needs quotes, and one value in brackets none.
func asText(path, wanted string, n *node) string {
	if len(n.entries) != 1 {
		return ""
	}
	text := n.entries[0].key
	if n.shape == list {
		text = n.entries[0].value.text
	}
	switch isUnit := path == "unit" || strings.HasSuffix(path, ".unit"); {
	case text == "":
		return ""
	case isUnit && n.shape == mapping:
		return fmt.Sprintf("; write \"{%s}\" with the quotes", clip(text))
	case isUnit:
		return fmt.Sprintf("; write \"[%s]\" with the quotes", clip(text))
	case n.shape == list:
		return fmt.Sprintf("; write %s without the brackets", clip(text))
	case n.entries[0].value.shape == empty:
		return fmt.Sprintf("; write %s without the braces", clip(text))
	case wanted == "text":
		return "; put text with a colon in quotes"
	}
	return ""
}

// kind decodes n by the kind of v.
func (d decoder) kind(path string, n *node, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		before, target := len(d.errs), reflect.New(v.Type().Elem())
		if d.value(path, n, target.Elem()); len(d.errs) == before {
			v.Set(target) // after a mistake nil stays, for later checks
		}
	case reflect.String:
		if v.Type() == fileType {
			d.file(path, n, v)
		} else if d.scalar(path, n, "text") {
			v.SetString(n.text) // as written: 1.10 stays 1.10
		}
	case reflect.Bool:
		on, ok := parseBool(n.text)
		if n.shape != scalar || !ok {
			d.fail(n.at, "%s takes on or off, not %s%s", path, n.what(), boolHint(n.text))
			return
		}
		v.SetBool(on)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.whole(path, n, v)
	case reflect.Float32, reflect.Float64:
		number, err := parseNumber(n.text)
		if n.shape != scalar || n.quoted || err != nil || v.OverflowFloat(number) {
			d.fail(n.at, "%s takes a number such as 0.5, not %s%s", path, n.what(), numberHint(n, decimal()))
			return
		}
		v.SetFloat(number)
	case reflect.Slice:
		d.list(path, n, v)
	case reflect.Map:
		d.mapping(path, n, v)
	case reflect.Struct:
		if n.shape != mapping {
			hint := ""
			if meant := fitted(n, v.Type()); meant.shape == mapping && d.mistakeIn(path, meant, v.Type()) == nil {
				hint = "; write " + inline(meant)
			}
			d.fail(n.at, "%s takes keys such as %s, not %s%s", path, strings.Join(keysOf(v.Type()), ", "), n.what(), hint)
			return
		}
		d.fields(n.at, path, n.entries, v)
	default:
		d.fail(n.at, "%s cannot be decoded: its Go type %s has no form in YAML; this is a defect of the driver",
			path, v.Type())
	}
}

var wholeNumber = lazy(`^([-+]?(0|[1-9][0-9]*)|0x[0-9a-fA-F]+)$`)

func (d decoder) whole(path string, n *node, v reflect.Value) {
	if n.shape != scalar || n.quoted || !wholeNumber().MatchString(n.text) {
		d.fail(n.at, "%s takes a whole number such as 10 or 0x76, not %s%s", path, n.what(), numberHint(n, wholeNumber()))
		return
	}
	bits := v.Type().Bits()
	if v.CanInt() {
		number, err := strconv.ParseInt(n.text, 0, bits)
		if err != nil {
			d.fail(n.at, "%s takes %d to %d; %s is outside", path, int64(-1)<<(bits-1), int64(1)<<(bits-1)-1, clip(n.text))
		}
		v.SetInt(number)
		return
	}
	number, err := strconv.ParseUint(strings.TrimPrefix(n.text, "+"), 0, bits)
	if err != nil {
		d.fail(n.at, "%s takes 0 to %d; %s is outside", path, ^uint64(0)>>(64-bits), clip(n.text))
	}
	v.SetUint(number)
}

// numberHint returns the hint for a number in quotes, with a decimal comma or with a unit.
func numberHint(n *node, form *regexp.Regexp) string {
	if _, err := parseNumber(n.text); n.quoted && err == nil {
		return "; remove the quotes"
	}
	number := strings.TrimRight(strings.Replace(n.text, ",", ".", 1),
		" %°ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
	if number != n.text && form.MatchString(number) {
		return "; write " + number
	}
	return ""
}

func (d decoder) list(path string, n *node, v reflect.Value) {
	if n.shape != list {
		d.noList(path, n, v.Type())
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.entries), len(n.entries)))
	for i, item := range n.entries {
		d.value(fmt.Sprintf("%s[%d]", path, i), item.value, v.Index(i))
	}
}

// noList reports that n stands where a list is wanted.
func (d decoder) noList(path string, n *node, t reflect.Type) {
	meant := fitted(n, t)
	if err := d.mistakeIn(path, meant, t); err != nil {
		d.fail(n.at, "%s takes a list, not %s; write [ ] around it, and mend this: %w", path, n.what(), err)
	} else {
		d.fail(n.at, "%s takes a list, not %s; write %s", path, n.what(), inline(meant))
	}
}

// mistakeIn returns the first mistake in a value for a type, without reporting it.
func (d decoder) mistakeIn(path string, n *node, t reflect.Type) error {
	trial := decoder{report: &report{src: d.src}, of: d.of}
	if trial.value(path, n, reflect.New(t).Elem()); len(trial.errs) > 0 {
		return trial.errs[0].Err
	}
	return nil
}

// fitted returns a value in the shape that a type has in the file: what is one value for a list as its item,
// words for a list as its items, and a name with a value behind it as a mapping.
func fitted(n *node, t reflect.Type) *node {
	switch {
	case t.Kind() == reflect.Slice && n.shape != list:
		items := []*node{fitted(n, t.Elem())}
		if n.shape == scalar && len(keysIn(t.Elem())) == 0 {
			items = nil
			for word := range strings.FieldsSeq(n.text) {
				items = append(items, &node{at: n.at, shape: scalar, text: strings.TrimSuffix(word, ",")})
			}
		}
		out := &node{at: n.at, shape: list}
		for _, item := range items {
			out.entries = append(out.entries, entry{at: item.at, value: item})
		}
		return out
	case t.Kind() == reflect.Map && n.shape == list && len(n.entries) == 1:
		return fitted(n.entries[0].value, t)
	case t.Kind() == reflect.Map && n.shape == scalar && !n.quoted:
		if m := namedValue().FindStringSubmatch(n.text); m != nil {
			value := &node{at: n.at, shape: scalar, text: m[2]}
			return &node{at: n.at, shape: mapping, entries: []entry{{n.at, m[1], value}}}
		}
	case t.Kind() == reflect.Struct && n.shape == scalar && !n.quoted:
		key, rest, _ := strings.Cut(n.text, " ")
		if rest != "" && slices.ContainsFunc(keysIn(t), func(f field) bool { return f.key == key }) {
			value := &node{at: n.at, shape: scalar, text: rest}
			return fitted(&node{at: n.at, shape: mapping, entries: []entry{{n.at, key, value}}}, t)
		}
	case t.Kind() == reflect.Struct && n.shape == mapping:
		out := *n
		out.entries = slices.Clone(n.entries)
		for i, e := range out.entries {
			for _, f := range fieldsOf(t) {
				if f.key == e.key {
					out.entries[i].value = fitted(e.value, t.FieldByIndex(f.index).Type)
				}
			}
		}
		return &out
	}
	return n
}

// namedValue matches a name and a value in one text.
var namedValue = lazy(`^([a-z0-9_/-]+)\s*[=\s]\s*(\S+)$`)

// inline returns a value as YAML writes it in one line; with an ellipsis for items that are too many for an
// error.
func inline(n *node) string {
	parts := make([]string, len(n.entries))
	for i, e := range n.entries {
		if parts[i] = inline(e.value); n.shape == mapping {
			parts[i] = inline(&node{shape: scalar, text: e.key}) + ": " + parts[i]
		}
	}
	text := strings.Join(parts, ", ")
	if len(text) > 100 {
		text = "…"
	}
	switch {
	case n.shape == mapping:
		text = "{ " + text + " }"
	case n.shape == list:
		text = "[" + text + "]"
	case n.shape == scalar:
		text = yamlScalar(n.text, n.quoted || strings.Contains(n.text, ","))
	}
	return text
}

func (d decoder) mapping(path string, n *node, v reflect.Value) {
	t := v.Type()
	if n.shape != mapping {
		hint := "; write a name before each, as in { pump: … }"
		switch meant := fitted(n, t); {
		case meant.shape == mapping && d.mistakeIn(path, meant, t) == nil:
			hint = "; write " + inline(meant)
		case n.shape == scalar && t.Elem().Kind() == reflect.String: // the text of a display, rather than its name
			hint = "; write a name before it, as in { NAME: " + clip(n.text) + " }"
		case n.shape == scalar:
			hint = "; write { " + clip(n.text) + ": … }"
		}
		d.fail(n.at, "%s takes keys with values, not %s%s", path, n.what(), hint)
		return
	}
	v.Set(reflect.MakeMapWithSize(t, len(n.entries)))
	for _, e := range n.entries {
		item := reflect.New(t.Elem()).Elem()
		d.value(join(path, e.key), e.value, item)
		v.SetMapIndex(reflect.ValueOf(e.key).Convert(t.Key()), item)
	}
}
