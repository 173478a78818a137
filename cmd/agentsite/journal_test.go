package main

import (
	"bytes"
	"errors"
	"testing"

	"agentsite/node/journal"
)

// TestContradiction: a site's answer that does not have the noted entry is not taken for verified.
func TestContradiction(t *testing.T) {
	noted, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	f := journal.Filter{Known: 7, KnownHash: noted}
	for _, p := range []journal.Page{{First: 1, Last: 7, Hash: other}, {First: 1, Last: 6, Hash: noted}, {}} {
		if err := contradiction(p, f); !errors.Is(err, journal.ErrOther) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if err := contradiction(journal.Page{First: 1, Last: 8, Hash: []byte{1}}, f); err == nil {
		t.Error("a hash of one byte")
	}
	for _, p := range []journal.Page{{First: 1, Last: 7, Hash: noted}, {First: 1, Last: 8, Hash: other}} {
		if err := contradiction(p, f); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if err := contradiction(journal.Page{}, journal.Filter{}); err != nil {
		t.Error(err) // an empty journal
	}
}
