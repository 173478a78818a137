package homepage

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentsite/node/acts"

	"github.com/go-json-experiment/json"
)

// TestChange: who confirms a configuration sees the lines that change, and all else that is asked for. A text
// that replaces another than the site's, and a change that is too long to read, are not asked.
func TestChange(t *testing.T) {
	long := strings.Repeat("# a line\n", 20_000)
	was := "site: { name: shed }\ndevices:\n" + long
	f := &far{text: was}
	h := newHome(t, own("shed", f))
	configure := func(digest, text, more string) int {
		t.Helper()
		quoted, _ := json.Marshal(text)
		return h.call("shed", string(acts.ConfigureAct), fmt.Sprintf(`{"digest":%q,"text":%s%s}`, digest, quoted, more))
	}
	known, text := acts.Digest([]byte(was)), strings.Replace(was, "devices:", "devices:\n  lamp: {}", 1)
	if code := configure(known, text, `,"well":true,"Text":"another"`); code != 0 || len(h.acts) != 1 {
		t.Fatal(code, h.acts)
	}
	c := h.acts[0].Change
	goes := func(l string) bool { return l[0] == '-' }
	if c == nil || len(c.Lines) > 10 || !slices.Contains(c.Lines, "+  lamp: {}") || slices.ContainsFunc(c.Lines, goes) {
		t.Fatalf("%+v", c)
	}
	if c.Digest != acts.Digest([]byte(text)) || string(c.Rest) != `{"Text":"another","digest":"`+known+`","well":true}` {
		t.Errorf("%s, %s", c.Digest, c.Rest)
	}
	for what, wrong := range map[string]int{
		"another text's digest": configure(acts.Digest(nil), text, ""),
		"many lines":            configure(known, was+strings.Repeat("a: 1\n", 400), ""),
		"a long line":           configure(known, was+strings.Repeat("x", 40_000), ""),
		"two texts":             configure(known, was, `,"text":""`),
	} {
		if wrong == 0 || len(h.acts) != 1 {
			t.Errorf("%s: %d, %d questions", what, wrong, len(h.acts))
		}
	}
	if code := configure(known, was, ""); code != 0 || len(h.acts) != 2 || len(h.acts[1].Change.Lines) != 0 {
		t.Errorf("%d, %+v", code, h.acts)
	}
}
