package web

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/lan"
	"agentsite/device/ucum"
)

// Bounds of a search.
const (
	maxThings  = 16
	maxOffered = 16  // properties of one Thing
	maxNumber  = 1e9 // limits beyond are none
	lookTime   = 3 * time.Second
)

// seekThings finds Things that announce themselves by DNS-SD (https://www.w3.org/TR/wot-discovery/, section 6.2.1: the
// TXT record has the path of the description in td, and its kind in type), and reads their descriptions.
func seekThings(ctx context.Context) (all []driver.Found, err error) {
	instances, err := lan.Browse(ctx, "_wot._tcp")
	for _, at := range instances[:min(len(instances), maxThings)] {
		if kind := at.Text["type"]; kind != "" && kind != "Thing" || !strings.HasPrefix(at.Text["td"], "/") ||
			len(at.Text["td"]) > 200 {
			continue
		}
		scheme := "http"
		if at.Text["scheme"] == "https" {
			scheme = "https"
		}
		look, cancel := context.WithTimeout(ctx, lookTime)
		all = append(all, lookAt(look, scheme, at))
		cancel()
	}
	return all, err
}

// lookAt reads the description of a Thing. It sends no credentials.
func lookAt(ctx context.Context, scheme string, at lan.Instance) driver.Found {
	where := net.JoinHostPort(strings.TrimSuffix(at.Host, "."), strconv.Itoa(int(at.Port)))
	found := driver.Found{Where: where, What: "W3C Thing", Name: device.SuggestName(at.Name)}
	if found.Name == "" {
		found.Name = "thing"
	}
	e := endpoint{URL: scheme + "://" + where + at.Text["td"]}
	if e.Validate() != nil || strings.ContainsFunc(e.URL, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '"' ||
			r == '\\'
	}) {
		found.Where, found.Says = "the network", "its address is none of the home network"
		return found
	}
	c, err := e.open()
	if err == nil {
		defer c.Close()
		var text []byte
		if text, err = c.do(ctx, request{method: http.MethodGet, to: c.base}); err == nil {
			var d *description
			if d, err = parseDescription(text); err == nil {
				found.YAML, found.Says = d.offer(d.own(c, at.Addresses))
				return found
			}
		}
	}
	found.Says = "its description cannot be read: " + err.Error()
	return found
}

// own returns the URL of the description. Many Things write their own address as a number into it: then the URL has it,
// too, where it is one of the addresses that were announced.
func (d *description) own(c *client, addresses []netip.Addr) string {
	own := *c.base
	for _, name := range slices.Sorted(maps.Keys(d.Properties)) {
		for _, f := range d.Properties[name].Forms {
			to, err := d.resolve(c, f.Href)
			if err == nil && c.sameHost(to) {
				return c.base.String()
			}
			if err != nil || own.Host != c.base.Host || to.Scheme != c.base.Scheme || to.Port() != c.base.Port() {
				continue
			}
			if a, err := netip.ParseAddr(to.Hostname()); err == nil && slices.Contains(addresses, a) {
				own.Host = to.Host
			}
		}
	}
	return own.String()
}

// offer returns the YAML of the properties that can be read, if the description says their limits. Only names and units
// in the forms of this site are taken from it.
func (d *description) offer(url string) (yaml, says string) {
	var inputs []string
	var names driver.Names
	writable, left := 0, 0
	for _, name := range slices.Sorted(maps.Keys(d.Properties)) {
		p := d.Properties[name]
		keys := ""
		number := p.Type == "number" || p.Type == "integer"
		switch unit := commonUnit(p.Unit); {
		case p.WriteOnly || device.SuggestName(name) == "" || driver.QuoteWord(name) != strconv.Quote(name) ||
			len(inputs) == maxOffered:
		case p.Type == "boolean":
			keys = "state: on"
		case number && p.Min != nil && p.Max != nil && *p.Min < *p.Max && *p.Min >= -maxNumber && *p.Max <= maxNumber:
			if code, ok := ucum.Known(unit); ok {
				keys = fmt.Sprintf("unit: %q, range: %s", code, device.Range{Min: *p.Min, Max: *p.Max})
			}
		}
		if keys == "" {
			left++
			continue
		}
		point := names.New(name, "property")
		if !p.ReadOnly {
			writable++
		}
		if point != name {
			keys = fmt.Sprintf("property: %q, %s", name, keys)
		}
		inputs = append(inputs, point+": { "+keys+" }")
	}
	if left > 0 {
		says = fmt.Sprintf("%d of its properties have no limits, or no unit that is known here: add them yourself. ",
			left)
	}
	if writable > 0 {
		says += "Some can be written: move them from inputs to outputs, with the safe value"
	}
	if len(inputs) == 0 {
		return "", says
	}
	return fmt.Sprintf("{ driver: thing, url: %q, inputs: { %s } }", url, strings.Join(inputs, ", ")),
		strings.TrimSpace(says)
}
