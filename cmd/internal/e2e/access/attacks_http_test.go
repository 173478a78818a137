//go:build e2e

package access

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
)

// Two calls: one within mallory's permission, and one beyond it.
var (
	allowed   = harness.ToolCall("read_points", `{"points":["okapi/temperature"]}`)
	forbidden = harness.ToolCall("switch_output", `{"output":"springbok/relay","on":true}`)
)

// malformed are messages that two readers could take for two things.
func (f *field) malformed(t *testing.T) (all []attack) {
	twice := func(body, key, also string) string { return strings.Replace(body, key, also+","+key, 1) }
	last := func(body, also string) string { return body[:strings.LastIndex(body, "}")] + "," + also + "}" }
	for what, body := range map[string]string{
		"a tool twice":               twice(allowed, `"name":"read_points"`, `"name":"switch_output"`),
		"a tool twice, hers first":   twice(allowed, `"arguments":`, `"name":"switch_output"`),
		"arguments twice: springbok": twice(forbidden, `"arguments":`, `"arguments":{"output":"yak/level","value":1}`),
		"a point twice: humidity":    strings.Replace(allowed, `"points":[`, `"points":["okapi/humidity"],"points":[`, 1),
		"an output twice: springbok": strings.Replace(forbidden, `"output":`, `"output":"gate/relay","output":`, 1),
		"a method twice":             twice(allowed, `"method":"tools/call"`, `"method":"owner/reset"`),
		"a method twice, hers first": last(allowed, `"method":"owner/reset"`),
		"params twice":               last(allowed, `"params":{"name":"switch_output","arguments":{"output":"springbok/relay","on":true}}`),
		"_meta twice":                twice(allowed, `"_meta":`, `"_meta":{}`),
		"an id twice":                twice(allowed, `"id":1`, `"id":2`),
		"an escaped key twice":       twice(allowed, `"name":"read_points"`, `"n\u0061me":"switch_output"`),
		"a key in another case":      strings.Replace(forbidden, `"name"`, `"Name"`, 1),
		"an escaped name: springbok": strings.Replace(forbidden, "springbok", `\u0073pringbok`, 1),
		"an escaped tool":            strings.Replace(forbidden, "switch_output", `switch\u005foutput`, 1),
		"a lone surrogate":           strings.Replace(forbidden, "springbok", `springbok\ud800`, 1),
		"invalid UTF-8":              strings.Replace(forbidden, "springbok", "springbok\xff", 1),
		"overlong UTF-8":             strings.Replace(forbidden, "springbok/", "springbok\xc0\xaf", 1),
		"a byte order mark":          "\ufeff" + forbidden,
		"UTF-16":                     "\xff\xfe" + strings.Join(strings.Split(forbidden, ""), "\x00"),
		"two messages":               allowed + forbidden,
		"two lines":                  allowed + "\n" + forbidden,
		"a message and a comma":      allowed + ",",
		"a comment":                  strings.Replace(forbidden, `"id"`, `/* */"id"`, 1),
		"a NUL at the end":           forbidden + "\x00",
		"a batch":                    "[" + allowed + "," + forbidden + "]",
		"a batch of one":             "[" + forbidden + "]",
		"a batch in a batch":         "[[" + forbidden + "]]",
		"an empty batch":             "[]",
		"no version":                 strings.Replace(forbidden, `"jsonrpc":"2.0",`, "", 1),
		"another version":            strings.Replace(forbidden, `"2.0"`, `"1.0"`, 1),
		"an id that is an object":    strings.Replace(forbidden, `"id":1`, `"id":{"a":1}`, 1),
		"a null id":                  strings.Replace(forbidden, `"id":1`, `"id":null`, 1),
		"a notification":             strings.Replace(forbidden, `"id":1,`, "", 1),
		"an answer":                  `{"jsonrpc":"2.0","id":1,"result":{"approved":true}}`,
		"__proto__":                  strings.Replace(forbidden, `"arguments":{`, `"arguments":{"__proto__":{"output":"springbok/relay"},`, 1),
		"arguments as a text":        harness.ToolCall("switch_output", quoted(`{"output":"springbok/relay","on":true}`)),
	} {
		// A notification and an answer are taken, and nothing comes of them.
		a := attack{name: what, body: body, headers: []string{"Mcp-Name", "switch_output"}, answered: what == "a notification" || what == "an answer" || what == "a null id"}
		older := f.ofSession(a)
		// The older reader accepts members that are twice in the envelope, or text behind it, and may
		// make the remaining call if she has the permission.
		older.answered = a.answered || slices.Contains([]string{
			"a tool twice", "a method twice", "_meta twice", "an id twice", "an escaped key twice", "two messages", "two lines", "a message and a comma",
		}, what)
		all = append(all, a, older)
	}
	for what, body := range map[string]string{ // in CBOR (RFC 8949)
		"indefinite":        "\xbf" + inCBOR(t, forbidden)[1:] + "\xff",
		"a tag before":      "\xd9\xd9\xf7" + inCBOR(t, forbidden),
		"two items":         inCBOR(t, allowed) + inCBOR(t, forbidden),
		"cut off":           inCBOR(t, forbidden)[:60],
		"JSON":              forbidden,
		"an array":          "\x81" + inCBOR(t, forbidden),
		"a text in a bytes": strings.Replace(inCBOR(t, forbidden), "\x6fspringbok/relay", "\x4fspringbok/relay", 1),
	} {
		all = append(all, attack{name: "CBOR, " + what, body: body, headers: []string{"Mcp-Name", "switch_output", "Content-Type", "application/cbor", "Accept", "application/cbor"}})
	}
	return all
}

