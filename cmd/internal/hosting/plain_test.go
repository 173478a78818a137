package hosting

import (
	"testing"

	"agentsite/node/config"
)

// TestCheckPlain: only the children without isolation that were there before are accepted.
func TestCheckPlain(t *testing.T) {
	parse := func(agents string) *config.Site {
		t.Helper()
		cfg, err := config.Parse("test", []byte("site: { name: x }\nagents:\n"+agents), nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	const plain = "  a: { kind: mcp, command: [/bin/cat], tools: [x], isolation: none }\n"
	const other = "  a: { kind: mcp, command: [/bin/sh], tools: [x], isolation: none }\n"
	const isolated = "  b: { kind: mcp, command: [/bin/sh], tools: [x] }\n"
	const rule = "  c: { kind: rule, when: day, hold: { a/b: on } }\n"
	for _, tt := range []struct {
		was, is string
		ok      bool
	}{
		{rule, rule + plain, false}, {plain, other, false}, {isolated, plain, false},
		{plain, isolated + plain + rule, true}, {plain, rule, true}, {rule, isolated, true},
	} {
		if err := CheckPlain(parse(tt.is), parse(tt.was)); (err == nil) != tt.ok {
			t.Errorf("%s after %s: %v", tt.is, tt.was, err)
		}
	}
}
