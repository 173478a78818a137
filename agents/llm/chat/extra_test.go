package chat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// TestExtra: members that come in pieces are echoed as one; what is too much is left out, in little
// time.
func TestExtra(t *testing.T) {
	for name, tt := range map[string]struct {
		pieces []string // of a delta
		want   string
	}{
		"texts":     {[]string{`"a":"x"`, `"a":null`, `"a":"y"`}, `{"a":"xy"}`},
		"empty":     {[]string{`"a":""`, `"b":null`, `"c":[]`}, `{"a":""}`},
		"elements":  {[]string{`"a":[{"index":0,"type":"t","text":"x"}]`, `"a":[{"index":0,"type":"t","text":"y","signature":"s"},{"index":1,"type":"t","text":"z"}]`}, `{"a":[{"index":0,"signature":"s","text":"xy","type":"t"},{"index":1,"text":"z","type":"t"}]}`},
		"objects":   {[]string{`"a":{"b":{"c":1}}`, `"a":{"b":{"d":1e400}}`}, `{"a":{"b":{"c":1,"d":1e400}}}`},
		"deep":      {[]string{`"a":` + strings.Repeat(`{"a":`, 3000) + "1" + strings.Repeat("}", 3000)}, `{"a":` + strings.Repeat(`{"a":`, 3000) + "1" + strings.Repeat("}", 3000) + "}"},
		"long":      {[]string{`"a":"` + strings.Repeat("x", maxExtra) + `"`, `"b":"x"`}, `{}`},
		"many":      {[]string{manyNames(maxExtraNames + 1)}, `{}`},
		"not extra": {[]string{`"role":"assistant","function_call":{"name":"x"}`}, `{}`},
	} {
		body := `data: {"choices":[{"delta":{"content":"hi"}}]}` + "\n"
		for _, p := range tt.pieces {
			body += `data: {"choices":[{"delta":{` + p + "}}]}\n"
		}
		m := merger{body: strings.NewReader(body + "data: [DONE]\n"), alive: func() {}}
		a, err := m.read()
		text := a.Extra.wire(nil)
		if got := jsontext.Value("{" + strings.TrimPrefix(text, ",") + "}"); err != nil || !equal(got, jsontext.Value(tt.want)) {
			t.Errorf("%s: %.200s %v", name, got, err)
		}
	}
	elements := "data: {\"choices\":[{\"delta\":{\"a\":[" + strings.Repeat(`{"index":7},`, 1000) + "{}]}}]}\n"
	body := strings.Repeat("data: {\"choices\":[{\"delta\":{\"a\":\"x\",\"content\":\"\"}}]}\n", 60_000) + strings.Repeat(elements, 20) + "data: [DONE]\n"
	start := time.Now()
	m := merger{body: strings.NewReader(body), alive: func() {}}
	if _, err := m.read(); err == nil || time.Since(start) > 30*time.Second && !testing.Short() {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

func manyNames(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"a%d":"x"`, i))
	}
	return strings.Join(all, ",")
}

// TestLearn: by its words a server refuses a part of a request, or wants more of it.
func TestLearn(t *testing.T) {
	r := &Request{MaxAnswer: 1, Messages: []Message{{Role: Assistant, Extra: Extra{"reasoning_content": jsontext.Value(`"x"`)}}}}
	for says, want := range map[string]string{
		"Unknown parameter: stream_options":                        "stream_options",
		"Use 'max_completion_tokens' instead of 'max_tokens'":      "max_tokens",
		"max_completion_tokens is too large":                       "",
		"property 'messages.2.reasoning_content' is unsupported":   "reasoning_content",
		"The reasoning_content must be passed back to the API":     "",
		"Missing reasoning_content field in the assistant message": "",
		"System role not supported":                                "system",
		"'messages[0].role' does not support 'system'":             "system",
		"Conversation roles must alternate user/assistant/user":    "system",
		"Only user and assistant roles are supported!":             "system",
		"Cannot use tools with stream":                             "stream",
		"the downstream server is not there":                       "",
		"the system is overloaded":                                 "",
	} {
		e := new(Endpoint)
		if learned := e.learn(says, r); learned != (want != "") || strings.Join(e.without, " ") != want || e.learn(says, r) {
			t.Errorf("%s: %q", says, e.without)
		}
	}
}
