package a2a_test

import (
	"strings"
	"testing"

	"agentsite/transport/adapter/adaptertest"
)

// TestStrict: what two readers may take for two different messages is refused, and a request's id is
// repeated digit by digit.
func TestStrict(t *testing.T) {
	s := newSite(t)
	const good = `{"jsonrpc":"2.0","id":12345678901234567891,"method":"SendMessage","params":{"message":` +
		`{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"operation":"status"}}]}}}`
	for name, c := range map[string]struct{ old, new, want string }{
		"as it is":          {"", "", `"id":12345678901234567891,"result":{"message":`},
		"a part twice":      {`"data":`, `"data":{"operation":"points"},"data":`, `"code":-32700`},
		"a field twice":     {`"operation":`, `"operation":"points","operation":`, `"code":-32700`},
		"in another case":   {`"parts"`, `"Parts"`, `"code":-32602`},
		"two values":        {good, good + `{}`, `"code":-32700`},
		"an id of null":     {`12345678901234567891`, `null`, `"code":-32600`},
		"not UTF-8":         {`status`, "status\xff", `"code":-32700`},
		"nested too deep":   {`"status"`, strings.Repeat("[", 64) + strings.Repeat("]", 64), `"code":-32600`},
		"an unknown method": {`"SendMessage"`, `"sendMessage"`, `"code":-32601`},
	} {
		body := strings.Replace(good, c.old, c.new, 1)
		_, text := s.Ask(t, "POST", "/a2a", adaptertest.SiteToken, body, "A2A-Version", "1.0")
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: %.300s, want %s", name, text, c.want)
		}
	}
}
