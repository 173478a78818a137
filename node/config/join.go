package config

import "strings"

// JoinRealm sets the realm in the section internet of a file, and its relays unless there are none to set. It adds the
// section where the file has none. All else stays as it is, byte for byte, as with Edit.
func JoinRealm(file string, text []byte, realm string, relays []string) ([]byte, error) {
	keys := []Setting{{"realm", realm}}
	if len(relays) > 0 {
		keys = append(keys, Setting{"relays", `["` + strings.Join(relays, `", "`) + `"]`})
	}
	d, err := readDocument(file, text)
	if err != nil {
		return nil, err
	}
	for _, s := range keys {
		if d, err = d.setInternet(s); err != nil {
			return nil, err
		}
	}
	return []byte(d.text), nil
}

func (d *document) setInternet(s Setting) (*document, error) {
	root := func(of *node) []entry { return with(d.root.entries, "internet", of) }
	value, parsed := settingValue(s)
	want := entry{key: s.Key, value: parsed}
	e, written := find(d.root.entries, "internet")
	if !written {
		return d.append(
			[]string{"internet:", "  " + s.Key + ": " + value}, root(&node{shape: mapping, entries: []entry{want}}),
		)
	}
	if old, there := find(e.entries(), s.Key); there && canonical([]entry{old}) == canonical([]entry{want}) {
		return d, nil // however it is spelled
	}
	return d.setIn(e, s, root)
}
