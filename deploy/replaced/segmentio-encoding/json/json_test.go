package json

import (
	"strings"
	"testing"
)

// TestDecode: values come one after the other, and names match in their case alone.
func TestDecode(t *testing.T) {
	d := NewDecoder(strings.NewReader(`{"id":1} {"ID":2} {"id":`))
	d.DontMatchCaseInsensitiveStructFields()
	for _, want := range []int{1, 0} {
		var v struct {
			ID int `json:"id"`
		}
		if err := d.Decode(&v); err != nil || v.ID != want {
			t.Errorf("%d, not %d: %v", v.ID, want, err)
		}
	}
	var v any
	if err := d.Decode(&v); err == nil {
		t.Error("half a value is one")
	}
}
