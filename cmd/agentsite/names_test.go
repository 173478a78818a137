package main

import (
	"slices"
	"testing"
)

// TestChainNames: a name stands in a chain of callers in place of a key that the site has put there, and of none
// that a caller has written.
func TestChainNames(t *testing.T) {
	before := knownNames
	defer func() { knownNames = before }()
	knownNames = func() map[string]string {
		return map[string]string{"did:key:me": "you", "did:key:barn": "the site barn"}
	}
	for _, tt := range []struct {
		who         string
		chain, want []string
	}{
		{"token:eve", []string{"did:key:me"}, []string{"did:key:me"}},
		{"did:key:eve", []string{"did:key:me", "task/5DKQ"}, []string{"did:key:me", "task/5DKQ"}},
		{"token:rule", []string{"did:key:me", "task/5DKQ"}, []string{"did:key:me", "task/5DKQ"}},
		{"llm:gardener", []string{"did:key:me", "token:eve", "task/5DKQ"}, []string{"did:key:me", "token:eve", "task/5DKQ"}},
		{"llm:gardener", []string{"did:key:me", "local", "task/5DKQ"}, []string{"did:key:me", "local", "task/5DKQ"}},
		{"llm:gardener", []string{"did:key:me", "local-agent", "task/5DKQ"}, []string{"did:key:me", "local-agent", "task/5DKQ"}},
		{"llm:gardener", []string{"did:key:me", "token", "task/5DKQ"}, []string{"did:key:me", "token", "task/5DKQ"}},
		{"llm:gardener", []string{"did:key:me", "rule:frost", "task/5DKQ"}, []string{"did:key:me", "rule:frost", "task/5DKQ"}},
		{"llm:gardener", []string{"did:key:me", "did:key:barn", "task/5DKQ"}, []string{"did:key:me", "the site barn", "task/5DKQ"}},
		{"llm:gardener", []string{"did:key:me", "did:key:barn", "frost", "task/5DKQ"}, []string{"did:key:me", "the site barn", "frost", "task/5DKQ"}},
		{"llm:gardener", []string{"did:key:me", "task/5DKQ"}, []string{"you", "task/5DKQ"}},
	} {
		if got := allCalled(tt.who, tt.chain); !slices.Equal(got, tt.want) {
			t.Errorf("%s through %v: %v", tt.who, tt.chain, got)
		}
	}
}
