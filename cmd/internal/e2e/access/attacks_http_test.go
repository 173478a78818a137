//go:build e2e

package access

import (
	"fmt"
	"strings"

	"agentsite/cmd/internal/e2e/harness"
)

// forbidden is a call beyond mallory's permission.
var forbidden = harness.ToolCall("switch_output", `{"output":"springbok/relay","on":true}`)

// smuggled are requests in which another could hide. Those that stand after the first have
// no token.
func (f *field) smuggled() (all []attack) {
	const head = "POST /mcp HTTP/1.1\nHost: $HOST\nAuthorization: Bearer $TOKEN\nContent-Type: application/json\nMcp-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\nMcp-Name: switch_output\n"
	const hidden = "GET /metrics HTTP/1.1\nHost: $HOST\nConnection: close\n\n"
	n := len(forbidden)
	chunked := fmt.Sprintf("%x\n%s\n0\n\n", n, forbidden)
	for what, raw := range map[string]string{
		"two lengths":                head + fmt.Sprintf("Content-Length: %d\nContent-Length: 5\n\n%s", n, forbidden),
		"two lengths in one":         head + fmt.Sprintf("Content-Length: %d, 5\n\n%s", n, forbidden),
		"a length below":             head + fmt.Sprintf("Content-Length: -%d\n\n%s", n, forbidden),
		"a length with a plus":       head + fmt.Sprintf("Content-Length: +%d\n\n%s", n, forbidden),
		"a length in hex":            head + fmt.Sprintf("Content-Length: 0x%x\n\n%s", n, forbidden),
		"a length too short":         head + fmt.Sprintf("Content-Length: %d\n\n%s", n-1, forbidden) + hidden,
		"a length of nothing":        head + "Content-Length: 0\n\n" + forbidden,
		"a length and chunks":        head + fmt.Sprintf("Content-Length: %d\nTransfer-Encoding: chunked\n\n", n) + chunked + hidden,
		"chunks and a length of 4":   head + "Transfer-Encoding: chunked\nContent-Length: 4\n\n" + chunked + hidden,
		"chunks twice":               head + "Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n\n" + chunked,
		"chunks of chunks":           head + "Transfer-Encoding: chunked, chunked\n\n" + chunked,
		"chunks by another name":     head + "Transfer-Encoding: xchunked\n\n" + chunked,
		"identity":                   head + fmt.Sprintf("Transfer-Encoding: identity\nContent-Length: %d\n\n%s", n, forbidden),
		"chunks, with a space":       head + "Transfer-Encoding : chunked\n\n" + chunked,
		"chunks, folded":             head + "Transfer-Encoding:\n chunked\n\n" + chunked,
		"chunks with an end too far": head + "Transfer-Encoding: chunked\n\n" + fmt.Sprintf("fffffffffffffff0\n%s\n0\n\n", forbidden),
		"chunks and a trailer":       head + "Transfer-Encoding: chunked\nTrailer: Authorization\n\n" + fmt.Sprintf("%x\n%s\n0\nAuthorization: Bearer 0\n\n", n, forbidden),
		"a second without a token":   head + fmt.Sprintf("Content-Length: %d\n\n%s", n, forbidden) + hidden,
		"a second after nothing":     "GET /healthz HTTP/1.1\nHost: $HOST\n\n" + hidden,
		"a body after a GET":         fmt.Sprintf("GET /healthz HTTP/1.1\nHost: $HOST\nContent-Length: %d\n\n", len(hidden)) + hidden + hidden,
		"no name":                    strings.Replace(head, "Host: $HOST\n", "", 1) + fmt.Sprintf("Content-Length: %d\n\n%s", n, forbidden),
		"two names":                  strings.Replace(head, "Host: $HOST\n", "Host: $HOST\nHost: evil.example\n", 1) + fmt.Sprintf("Content-Length: %d\n\n%s", n, forbidden),
		"another name in the path":   strings.Replace(head, "POST /mcp", "POST http://evil.example/mcp", 1) + fmt.Sprintf("Content-Length: %d\n\n%s", n, forbidden),
		"its name in the path":       strings.Replace(strings.Replace(head, "POST /mcp", "POST http://$HOST/mcp", 1), "Host: $HOST", "Host: evil.example", 1) + fmt.Sprintf("Content-Length: %d\n\n%s", n, forbidden),
		"another scheme":             strings.Replace(head, "POST /mcp", "POST file:///mcp", 1) + fmt.Sprintf("Content-Length: %d\n\n%s", n, forbidden),
		"a tunnel":                   "CONNECT $HOST HTTP/1.1\nHost: $HOST\n\n" + hidden,
		"an upgrade":                 "GET /mcp HTTP/1.1\nHost: $HOST\nUpgrade: h2c\nConnection: Upgrade, HTTP2-Settings\nHTTP2-Settings: AAMAAABkAAQAAP__\n\n",
		"a web socket":               "GET /mcp HTTP/1.1\nHost: $HOST\nUpgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\nSec-WebSocket-Version: 13\n\n",
		"HTTP/2 without asking":      "PRI * HTTP/2.0\n\nSM\n\n",
		"HTTP/0.9":                   "GET /metrics\n\n",
		"HTTP/1.0":                   "GET /metrics HTTP/1.0\n\n",
		"HTTP/9":                     "GET /metrics HTTP/9.9\nHost: $HOST\n\n",
		"a header in the path":       "GET /healthz%0d%0aAuthorization:%20Bearer%20$TOKEN HTTP/1.1\nHost: $HOST\n\n",
		"a NUL in a header":          strings.Replace(head, "switch_output", "read_points\x00switch_output", 1) + fmt.Sprintf("Content-Length: %d\n\n%s", n, forbidden),
		"a space before a header":    strings.Replace(head, "Authorization", " Authorization", 1) + fmt.Sprintf("Content-Length: %d\n\n%s", n, forbidden),
		"a lone carriage return":     strings.Replace(head, "Mcp-Name: switch_output\n", "Mcp-Name: read_points\rMcp-Name: switch_output\n", 1) + fmt.Sprintf("Content-Length: %d\n\n%s", n, forbidden),
		"a promise to wait":          head + fmt.Sprintf("Expect: 100-continue\nContent-Length: %d\n\n%s", n, forbidden),
		"Latin digits in a length":   head + "Content-Length: \u0665\n\n" + forbidden,
	} {
		all = append(all, attack{name: what, raw: raw, answered: strings.Contains(raw, "GET /healthz HTTP")})
	}
	return all
}
