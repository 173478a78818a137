package mdns

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"agentsite/discovery"
	"agentsite/node/identity"
)

const (
	maxString = 255  // bytes of one string of a TXT record
	maxParts  = 8    // strings of one record
	maxText   = 1300 // bytes of a TXT record: RFC 6763, section 6.2
)

var strict = base64.RawURLEncoding.Strict()

// serviceOf returns the port of a record's first URL, and its TXT strings in DNS-SD, with a public
// offer if all of it fits:
//
//	id=12D3KooW…  path=/mcp  name=greenhouse  r0=…  r1=…
func serviceOf(record *discovery.Signed) (port int, text []string, err error) {
	i := slices.IndexFunc(record.Addresses, func(a string) bool { return strings.HasPrefix(a, "http") })
	if i < 0 {
		return 0, nil, errors.New("a record for multicast DNS needs a URL")
	}
	u, err := url.Parse(record.Addresses[i])
	if err != nil {
		return 0, nil, err
	}
	switch {
	case u.Port() != "":
		if port, err = strconv.Atoi(u.Port()); err != nil || port > 65535 {
			return 0, nil, fmt.Errorf("%s has an invalid port", u)
		}
	case u.Scheme == "https":
		port = 443
	default:
		port = 80
	}
	who := []string{"id=" + record.Site.PeerID(), "path=" + u.Path, "name=" + record.Name}
	if text = append(who, splitRecord(record.Bytes())...); textSize(text) > maxText {
		text = append(who, splitRecord(record.Short())...)
	}
	return port, text, nil
}

// splitRecord encodes a record as strings of a TXT record.
func splitRecord(record []byte) (text []string) {
	rest := strict.EncodeToString(record)
	for i := 0; rest != ""; i++ {
		key := fmt.Sprintf("r%d=", i)
		n := min(len(rest), maxString-len(key))
		text = append(text, key+rest[:n])
		rest = rest[n:]
	}
	return text
}

// textSize returns the bytes of strings in a TXT record, with their length bytes.
func textSize(text []string) (n int) {
	for _, s := range text {
		n += 1 + len(s)
	}
	return n
}

// parseText returns the record in a TXT record and the site that the latter names, both
// unverified.
func parseText(text []string) (site identity.ID, record []byte, err error) {
	values := make(map[string]string)
	for _, s := range text {
		key, value, _ := strings.Cut(s, "=")
		if _, twice := values[key]; !twice { // RFC 6763, section 6.4: the first counts
			values[key] = value
		}
	}
	if site, err = identity.Parse(values["id"]); err != nil {
		return site, nil, err
	}
	var all strings.Builder
	for i := range maxParts {
		all.WriteString(values[fmt.Sprintf("r%d", i)])
	}
	if record, err = strict.DecodeString(all.String()); err != nil {
		return site, nil, err
	}
	if len(record) == 0 {
		return site, nil, errors.New("the TXT record has no site record")
	}
	return site, record, nil
}
