package guard

import (
	"slices"
	"testing"
)

// TestCauseWord: each text of a return has a word of Causes, and the causes that broke a lease have words of their own.
func TestCauseWord(t *testing.T) {
	words := make(map[string]string)
	for r, text := range endings {
		word := CauseWord(text)
		if word == "" || !slices.Contains(Causes(), word) {
			t.Errorf("reason %d: %q", r, word)
		}
		if other, again := words[word]; again && other != text {
			t.Errorf("%q and %q are %s", other, text, word)
		}
		words[word] = text
	}
	if got := CauseWord(WhyEnded); got != "restart" {
		t.Errorf("the guard's end is %s", got)
	}
	if got := CauseWord("a text of a driver"); got != "other" || len(words) != len(Causes()) {
		t.Errorf("%q; %d words for %d causes", got, len(words), len(Causes()))
	}
}
