package config

import (
	"slices"
	"strconv"
	"strings"
)

// ParseAgent parses the keys of one agent that stand in a text of their own, without kind:, may:
// and listed:. Text with invisible characters is refused, also where they are written as escapes. Errors
// name the text file.
func ParseAgent(file, name, kind, may string, text []byte) (Agent, error) {
	root, src, err := parseTree(file, text)
	if err != nil {
		return Agent{}, err
	}
	r := &report{src: src}
	if root.shape != mapping || len(root.entries) == 0 {
		r.fail(root.at, name, "expects keys such as \"when: …\", not %s", root.what())
	}
	for _, e := range only(root.entries, chosen...) {
		r.fail(e.at, name, "%s is not among the keys of a definition, which cannot choose it; remove it", e.key)
	}
	r.checkVisible(root)
	if err := r.err(); err != nil {
		return Agent{}, err
	}
	at := pos{1, 1}
	entries := []entry{scalarEntry("kind", kind, at)}
	if may != "" {
		entries = append(entries, scalarEntry("may", may, at))
	}
	a := decoder{report: r, where: name}.agent(at, append(entries, root.entries...))
	return a, r.err()
}

// checkVisible refuses text that a terminal shows in another way than it is read.
func (r *report) checkVisible(n *node) {
	check := func(at pos, text string) {
		if !printable(strings.ReplaceAll(text, "\n", "")) {
			r.fail(at, "", "%.60q has a character that cannot be seen; write it without", text)
		}
	}
	check(n.at, n.text)
	for _, e := range n.entries {
		check(e.at, e.key)
		r.checkVisible(e.value)
	}
}

// chosen are the keys of an agent that its owner chooses, whatever its definition is.
var chosen = []string{"kind", "may", "listed"}

// Renamed returns the agent with other addresses in its keys and values. Rename is called with
// each run of letters, digits, "_", "-" and "/" that could be an address, and returns what
// stands there instead.
func (a Agent) Renamed(rename func(address string) string) Agent {
	a.keys = pack(slices.Concat(only(a.keys.entries(), chosen...), renameEntries(a.definition(), func(text string) string {
		return addressForm().ReplaceAllStringFunc(text, rename)
	})))
	return a
}

// addressForm matches what could be an address.
var addressForm = lazy(`[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)+`)

func renameEntries(entries []entry, rename func(string) string) []entry {
	all := slices.Clone(entries)
	for i, e := range all {
		all[i].key, all[i].value = rename(e.key), e.value.renamed(rename)
	}
	return all
}

func (n *node) renamed(rename func(string) string) *node {
	m := *n
	m.text, m.entries = rename(n.text), renameEntries(n.entries, rename)
	return &m
}

// Text returns the agent's keys as YAML that ParseAgent reads, without kind:, may:, listed: and comments.
func (a Agent) Text() string {
	var b strings.Builder
	writeEntries(&b, a.definition(), "")
	return b.String()
}

func (a Agent) definition() []entry {
	return slices.DeleteFunc(a.keys.entries(), func(e entry) bool { return slices.Contains(chosen, e.key) })
}

func writeEntries(b *strings.Builder, entries []entry, indent string) {
	for _, e := range entries {
		b.WriteString(indent + yamlScalar(e.key, false) + ":")
		e.value.write(b, indent+"  ")
	}
}

// write writes the value after its key or dash; indent is that of what is in it.
func (n *node) write(b *strings.Builder, indent string) {
	switch {
	case n.shape == scalar:
		b.WriteString(" " + yamlScalar(n.text, n.quoted) + "\n")
	case n.shape == mapping && len(n.entries) > 0:
		b.WriteString("\n")
		writeEntries(b, n.entries, indent)
	case n.shape == mapping:
		b.WriteString(" {}\n")
	case n.shape == list && len(n.entries) > 0:
		b.WriteString("\n")
		for _, item := range n.entries {
			b.WriteString(indent + "-")
			item.value.write(b, indent+"  ")
		}
	case n.shape == list:
		b.WriteString(" []\n")
	default:
		b.WriteString(" null\n")
	}
}

// plainForm matches text that needs no quotes anywhere in block style. Numbers must have none.
var plainForm = lazy(`^[A-Za-z0-9_/.+-]([A-Za-z0-9_/.,+*()<>= %-]*[A-Za-z0-9_/.,+*()%])?$`)

func yamlScalar(text string, quoted bool) string {
	marker := text == "-" || text == "..." || strings.HasPrefix(text, "- ") || strings.HasPrefix(text, "---")
	if !quoted && !marker && plainForm().MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}
