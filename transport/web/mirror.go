package web

import (
	"encoding/base64"
	"net/http"
	"strings"
)

const (
	base64Open  = "=?base64?"
	base64Close = "?="
)

// mirror gives a dispatcher the headers of a request. Mcp-Name, which may be encoded, is decoded,
// and counts as missing if it is malformed.
type mirror http.Header

const nameHeader = "Mcp-Name"

func (m mirror) Values(name string) []string {
	values := http.Header(m).Values(name)
	if len(values) != 1 || name != nameHeader {
		return values
	}
	if v, ok := decodeHeader(values[0]); ok {
		if v == values[0] {
			return values
		}
		return []string{v}
	}
	return nil
}

// decodeHeader decodes the form of a header for values that are not plain ASCII (streamable-http,
// "Value Encoding").
func decodeHeader(v string) (string, bool) {
	v = strings.Trim(v, " \t")
	if inner, ok := strings.CutPrefix(v, base64Open); ok {
		if inner, ok = strings.CutSuffix(inner, base64Close); ok {
			b, err := base64.StdEncoding.DecodeString(inner)
			return string(b), err == nil
		}
	}
	return v, plain(v)
}

func encodeHeader(v string) string {
	if plain(v) && v == strings.Trim(v, " \t") && !strings.HasPrefix(v, base64Open) {
		return v
	}
	return base64Open + base64.StdEncoding.EncodeToString([]byte(v)) + base64Close
}

func plain(v string) bool {
	for i := range len(v) {
		if v[i] < 0x20 || v[i] > 0x7e {
			return false
		}
	}
	return true
}