// mismatched say one thing in the headers and another in the body.
func (f *field) mismatched() (all []attack) {
	based := func(text string) string { return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?=" }
	for what, headers := range map[string][]string{
		"her tool's name":            {},
		"no name":                    {"Mcp-Name", ""},
		"an encoded name":            {"Mcp-Name", based("read_points")},
		"a broken encoding":          {"Mcp-Name", "=?base64?!!?="},
		"an encoding in an encoding": {"Mcp-Name", based(based("switch_output"))},
		"two names":                  {"+Mcp-Name", "switch_output"},
		"two names in one":           {"Mcp-Name", "read_points, switch_output"},
		"another case":               {"Mcp-Name", "Switch_Output"},
		"another method":             {"Mcp-Method", "tools/list", "Mcp-Name", "switch_output"},
		"two methods":                {"+Mcp-Method", "tools/list", "Mcp-Name", "switch_output"},
		"the owner's method":         {"Mcp-Method", "owner/reset", "Mcp-Name", "switch_output"},
		"no method":                  {"Mcp-Method", "", "Mcp-Name", "switch_output"},
		"no version":                 {"Mcp-Protocol-Version", "", "Mcp-Name", "switch_output"},
		"an older version":           {"Mcp-Protocol-Version", "2025-06-18", "Mcp-Name", "switch_output"},
		"a later version":            {"Mcp-Protocol-Version", "2099-01-01", "Mcp-Name", "switch_output"},
		"two versions":               {"+Mcp-Protocol-Version", "2025-06-18", "Mcp-Name", "switch_output"},
		"a version that is a word":   {"Mcp-Protocol-Version", "zzzz", "Mcp-Name", "switch_output"},
		"a session besides":          {"Mcp-Session-Id", f.session, "Mcp-Name", "switch_output"},
		"an override of the verb":    {"X-Http-Method-Override", "DELETE", "Mcp-Name", "switch_output"},
		"all the same":               {"Mcp-Name", "switch_output"},
	} {
		all = append(all, attack{name: "a forbidden call with " + what, body: forbidden, headers: headers})
		if what != "her tool's name" && what != "an encoded name" && what != "an override of the verb" && what != "a session besides" {
			all = append(all, attack{name: "an allowed call with " + what, body: allowed, headers: headers})
		}
	}
	for what, headers := range map[string][]string{
		"no type": {"Content-Type", ""}, "a form": {"Content-Type", "application/x-www-form-urlencoded"}, "a text": {"Content-Type", "text/plain"},
		"CBOR": {"Content-Type", "application/cbor"}, "two types": {"+Content-Type", "application/cbor"}, "a type in a type": {"Content-Type", "application/json, application/cbor"},
		"UTF-7": {"Content-Type", "application/json; charset=utf-7"}, "gzip": {"Content-Encoding", "gzip"}, "parts": {"Content-Type", "multipart/form-data; boundary=x"},
	} {
		all = append(all, attack{name: "a forbidden call as " + what, body: forbidden, headers: append([]string{"Mcp-Name", "switch_output"}, headers...)})
	}
	for _, verb := range []string{"GET", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "HEAD", "PROPFIND", "post"} {
		for _, override := range []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"} {
			all = append(all, attack{name: verb + " for POST", verb: verb, body: forbidden, headers: []string{override, "POST", "Mcp-Name", "switch_output"}})
		}
	}
	for _, header := range []string{"X-Original-Url", "X-Rewrite-Url", "X-Forwarded-Path"} {
		all = append(all, attack{name: "another path by " + header, verb: "GET", path: "/healthz", headers: []string{header, "/metrics", "Authorization", ""}, answered: true})
	}
	return all
}

