package task

import "testing"

// TestWords: a result that is a text, or has one, has words.
func TestWords(t *testing.T) {
	for result, want := range map[string]string{`"it is off"`: "it is off", `{"receipt":[],"text":"it is off"}`: "it is off", `""`: ""} {
		if got, ok := (&Task{Result: []byte(result)}).Words(); !ok || got != want {
			t.Errorf("%s: %q, %v, want %q", result, got, ok, want)
		}
	}
	for _, result := range []string{`{"text":{"x":1}}`, `{"a":1}`, `["text"]`, `1`, `null`, `{"text":1,"text":"x"}`, ``} {
		if got, ok := (&Task{Result: []byte(result)}).Words(); ok {
			t.Errorf("%s: %q", result, got)
		}
	}
}
