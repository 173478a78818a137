package config

import (
	"fmt"
	"slices"
	"strings"

	"agentsite/device"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// Setting is a key of a device and its value, as YAML writes it behind the key. Text that would be more
// than one value is put in quotes.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value,omitzero"` // "" removes the key
}

const maxSettings = 64 // at once; each costs a reading of the device, or of the file where that is in braces

// settingForm is the form of a key that can be set.
var settingForm = lazy(`^[a-z][a-z0-9_]*$`)

// Edit sets and removes keys of the device called name in the text of a file. A name that the file does
// not have becomes a device, after the others. All else in the text stays as it is, byte for byte: Edit
// parses the result, and returns an error and no text if more than the keys is different, or a comment is
// lost. The result may have mistakes that Parse finds.
func Edit(file string, text []byte, name string, keys []Setting) ([]byte, error) {
	if err := device.CheckName(name); err != nil {
		return nil, err
	}
	d, err := readDocument(file, text)
	if err != nil {
		return nil, err
	}
	if len(keys) > maxSettings {
		return nil, device.Faultf(device.Invalid, "more than %d keys at once; no device has so many", maxSettings)
	}
	for i, s := range keys {
		if !settingForm().MatchString(s.Key) {
			return nil, device.Faultf(device.Invalid, "%q is not a key: keys are small letters, digits and _", clip(s.Key))
		}
		if slices.ContainsFunc(keys[:i], func(b Setting) bool { return b.Key == s.Key }) {
			return nil, device.Faultf(device.Invalid, "%s is set twice; set it once", s.Key)
		}
	}
	devices, _ := find(d.root.entries, devicesKey)
	if _, there := find(devices.entries(), name); !there {
		d, err = d.addDevice(name, keys)
	} else if d, err = d.setAlone(name, keys); err != nil {
		d, err = d.setAll(name, keys)
	}
	if err != nil {
		return nil, err
	}
	return []byte(d.text), nil
}

// setAlone is setAll in the lines of the device alone, which are then put into the text. It may fail where
// setAll does not, and returns d with its error.
func (d *document) setAlone(name string, keys []Setting) (*document, error) {
	devices, _ := find(d.root.entries, devicesKey)
	dev, _ := find(devices.entries(), name)
	head := devicesKey + ":" + d.eol
	from, to := d.lines[dev.at.line-1], d.lineEnd(d.lastLine(dev))
	if d.valueOf(devices.at).flow() {
		return d, fmt.Errorf("%s is in the braces of other devices", name)
	}
	alone, err := readDocument(d.src.name, []byte(head+d.text[from:to]))
	if err == nil {
		alone, err = alone.setAll(name, keys)
	}
	if err != nil {
		return d, err
	}
	devs, _ := find(alone.root.entries, devicesKey)
	is, _ := find(devs.entries(), name)
	want := with(d.root.entries, devicesKey, &node{shape: mapping, entries: with(devices.entries(), name, is.value)})
	after, err := d.splice(from, to, strings.TrimPrefix(alone.text, head), want)
	if err != nil {
		return d, err
	}
	return after, nil
}

