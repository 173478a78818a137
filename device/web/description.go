package web

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/ucum"
)

// description holds the used parts of a Thing Description (https://www.w3.org/TR/wot-thing-description11/, section 5).
type description struct {
	Base       string            `json:"base"`
	Schemes    map[string]scheme `json:"securityDefinitions"`
	Security   words             `json:"security"`
	Properties properties        `json:"properties"`
}

type scheme struct {
	Scheme string `json:"scheme"`
	In     string `json:"in"`
	Name   string `json:"name"`
}

type property struct {
	Type      string   `json:"type"`
	Unit      string   `json:"unit"`
	Min       *float64 `json:"minimum"`
	Max       *float64 `json:"maximum"`
	ReadOnly  bool     `json:"readOnly"`
	WriteOnly bool     `json:"writeOnly"`
	Forms     forms    `json:"forms"`
}

type form struct {
	Href        string `json:"href"`
	Ops         words  `json:"op"`
	ContentType string `json:"contentType"`
	Method      string `json:"htv:methodName"`
	Subprotocol string `json:"subprotocol"`
	Security    words  `json:"security"`
}

// Bounds of what is kept of a description: the decoder would need a hundred times the size of its text.
const (
	maxProperties = 256
	maxForms      = 16
	maxWords      = 16
)

// properties are at most maxProperties; more are an error.
type properties map[string]property

func (p *properties) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*p = make(properties)
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return errors.Join(err, errDescription)
	}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil || len(*p) == maxProperties {
			return errors.Join(err, errDescription)
		}
		name, one := token.String(), property{}
		if err := json.UnmarshalDecode(dec, &one); err != nil {
			return err
		}
		(*p)[name] = one
	}
	_, err := dec.ReadToken()
	return err
}

var errDescription = errors.New("it is no description, or is too large")

// forms are the first maxForms of a property.
type forms []form

func (f *forms) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return first((*[]form)(f), maxForms, dec)
}

// words is one text or a list of them, of which the first maxWords count.
type words []string

func (w *words) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '"' {
		return first((*[]string)(w), maxWords, dec)
	}
	var one string
	err := json.UnmarshalDecode(dec, &one)
	*w = words{one}
	return err
}

// first decodes the first values of a list, and skips the others.
func first[T any](list *[]T, most int, dec *jsontext.Decoder) error {
	if dec.PeekKind() != '[' {
		return json.UnmarshalDecode(dec, list) // null, or an error
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		if len(*list) == most {
			if err := dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		var one T
		if err := json.UnmarshalDecode(dec, &one); err != nil {
			return err
		}
		*list = append(*list, one)
	}
	_, err := dec.ReadToken()
	return err
}

// parseDescription reads a description of at most maxAnswer bytes.
func parseDescription(text []byte) (*description, error) {
	d := &description{}
	if json.Unmarshal(text, d, jsontext.AllowDuplicateNames(false)) != nil || len(d.Properties) == 0 {
		return nil, device.Faultf(device.Offline,
			"url is not the address of a Thing Description with properties; look at it in a browser")
	}
	return d, nil
}

// The operations of a property (section 5.3.4.2), and the methods that they have unless the form says so
// (https://www.w3.org/TR/wot-binding-templates/#http-default-vocabulary-terms).
const readProperty, writeProperty = "readproperty", "writeproperty"

var defaultMethods = map[string]string{readProperty: http.MethodGet, writeProperty: http.MethodPut}

// request returns the request for an operation of a property, which has to be at the configured server.
func (d *description) request(c *client, name, op string) (request, error) {
	p, there := d.Properties[name]
	if !there {
		return request{}, device.Faultf(device.Offline, "the Thing has no such property now; look at its description")
	}
	var elsewhere *url.URL
	for _, f := range p.Forms {
		ops := f.Ops
		if len(ops) == 0 && !p.ReadOnly {
			ops = append(ops, writeProperty)
		}
		if len(f.Ops) == 0 && !p.WriteOnly {
			ops = append(ops, readProperty)
		}
		kind, _, _ := strings.Cut(cmp.Or(f.ContentType, "application/json"), ";")
		if !slices.Contains(ops, op) || f.Subprotocol != "" || kind != "application/json" && !strings.HasSuffix(kind,
			"+json") {
			continue
		}
		to, err := d.resolve(c, f.Href)
		if err != nil {
			continue
		}
		if !c.sameHost(to) {
			elsewhere = to
			continue
		}
		if err := d.checkSecurity(c, f); err != nil {
			return request{}, err
		}
		method := cmp.Or(f.Method, defaultMethods[op])
		if !slices.Contains([]string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch}, method) {
			continue
		}
		return request{method: method, to: to, contentType: kind}, nil
	}
	if elsewhere != nil {
		where := "the description has"
		if at, err := netip.ParseAddrPort(elsewhere.Host); err == nil { // no text of the other side is in a fault
			where = at.String()
		}
		return request{}, device.Faultf(device.Offline,
			"the Thing's description names another server than url does; if it is the same one, write its host in url as %s", where)
	}
	return request{}, device.Faultf(device.Offline,
		"the Thing offers no way to do this by HTTP with JSON; look at the forms in its description")
}

