package chat

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxError      = 16 << 10 // of the text of an error
	maxErrorDepth = 5
)

// errorText returns what a server says about an error, quoted and short.
func errorText(body []byte, key string) string {
	body = bytes.TrimSpace(body)
	return quote(cmp.Or(said(body, 0), pageText(body), string(body)), key)
}

// sayings are the members in which servers say why they fail: OpenAI and most others error.message,
// FastAPI detail, MiniMax base_resp.status_msg, Baidu error_msg.
var sayings = []string{"error", "errors", "message", "detail", "msg", "error_message", "error_msg", "status_msg", "error_description", "base_resp", "title"}

// said returns the words in the JSON of an error: a text, an object with one, or an array of them, as
// Gemini has it. It is "" where there are none.
func said(v jsontext.Value, depth int) string {
	if depth > maxErrorDepth {
		return ""
	}
	switch v.Kind() {
	case '"':
		text := strings.TrimSpace(Text(v))
		return cmp.Or(said(jsontext.Value(text), depth+1), text) // of another server, passed on
	case '[':
		for _, e := range Elements(v) {
			if text := said(e, depth+1); text != "" {
				return text
			}
		}
	case '{':
		f := Fields(v)
		for _, name := range sayings {
			if text := said(f[name], depth+1); text != "" {
				if raw := said(Fields(f["metadata"])["raw"], depth+1); raw != "" { // the provider's, at OpenRouter
					text += ": " + raw
				}
				return text
			}
		}
	}
	return ""
}

// pageText returns the title of a page, or its text; "" for what is none.
func pageText(body []byte) string {
	text := string(body)
	if !strings.HasPrefix(text, "<") {
		return ""
	}
	if at := strings.Index(strings.ToLower(text), "<title"); at >= 0 && at < len(text) {
		_, title, _ := strings.Cut(text[at:], ">")
		title, _, _ = strings.Cut(title, "<")
		if title = strings.TrimSpace(title); title != "" {
			return "a web page: " + title
		}
	}
	var plain strings.Builder
	for part := range strings.SplitSeq(text, "<") {
		_, after, _ := strings.Cut(part, ">")
		plain.WriteString(after + " ")
	}
	return "a web page: " + strings.Join(strings.Fields(plain.String()), " ")
}

// quote returns a server's text quoted and short, also where its letters have long escapes, and
// without the key, which some servers repeat.
func quote(text, key string) string {
	const most = 200
	if key != "" {
		text = strings.ReplaceAll(text, key, "(the key)")
	}
	text = strings.TrimSpace(text)
	for n := most; ; n /= 2 {
		if q := fmt.Sprintf("%.*q", n, text); len(q) <= 4*most+2 {
			return q
		}
	}
}

// mentions reports whether a text has a name as a word of its own.
func mentions(text, name string) bool {
	isPart := func(b byte) bool { return b == '_' || '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z' }
	for at := 0; ; at++ {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		if at += i; (at == 0 || !isPart(text[at-1])) && (at+len(name) == len(text) || !isPart(text[at+len(name)])) {
			return true
		}
	}
}