// foreign returns requests from a page, or by a name, that is not the site's, for calls that she
// may make.
func (f *field) foreign() (all []attack) {
	host := strings.TrimPrefix(f.URL, "http://")
	port := host[strings.LastIndex(host, ":"):]
	for _, origin := range []string{
		"null", "http://evil.example", "https://evil.example", "http://127.0.0.1", "http://localhost", "http://evil.example" + port, "file://", "chrome-extension://abc",
		f.URL + ".evil.example", "http://evil.example#" + f.URL, f.URL + "/", f.URL + " " + f.URL, "http://evil@" + host, "HTTP://" + host, "http://0.0.0.0" + port, "ws://" + host, "*",
	} {
		all = append(all, attack{name: "a page of " + origin, body: allowed, headers: []string{"Origin", origin}})
		all = append(all, attack{name: "a preflight from " + origin, verb: "OPTIONS", headers: []string{"Origin", origin, "Access-Control-Request-Method", "POST", "Authorization", ""}})
	}
	all = append(all, attack{name: "two pages", body: allowed, headers: []string{"Origin", f.URL, "+Origin", "http://evil.example"}})
	for _, name := range []string{
		"evil.example", "evil.example" + port, "127.0.0.1", "localhost", "0.0.0.0" + port, "[::]" + port, "127.0.0.1:80", "127.1" + port, "2130706433" + port, "0x7f000001" + port,
		"localhost." + port, "LOCALHOST" + port, host + ".evil.example", "evil.example@" + host, "quagga.local" + port, "rebind.127.0.0.1.nip.io" + port, "127.0.0.1" + port + "0",
	} {
		all = append(all, attack{name: "by the name " + name, body: allowed, headers: []string{"Host", name}})
		all = append(all, attack{name: "a forwarded name, " + name, body: allowed, headers: []string{"Host", name, "X-Forwarded-Host", host}})
	}
	return all
}

