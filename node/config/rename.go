package config

import "fmt"

// KeepName returns text with the name of the site that the text of has. All else stays as it is, byte for byte.
func KeepName(file string, text, of []byte) ([]byte, error) {
	was, err := readDocument(file, of)
	if err != nil {
		return nil, err
	}
	d, err := readDocument(file, text)
	if err != nil {
		return nil, err
	}
	site, _ := find(d.root.entries, "site")
	old, _ := find(was.root.entries, "site")
	name, ok := find(site.entries(), "name")
	kept, had := find(old.entries(), "name")
	if !ok || !had || name.value.shape != scalar || kept.value.shape != scalar {
		return nil, fmt.Errorf("%s: a site's name is written as site: { name: my-site }", file)
	}
	if name.value.text == kept.value.text {
		return text, nil
	}
	written, parsed := settingValue(Setting{Key: "name", Value: kept.value.text})
	want := with(d.root.entries, "site", &node{shape: mapping, entries: with(site.entries(), "name", parsed)})
	v := d.valueOf(name.at)
	if d, err = d.splice(v.from, v.to, written, want); err != nil {
		return nil, err
	}
	return []byte(d.text), nil
}
