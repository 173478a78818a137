package bundle

import (
	"crypto/sha256"
	"slices"
	"testing"
)

// FuzzCatalog: a list of another site has at most as many files as a site shares, each once.
func FuzzCatalog(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 3*sha256.Size))
	f.Add(make([]byte, sha256.Size-1))
	f.Add(slices.Repeat([]byte("0123456789"), 6400))
	f.Fuzz(func(t *testing.T, b []byte) {
		ids, err := DecodeCatalog(b)
		if err != nil {
			return
		}
		if again, err := DecodeCatalog(EncodeCatalog(ids)); err != nil || !slices.Equal(again, ids) || len(ids) > maxShared {
			t.Errorf("%d files, %v", len(ids), err)
		}
		for i, id := range ids {
			if slices.Contains(ids[:i], id) {
				t.Error("a file is there twice")
			}
		}
	})
}

// TestWords: words are those that can be announced, whatever the name is.
func TestWords(t *testing.T) {
	c := Content{Name: "frost_guard-2", Kind: "rule", Tags: []string{"heating", "rule"}}
	if got := c.Words(); !slices.Equal(got, []string{"frost_guard-2", "frost", "guard", "2", "rule", "heating"}) {
		t.Error(got)
	}
	if !c.Matches(nil) || !c.Matches([]string{"guard", "heating"}) || c.Matches([]string{"guard", "cold"}) {
		t.Error("it matches other words than its own")
	}
	c.Name = "--"
	if got := c.Words(); !slices.Equal(got, []string{"--", "rule", "heating"}) {
		t.Error(got)
	}
}