// paths are those of what there is, written in other ways, without a token and with hers.
func (f *field) paths() (all []attack) {
	for _, path := range []string{
		"//mcp", "/mcp/", "/MCP", "/Mcp", "/%6dcp", "/mcp%2f", "/mcp%00", "/mcp%20", "/mcp.", "/./mcp", "/x/../mcp", "/mcp/.", "/mcp/..", "/%2e/mcp", "/%2e%2e/mcp", "/mcp;x=1", "/mcp/tools/list", `/\mcp`,
		"//metrics", "/metrics/", "/METRICS", "/%6detrics", "/metrics%00", "/./metrics", "/healthz/../metrics", "/healthz/%2e%2e/metrics", "/healthz;/metrics", "/metrics?", "/metrics#x", "/metrics.json",
		"/debug/pprof/", "/debug/vars", "/owner/requests", "/owner", "/admin", "/api", "/api/tools", "/tools", "/tools/list", "/sse", "/message", "/rpc", "/token", "/site.sock", "/agentsite.yaml", "/journal",
		"/.well-known/", "/.well-known/mcp", "/.well-known/agent.json", "/.well-known/oauth-authorization-server", "/../../etc/passwd", "/%2e%2e%2f%2e%2e%2fetc/passwd",
	} {
		for _, token := range []string{"", "Bearer " + f.mallory} {
			all = append(all, attack{name: fmt.Sprintf("GET %s", path), verb: "GET", path: path, headers: []string{"Authorization", token}})
			all = append(all, attack{name: fmt.Sprintf("POST %s", path), path: path, body: forbidden, headers: []string{"Authorization", token, "Mcp-Name", "switch_output"}})
		}
	}
	return all
}

// oversized are too long, too deep, or too many.
func (f *field) oversized() (all []attack) {
	pad := func(body string, n int) string {
		return strings.Replace(body, `"id":1`, `"pad":"`+strings.Repeat("x", n)+`","id":1`, 1)
	}
	for what, body := range map[string]string{
		"just too long":       pad(forbidden, 256<<10),
		"a megabyte":          pad(forbidden, 1<<20),
		"sixteen megabytes":   pad(forbidden, 16<<20),
		"too deep":            strings.Replace(forbidden, `"id":1`, `"deep":`+strings.Repeat("[", 40)+strings.Repeat("]", 40)+`,"id":1`, 1),
		"nothing but depth":   strings.Repeat("[", 100_000),
		"too many values":     strings.Replace(forbidden, `"id":1`, `"many":[`+strings.Repeat("1,", 20_000)+`1],"id":1`, 1),
		"too many arguments":  harness.ToolCall("read_points", `{"points":[`+strings.Repeat(`"okapi/humidity",`, 10_000)+`"okapi/humidity"]}`),
		"a long batch":        "[" + strings.Repeat(strings.Replace(forbidden, `,"_meta"`, `,"m"`, 1)+",", 100) + forbidden + "]",
		"a long name":         harness.ToolCall(strings.Repeat("switch_output", 1000), `{"output":"springbok/relay","on":true}`),
		"a long number":       strings.Replace(forbidden, `"id":1`, `"id":1`+strings.Repeat("0", 10_000), 1),
		"many spaces, padded": strings.Repeat(" ", 255<<10) + forbidden,
	} {
		a := attack{name: what, body: body, headers: []string{"Mcp-Name", "switch_output"}}
		all = append(all, a, f.ofSession(a))
	}
	for what, headers := range map[string][]string{
		"a long header": {"X-Long", strings.Repeat("x", 64<<10)}, "a long token": {"Authorization", "Bearer " + strings.Repeat("0", 15<<10)},
		"a long name": {"Mcp-Name", strings.Repeat("x", 15<<10)}, "a long session": {"Mcp-Session-Id", strings.Repeat("x", 15<<10), "Mcp-Protocol-Version", "2025-06-18", "Mcp-Method", "", "Mcp-Name", ""},
	} {
		all = append(all, attack{name: what, body: forbidden, headers: append([]string{"Mcp-Name", "switch_output"}, headers...)})
	}
	many := []string{"Mcp-Name", "switch_output"}
	for i := range 2000 {
		many = append(many, fmt.Sprint("X-", i), "x")
	}
	return append(all, attack{name: "many headers", body: forbidden, headers: many}, attack{name: "a long path", verb: "GET", path: "/mcp?" + strings.Repeat("x", 64<<10)})
}

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