// setAll sets and removes keys of a device that is there, one after the other.
func (d *document) setAll(name string, keys []Setting) (_ *document, err error) {
	for _, s := range keys {
		if d, err = d.set(name, s); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// EntrySettings returns the keys of an entry in braces.
func EntrySettings(e Entry) (all []Setting, err error) {
	d, err := readDocument(e.Name, []byte(e.YAML))
	if err != nil {
		return nil, err
	}
	for _, e := range d.root.entries {
		v := d.valueOf(e.at)
		all = append(all, Setting{e.key, d.text[v.from:v.to]})
	}
	return all, nil
}

const devicesKey = "devices"

// document is the text of a file and the places of its tokens.
type document struct {
	src    *source
	text   string
	root   *node
	tokens token.Tokens
	lines  []int // where the lines begin in text
	eol    string
}

func readDocument(file string, text []byte) (*document, error) {
	root, src, err := parseTree(file, text)
	if err != nil {
		return nil, err
	}
	if root.shape != mapping {
		return nil, src.errorf(root.at, "a site is written as keys such as \"site: { name: my-site }\", not %s",
			root.what())
	}
	d := &document{src: src, text: string(text), root: root, eol: "\n"}
	d.tokens = lexer.Tokenize(strings.Join(src.lines, "\n"))
	if strings.Contains(d.text, "\r\n") {
		d.eol = "\r\n"
	}
	at := 0
	for line := range strings.SplitAfterSeq(d.text, "\n") {
		d.lines = append(d.lines, at)
		at += len(line)
	}
	if strings.HasPrefix(d.text, "\ufeff") {
		d.lines[0] = len("\ufeff")
	}
	return d, nil
}

// offset returns the place in the text of a line and column.
func (d *document) offset(p pos) int {
	line := []rune(d.src.lines[p.line-1])
	return d.lines[p.line-1] + len(string(line[:min(max(p.column-1, 0), len(line))]))
}

// lineEnd returns where a line ends in the text, without its line end.
func (d *document) lineEnd(line int) int { return d.lines[line-1] + len(d.src.lines[line-1]) }

// indent returns the space before the first word of a line.
func (d *document) indent(line int) int {
	return len(d.src.lines[line-1]) - len(strings.TrimLeft(d.src.lines[line-1], " "))
}

// value is the text of a value, and the tokens in it.
type value struct {
	colon    int // the place after the key's colon
	from, to int // in the text; both are colon where nothing is written
	tokens   token.Tokens
	line     int // the last one
}

// flow reports whether the value is in braces or brackets.
func (v value) flow() bool { return len(v.tokens) > 0 && isStart(v.tokens[0]) }

// valueOf returns the value of the key at a place of the tree.
func (d *document) valueOf(key pos) value {
	i := slices.IndexFunc(d.tokens, func(t *token.Token) bool { return position(t) == key })
	colon := position(d.tokens[i+1])
	v := value{colon: d.offset(colon) + 1, line: colon.line}
	v.from, v.to = v.colon, v.colon
	first, end, depth := i+2, i+2, 0
	for j := first; j < len(d.tokens); j++ {
		t, at := d.tokens[j], position(d.tokens[j])
		text := d.tokens[j-1].Type == token.LiteralType || d.tokens[j-1].Type == token.FoldedType
		if t.Type == token.CommentType && !text {
			continue
		}
		if depth == 0 && !text {
			item := t.Type == token.SequenceEntryType && at.column == key.column
			below := at.line > key.line && at.column <= key.column && !item
			closed := t.Type == token.MappingEndType || t.Type == token.SequenceEndType
			if below || closed || t.Type == token.CollectEntryType {
				break
			}
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		}
		if end == first {
			first, v.from = j, d.offset(at)
		}
		end = j + 1
	}
	if v.tokens = d.tokens[first:end]; first == end {
		return v
	}
	v.to = len(d.text)
	if end < len(d.tokens) {
		v.to = d.offset(position(d.tokens[end]))
	}
	v.to = v.from + len(strings.TrimRight(d.text[v.from:v.to], " \t\r\n"))
	v.line = colon.line + strings.Count(d.text[v.colon:v.to], "\n")
	return v
}

// addDevice adds a device after the others.
func (d *document) addDevice(name string, keys []Setting) (*document, error) {
	device := &node{shape: mapping}
	var pairs []string
	for _, s := range keys {
		if s.Value == "" {
			continue
		}
		text, parsed := settingValue(s)
		device.entries = append(device.entries, entry{key: s.Key, value: parsed})
		pairs = append(pairs, s.Key+": "+text)
	}
	devices, written := find(d.root.entries, devicesKey)
	want := with(d.root.entries, devicesKey, &node{shape: mapping, entries: with(devices.entries(), name, device)})
	if !written {
		return d.append(append([]string{devicesKey + ":"}, deviceLines(name, pairs, 2)...), want)
	}
	if devices.value.shape == list || devices.value.shape == scalar {
		return nil, d.src.errorf(devices.value.at, "devices expects a name per device, not %s", devices.value.what())
	}
	lines := func(indent int) []string { return deviceLines(name, pairs, indent) }
	return d.add(devices, want, inBraces(name, pairs), lines)
}

// append adds lines at the end of the text.
func (d *document) append(lines []string, want []entry) (*document, error) {
	end := len(strings.TrimSuffix(d.text, d.eol))
	return d.splice(end, end, d.eol+strings.Join(lines, d.eol), want)
}

// add adds to the mapping that is the value of e: inline where that is in braces, and lines otherwise.
func (d *document) add(e entry, want []entry, inline string, lines func(indent int) []string) (*document, error) {
	v := d.valueOf(e.at)
	inner := e.entries()
	switch {
	case v.flow() && len(inner) == 0:
		return d.splice(v.from, v.to, "{ "+inline+" }", want)
	case v.flow():
		last := d.valueOf(inner[len(inner)-1].at)
		return d.splice(last.to, last.to, ", "+inline, want)
	case len(v.tokens) > 0 && len(inner) == 0:
		return nil, d.src.errorf(e.value.at, "%s is empty; remove what stands behind its colon", e.key)
	}
	indent := d.indent(e.at.line) + 2
	if len(inner) > 0 {
		indent = inner[0].at.column - 1
	}
	end := d.lineEnd(d.lastLine(e))
	return d.splice(end, end, d.eol+strings.Join(lines(indent), d.eol), want)
}

// lastLine returns the last line of an entry. Comments that are indented like those in it belong to it.
func (d *document) lastLine(e entry) int {
	last := d.valueOf(e.at).line
	for line := last + 1; line <= len(d.src.lines); line++ {
		switch text := strings.TrimSpace(d.src.lines[line-1]); {
		case text == "":
			continue
		case strings.HasPrefix(text, "#") && d.indent(line) >= e.at.column:
			last = line
			continue
		}
		break
	}
	return last
}

// set sets or removes a key of a device that is there.
func (d *document) set(name string, s Setting) (*document, error) {
	devices, _ := find(d.root.entries, devicesKey)
	dev, _ := find(devices.entries(), name)
	return d.setIn(dev, s, func(of *node) []entry {
		return with(d.root.entries, devicesKey, &node{shape: mapping, entries: with(devices.entries(), name, of)})
	})
}

// setIn sets or removes a key of the mapping that is the value of e. root returns the entries of the file with another
// value of e.
func (d *document) setIn(e entry, s Setting, root func(of *node) []entry) (*document, error) {
	if e.value.shape != mapping {
		return nil, d.src.errorf(e.value.at, "%s: expects keys such as \"%s: …\", not %s", e.key, s.Key, e.value.what())
	}
	var text string
	var parsed *node
	if s.Value != "" {
		text, parsed = settingValue(s)
	}
	want := root(&node{shape: mapping, entries: with(e.entries(), s.Key, parsed)})
	old, there := find(e.entries(), s.Key)
	switch pair := s.Key + ": " + text; {
	case !there && parsed == nil:
		return d, nil
	case !there:
		return d.add(e, want, pair, func(indent int) []string { return []string{strings.Repeat(" ", indent) + pair} })
	case parsed == nil:
		from, to := d.whole(old, d.valueOf(e.at).flow())
		return d.splice(from, to, "", want)
	}
	v := d.valueOf(old.at)
	if space := d.text[v.colon:v.from]; space == "" || strings.Contains(space, "\n") { // on another line, or nowhere
		return d.splice(v.colon, v.to, " "+text, want)
	}
	return d.splice(v.from, v.to, text, want)
}

// whole returns the text to remove with an entry: its lines, or all but a comment behind it; in braces also
// one comma.
func (d *document) whole(e entry, flow bool) (from, to int) {
	from, to = d.offset(e.at), d.valueOf(e.at).to
	if flow {
		before, after := strings.TrimRight(d.text[:from], " \t\r\n"), strings.TrimLeft(d.text[to:], " \t\r\n")
		switch {
		case strings.HasPrefix(after, ","):
			to = len(d.text) - len(after) + 1
			to += len(d.text[to:]) - len(strings.TrimLeft(d.text[to:], " "))
		case strings.HasSuffix(before, ","):
			from = len(strings.TrimRight(before[:len(before)-1], " "))
		}
		return from, to
	}
	start := from - len(d.text[:from]) + len(strings.TrimRight(d.text[:from], " "))
	rest := d.text[to:]
	switch blank := len(rest) - len(strings.TrimLeft(rest, " \t\r")); {
	case strings.HasPrefix(rest[blank:], "\n"):
		return start, to + blank + 1
	case rest[blank:] == "": // the last line, with the line end before it
		return len(strings.TrimSuffix(d.text[:start], d.eol)), len(d.text)
	default:
		return from, to + blank
	}
}

// splice replaces a part of the text, and checks that the result has these entries and all comments.
func (d *document) splice(from, to int, with string, want []entry) (*document, error) {
	after, err := readDocument(d.src.name, []byte(d.text[:from]+with+d.text[to:]))
	if err != nil || canonical(after.root.entries) != canonical(want) ||
		!slices.Equal(comments(after.tokens), comments(d.tokens)) {
		line := 1 + strings.Count(d.text[:from], "\n")
		return nil, d.src.errorf(pos{line, 1},
			"it is not clear how to change the file here without changing more; write it by hand")
	}
	return after, nil
}

func comments(tokens token.Tokens) (all []string) {
	for _, t := range tokens {
		if t.Type == token.CommentType {
			all = append(all, t.Value)
		}
	}
	return all
}

// settingValue returns a value as it is written, also between braces, and parsed.
func settingValue(s Setting) (text string, parsed *node) {
	for _, text := range []string{strings.TrimSpace(s.Value), yamlScalar(s.Value, true)} {
		root, _, err := parseTree("", []byte("{ "+s.Key+": "+text+" }"))
		alone := err == nil && root.shape == mapping && len(root.entries) == 1 && root.entries[0].key == s.Key
		if alone && text != "" && !strings.ContainsAny(text, "\r\n#") {
			return text, root.entries[0].value
		}
	}
	text = yamlScalar(s.Value, true)
	return text, &node{shape: scalar, text: s.Value, quoted: true}
}

// with returns entries with another value of a key, at the end if it is new; nil removes it.
func with(entries []entry, key string, v *node) []entry {
	all := slices.Clone(entries)
	i := slices.IndexFunc(all, func(e entry) bool { return e.key == key })
	switch {
	case v == nil && i >= 0:
		return slices.Delete(all, i, i+1)
	case v == nil:
		return all
	case i < 0:
		return append(all, entry{key: key, value: v})
	}
	all[i].value = v
	return all
}

// entries returns those of the value, none where there is no value.
func (e entry) entries() []entry {
	if e.value == nil || e.value.shape != mapping {
		return nil
	}
	return e.value.entries
}

func inBraces(name string, pairs []string) string {
	return fmt.Sprintf("%s: { %s }", name, strings.Join(pairs, ", "))
}

// deviceLines returns a device in one line in braces, or with a line for each key where that is too long.
func deviceLines(name string, pairs []string, indent int) []string {
	const width = 100
	space := strings.Repeat(" ", indent)
	if line := space + inBraces(name, pairs); len(line) <= width {
		return []string{line}
	}
	lines := []string{space + name + ":"}
	for _, p := range pairs {
		lines = append(lines, space+"  "+p)
	}
	return lines
}