// resolve returns the address of a form. Variables in its query, which are all optional (RFC 6570), are left out.
func (d *description) resolve(c *client, href string) (*url.URL, error) {
	href, _, _ = strings.Cut(href, "{?")
	if len(href) > maxURL || strings.Contains(href, "{") {
		return nil, errElsewhere
	}
	base := c.base
	if d.Base != "" {
		b, err := c.base.Parse(d.Base)
		if err != nil || len(d.Base) > maxURL {
			return nil, errElsewhere
		}
		base = b
	}
	to, err := base.Parse(href)
	if err == nil {
		to.Fragment = ""
	}
	return to, err
}

// checkSecurity compares what a form asks for with what the configuration has.
func (d *description) checkSecurity(c *client, f form) error {
	names := f.Security
	if len(names) == 0 {
		names = d.Security
	}
	for _, name := range names {
		s := d.Schemes[name]
		wants, has := s.Scheme, c.headers.Get("Authorization")
		switch {
		case wants == "nosec" || wants == "" || wants == "auto":
		case wants == "basic" && strings.HasPrefix(has, "Basic "):
		case wants == "bearer" && strings.HasPrefix(has, "Bearer "):
		case wants == "apikey" && s.In == "header" && c.headers.Get(s.Name) != "":
		case wants == "basic":
			return device.Faultf(device.Offline,
				"the Thing asks for a name and a password; write user and password_file")
		case wants == "bearer":
			return device.Faultf(device.Offline, "the Thing asks for a token; write key_file")
		case wants == "apikey" && s.In == "header":
			return device.Faultf(device.Offline,
				"the Thing asks for a key in a header; write key_file and key_header as its description has it")
		default:
			return device.Faultf(device.Offline,
				"the Thing asks for a kind of proof that this driver does not have; it has basic, bearer and keys in a header")
		}
	}
	return nil
}

// check compares a property with the point that the owner has written.
func (p property) check(of device.Point, q driver.Quantity) error {
	want := map[device.Kind][]string{
		device.KindMeasurement: {"number", "integer"}, device.KindLevel: {"number", "integer"},
		device.KindSwitch: {"boolean"},
	}[of.Kind]
	switch {
	case of.Kind == device.KindState && len(of.Values) == 0:
		want = []string{"boolean"}
	case of.Kind == device.KindState:
		want = []string{"string", "integer"}
	}
	number := of.Kind == device.KindMeasurement || of.Kind == device.KindLevel
	scaled := q.Scale != nil || q.Offset != 0
	switch {
	case p.Type != "" && p.Type != "object" && p.Type != "array" && !slices.Contains(want, p.Type):
		return device.Faultf(device.Offline,
			"the Thing's property is of another type (%s) than this point; look at its description",
			driver.QuoteWord(p.Type))
	case number && p.Unit != "" && !scaled && !ucum.Same(commonUnit(p.Unit), of.Unit):
		return device.Faultf(device.Offline,
			"the Thing gives the unit %s, and the configuration %q; correct unit, range and scale",
			driver.QuoteWord(p.Unit), of.Unit)
	case of.Kind.Output() && p.ReadOnly:
		return device.Faultf(device.Offline, "the Thing's property is read-only; write it under inputs")
	case of.Kind.Output() && p.WriteOnly:
		return device.Faultf(device.Offline,
			"the Thing's property cannot be read back, so that no value is ever confirmed; it cannot be used")
	case of.Kind == device.KindLevel:
		lo, hi := q.Raw(of.Range.Min), q.Raw(of.Range.Max)
		lo, hi = min(lo, hi), max(lo, hi)
		if p.Min != nil && lo < *p.Min || p.Max != nil && hi > *p.Max {
			return device.Faultf(device.Offline,
				"the Thing's property takes less than the range %v; write a range within its minimum and maximum",
				of.Range)
		}
	}
	return nil
}

// step returns the step in which an integer property takes numbers, in the point's unit; 0 for any number.
func (p property) step(q driver.Quantity) float64 {
	if p.Type != "integer" {
		return 0
	}
	return math.Abs(q.Number(1) - q.Number(0))
}

// units maps terms of vocabularies that descriptions use (QUDT and OM) to UCUM.
var units = map[string]string{
	"DEG_C": "Cel", "degree_Celsius": "Cel", "degreeCelsius": "Cel", "DEG_F": "[degF]", "degree_Fahrenheit": "[degF]",
	"PERCENT": "%",
	"PA":      "Pa", "pascal": "Pa", "LUX": "lx", "lux": "lx", "V": "V", "volt": "V", "A": "A", "ampere": "A", "W": "W",
	"watt": "W", "SEC": "s", "second-Time": "s",
}

func commonUnit(text string) string {
	if prefix, term, found := strings.Cut(text, ":"); found && !strings.Contains(prefix, "/") {
		text = term
	}
	return cmp.Or(units[text], text)
}
