package remote

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"agentsite/agents"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxPoints bounds what one site may name for one verb.
const maxPoints = 256

// offer is what a site offers: the points, as it calls them, by the verbs that we know;
// none for a verb about the whole site.
type offer map[string][]string

var addressForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_-]{1,24}/[a-z0-9_-]{1,24}$`) })

// offerOf reads what we know of out of a site's tools. Of a name that comes twice the
// first counts.
func offerOf(tools []agents.Tool) offer {
	o := make(offer)
	for _, t := range tools {
		v, known := verbNamed(t.Name)
		if _, twice := o[t.Name]; !known || twice {
			continue
		}
		points := pointsOf(t.Input, v)
		if v.arg == "" || len(points) > 0 {
			o[t.Name] = points
		}
	}
	return o
}

// pointsOf are the addresses that a tool's schema lists for its argument.
func pointsOf(schema []byte, v verb) []string {
	if v.arg == "" {
		return nil
	}
	var in struct {
		Properties map[string]jsontext.Value `json:"properties"`
	}
	var of struct {
		Enum  []string `json:"enum"`
		Items struct {
			Enum []string `json:"enum"`
		} `json:"items"`
	}
	if json.Unmarshal(schema, &in) != nil || json.Unmarshal(in.Properties[v.arg], &of) != nil {
		return nil
	}
	var points []string
	for _, p := range append(of.Enum, of.Items.Enum...) {
		if len(points) < maxPoints && addressForm().MatchString(p) && !slices.Contains(points, p) {
			points = append(points, p)
		}
	}
	return points
}

// scheme is how points are addressed as resources, there and here.
const scheme = "agentsite:///"

// split takes the name of a site off an address here.
func split(address string) (site, there string, ok bool) {
	site, there, ok = strings.Cut(address, "/")
	return site, there, ok && addressForm().MatchString(there)
}

// splitURI takes the name of a site off the URI of a resource here.
func splitURI(uri string) (site, there string, ok bool) {
	address, ours := strings.CutPrefix(uri, scheme)
	site, there, ok = split(address)
	return site, there, ok && ours
}
