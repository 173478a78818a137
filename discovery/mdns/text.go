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
	maxParts  = 8    // strings that a record is split over
	maxText   = 1300 // bytes of a TXT record: RFC 6763, section 6.2
)

var strict = base64.RawURLEncoding.Strict()

// describe is what DNS-SD says of a record: the port of its first URL, and the
// strings of the TXT record. A public offer is among it where all of it fits:
//
//	id=12D3KooW…  path=/mcp  name=greenhouse  r0=…  r1=…
func serviceOf(record *discovery.Signed) (port int, text []string, err error) {
	i := slices.IndexFunc(record.Addresses, func(a string) bool { return strings.HasPrefix(a, "http") })
	if i < 0 {
		return 0, nil, errors.New("a record without a URL cannot be shown on a link, where http is spoken: give it one")
	}
	u, err := url.Parse(record.Addresses[i])
	if err != nil {
		return 0, nil, err
	}
	switch {
	case u.Port() != "":
		if port, err = strconv.Atoi(u.Port()); err != nil || port > 65535 {
			return 0, nil, fmt.Errorf("%s has no port that there is", u)
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

// parts are the strings that have a record.
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

// size is how many bytes strings take in a TXT record: each has one for its length.
func textSize(text []string) (n int) {
	for _, s := range text {
		n += 1 + len(s)
	}
	return n
}

// recordOf is the record in a TXT record, and of which site the latter says it is. It
// does not look into it.
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
		return site, nil, errors.New("there is no record in it")
	}
	return site, record, nil
}
