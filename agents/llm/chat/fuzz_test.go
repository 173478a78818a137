package chat

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzCompletion: whatever a server sends, an answer is within its bounds, and its calls have
// different IDs.
func FuzzCompletion(f *testing.F) {
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(files) == 0 {
		f.Fatal("no transcripts", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), false)
	}
	f.Add(`{"choices":[{"message":{"content":[{"text":"a"}],"tool_calls":[{"function":{"name":1,"arguments":[]}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1e300,"completion_tokens":-1}}`, true)
	f.Add(strings.Repeat("\U000e0001", 300), true) // its escapes are long
	f.Fuzz(func(t *testing.T, text string, whole bool) {
		m := merger{body: strings.NewReader(text), key: "sk-1", alive: func() {}, say: func(string) {}}
		a, err := m.read()
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		ids := make(map[string]bool)
		for _, c := range a.Calls {
			if (c.Arguments == nil) == (c.Broken == "") || c.Arguments != nil && (c.Arguments.Kind() != '{' || !c.Arguments.IsValid()) {
				t.Errorf("%+v", c)
			}
			ids[c.ID] = true
		}
		if len(ids) != len(a.Calls) || len(a.Calls) > maxCalls || len(a.Text) > 3*maxText || !utf8.ValidString(a.Text) || a.Usage.Prompt < 0 || a.Usage.Answer < 0 {
			t.Errorf("%+v", a)
		}
		said := a.Message()
		if wire := jsontext.Value(said.wire(nil)); !wire.IsValid() { // names that come twice are not valid
			t.Errorf("it is told again as %s", wire)
		}
	})
}

// FuzzErrorText checks that the text of a server's error is short, on one line, and does not contain the key.
func FuzzErrorText(f *testing.F) {
	for _, text := range []string{
		`{"error":{"message":"no","metadata":{"raw":"{\"error\":{\"message\":\"slot unavailable\"}}"}}}`, `[{"error":{"status":"INVALID"}}]`,
		`{"detail":[{"msg":"field required"}]}`, "<html><head><title>502 Bad Gateway</title></head></html>", "\"sk-1\"", `{"error":"{\"error\":\"sk\\u002d1\"}"}`,
		strings.Repeat(`{"error":`, 100), strings.Repeat("\U000e0001", 300),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := errorText([]byte(text), "sk-1")
		if plain, err := strconv.Unquote(got); err != nil || len(got) > 802 || strings.Contains(plain, "sk-1") {
			t.Errorf("%s", got)
		}
	})
}
