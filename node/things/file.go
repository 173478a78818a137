package things

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// MaxFile bounds the file, in bytes.
const MaxFile = 2 * maxBytes

// file is the stored form of a Store, in version 1.
type file struct {
	Version int      `json:"version"`
	Things  []*entry `json:"things"`
}

func encode(all []*entry) ([]byte, error) { return json.Marshal(file{1, all}) }

// decode reads a file, and refuses one with anything that is not stored.
func decode(text []byte) ([]*entry, error) {
	if text == nil {
		return nil, nil
	}
	var f file
	if err := json.Unmarshal(text, &f, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("its version is %d, and this program knows 1", f.Version)
	}
	size := 0
	for i, e := range f.Things {
		if e == nil || !checkID(e.ID) || e.By == "" || !(e.TTL >= 0 && e.TTL <= maxTTL) {
			return nil, fmt.Errorf("its entry %d is damaged", i)
		}
		if i > 0 && strings.Compare(f.Things[i-1].ID, e.ID) >= 0 {
			return nil, fmt.Errorf("its entry %d is out of order", i)
		}
		td := objectOf(e.TD)
		if wrong := check(td); wrong != nil || string(td["id"]) != string(encoded(e.ID)) || td[registrationMember] != nil {
			return nil, fmt.Errorf("its entry %d is no description: %v", i, wrong)
		}
		size += len(e.TD)
	}
	if len(f.Things) > maxThings || size > maxBytes {
		return nil, fmt.Errorf("it has more than can be registered")
	}
	return slices.Clip(f.Things), nil
}
