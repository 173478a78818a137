package config

import (
	"fmt"

	"agentsite/device/driver"
)

// Entry is a device to add to a file: its name and its keys in braces.
type Entry struct{ Name, YAML string }

// Add adds devices to the text of a file, as Edit does. An empty text becomes a file of the site called
// name. Add returns an error and no text where the file has mistakes before or after.
func Add(file string, text []byte, name string, devices []Entry, drivers []driver.Driver) ([]byte, error) {
	if len(text) == 0 {
		text = NewFile(name)
	} else if _, err := Parse(file, text, drivers); err != nil {
		return nil, err
	}
	for _, d := range devices {
		keys, err := EntrySettings(d)
		if err != nil {
			return nil, err
		}
		if err := Free(file, text, d.Name); err != nil {
			return nil, err
		}
		if text, err = Edit(file, text, d.Name, keys); err != nil {
			return nil, err
		}
	}
	if _, err := Parse(file, text, drivers); err != nil {
		return nil, fmt.Errorf("nothing is written, because the file would be wrong: %w", err)
	}
	return text, nil
}

// Free returns an error where the file has a device called name.
func Free(file string, text []byte, name string) error {
	d, err := readDocument(file, text)
	if err != nil {
		return err
	}
	devices, _ := find(d.root.entries, devicesKey)
	if e, taken := find(devices.entries(), name); taken {
		return d.src.errorf(e.at, "there is a device %s already; choose another name", name)
	}
	return nil
}

// NewFile returns the text of a file of the site called name, without devices.
func NewFile(name string) []byte { return fmt.Appendf(nil, "site: { name: %s }\n", name) }
