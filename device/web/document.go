package web

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
	"agentsite/device/driver"
)

// Bounds of what an owner writes.
const (
	maxPoints  = 64
	maxSources = 16
	maxBody    = 4 << 10
)

// placeholder stands for the value in a request.
const placeholder = "{value}"

// documentConfig is the YAML of http: values in JSON documents of a server, and outputs that are set by a request.
type documentConfig struct {
	endpoint
	Inputs  map[string]documentInput  `json:"inputs,omitempty" jsonschema:"what is read, each with a name of yours"`
	Outputs map[string]documentOutput `json:"outputs,omitempty" jsonschema:"what is set, each with a name of yours"`
}

// documentPlace is the YAML of a value's place.
type documentPlace struct {
	From string      `json:"from,omitempty" jsonschema:"path and query of the document below url, such as /status; url itself when not written"`
	Path driver.Path `json:"path,omitempty" jsonschema:"where the value is in the document, such as meters[0].power; the whole document when not written"`
}

type documentInput struct {
	documentPlace
	driver.InputPoint
	UnitPath driver.Path `json:"unit_path,omitempty" jsonschema:"where the document says the unit; another one than unit is then a fault"`
}

type documentOutput struct {
	documentPlace
	driver.OutputPoint
	outputWords
	Set         string        `json:"set" jsonschema:"path and query of the request that sets it, such as /relay/0?turn={value}; {value} stands for the value"`
	Method      string        `json:"method,omitempty" jsonschema:"PUT, POST, PATCH or GET; POST when not written"`
	Body        string        `json:"body,omitempty" jsonschema:"what is sent, such as '{\"on\":{value}}'"`
	ContentType string        `json:"content_type,omitempty" jsonschema:"of the body; application/json when not written"`
	Renew       time.Duration `json:"renew,omitempty" jsonschema:"how often a value away from safe is sent again, for servers that return to safe by themselves; never when not written"`
}

// outputWords is the YAML of how the other side takes values.
type outputWords struct {
	OnIs  string  `json:"on_is,omitempty" jsonschema:"what is sent for on; true when not written"`
	OffIs string  `json:"off_is,omitempty" jsonschema:"what is sent for off; false when not written"`
	Step  float64 `json:"step,omitempty" jsonschema:"the step in which the other side takes numbers, in the unit; any number when not written"`
}

func (w outputWords) validate(of string, p device.Point) error {
	switch {
	case p.Kind != device.KindSwitch && (w.OnIs != "" || w.OffIs != ""):
		return device.Faultf(device.Invalid, "%s.on_is: it is a number; remove on_is and off_is, or unit and range", of)
	case (w.OnIs == "") != (w.OffIs == ""), w.OnIs != "" && w.OnIs == w.OffIs:
		return device.Faultf(device.Invalid, "%s.on_is: write on_is and off_is, two different texts", of)
	case w.Step != 0 && p.Kind != device.KindLevel:
		return device.Faultf(device.Invalid, "%s.step: a switch has no steps; remove it, or write unit and range", of)
	case w.Step < 0, w.Step > p.Range.Max-p.Range.Min, w.Step != w.Step:
		return device.Faultf(device.Invalid, "%s.step: %v is no step of %v", of, w.Step, p.Range)
	case len(w.OnIs)+len(w.OffIs) > 400:
		return device.Faultf(device.Invalid, "%s.on_is: it is too long", of)
	}
	return nil
}

// text returns the written form of a value, with the number as the other side has it.
func (w outputWords) text(q driver.Quantity, v device.Value) string {
	switch {
	case v.Type() == device.TypeNumber:
		return device.Number(device.Tidy(q.Raw(v.Number()))).String()
	case v.Bool() && w.OnIs != "":
		return w.OnIs
	case !v.Bool() && w.OffIs != "":
		return w.OffIs
	case v.Bool():
		return "true"
	}
	return "false"
}

// decode returns the value that the other side says for an output, in its own words or the usual ones.
func (w outputWords) decode(o driver.OutputPoint, raw jsontext.Value) (device.Value, error) {
	if w.OnIs != "" && raw.Kind() == '"' {
		text, err := jsontext.AppendUnquote(nil, raw)
		if err == nil && (string(text) == w.OnIs || string(text) == w.OffIs) {
			return device.Bool(string(text) == w.OnIs), nil
		}
	}
	return o.Decode(raw)
}

// Validate finds mistakes.
func (c *documentConfig) Validate() error {
	if err := c.endpoint.Validate(); err != nil {
		return err
	}
	if err := countPoints(len(c.Inputs), len(c.Outputs),
		"temperature: { path: current.temperature, unit: Cel, range: -40..60 }"); err != nil {
		return err
	}
	documents := map[string]bool{}
	place := func(of string, p documentPlace) error {
		documents[p.From] = true
		if _, err := c.to(p.From); err != nil {
			return device.Faultf(device.Invalid, "%s.from: %w", of, err)
		}
		return p.Path.Validate(of + ".path")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		i, of := c.Inputs[name], "inputs."+name
		if err := firstError(place(of, i.documentPlace), i.InputPoint.Validate(of),
			i.UnitPath.Validate(of+".unit_path")); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		o, of := c.Outputs[name], "outputs."+name
		if err := firstError(place(of, o.documentPlace), o.OutputPoint.Validate(of), o.outputWords.validate(of,
			o.Point(name)), o.validate(of, c)); err != nil {
			return err
		}
	}
	if len(documents) > maxSources {
		return device.Faultf(device.Invalid,
			"inputs: they are in %d documents; a device has at most %d: make several devices", len(documents),
			maxSources)
	}
	return c.Describe().Validate()
}

// validate finds mistakes in the request that sets o.
func (o documentOutput) validate(of string, c *documentConfig) error {
	switch {
	case !strings.Contains(o.Set+o.Body, placeholder):
		return device.Faultf(device.Invalid, "%s.set: write where the value is sent, as {value}, in set or in body", of)
	case !slices.Contains([]string{"", http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch}, o.Method):
		return device.Faultf(device.Invalid, "%s.method: %.20q is not supported; write PUT, POST, PATCH or GET", of,
			o.Method)
	case o.Method == http.MethodGet && o.Body != "":
		return device.Faultf(device.Invalid, "%s.body: GET sends none; write {value} in set, or another method", of)
	case len(o.Body) > maxBody:
		return device.Faultf(device.Invalid, "%s.body: it has %d letters; write at most %d", of, len(o.Body), maxBody)
	case strings.ContainsAny(o.ContentType, "\r\n") || len(o.ContentType) > 100:
		return device.Faultf(device.Invalid, "%s.content_type: it is none; application/json is used when not written",
			of)
	case o.Renew < 0 || o.Renew > 0 && o.Renew < 2*time.Second || o.Renew > time.Hour:
		return device.Faultf(device.Invalid, "%s.renew: %v is not 2s to 1h", of, o.Renew)
	}
	for _, v := range extremes(o.Point(of)) {
		r, err := o.request(c, v)
		if err != nil {
			return device.Faultf(device.Invalid, "%s.set: %w", of, err)
		}
		if o.Body != "" && o.ContentType == "" && !jsontext.Value(r.body).IsValid() {
			return device.Faultf(device.Invalid,
				"%s.body: %.80q is no JSON; write a text for {value} in quotes, or content_type: text/plain", of, r.body)
		}
	}
	return nil
}

// Resources lists the requests that set its outputs.
func (c *documentConfig) Resources() []driver.Resource {
	var all []driver.Resource
	for _, o := range c.Outputs {
		says := strings.NewReplacer(placeholder, cmp.Or(o.OnIs, placeholder))
		if to, err := c.to(says.Replace(o.Set)); err == nil {
			all = append(all, c.claim(cmp.Or(o.Method, http.MethodPost)+" "+to.RequestURI()+" "+says.Replace(o.Body)))
		}
	}
	return all
}

// extremes returns the values of an output between which all others are.
func extremes(p device.Point) []device.Value {
	if p.Kind == device.KindSwitch {
		return []device.Value{device.Bool(true), device.Bool(false)}
	}
	return []device.Value{device.Number(p.Range.Min), device.Number(p.Range.Max)}
}

// request returns the request that sets o to v. All of it but v is the owner's.
func (o documentOutput) request(c *documentConfig, v device.Value) (request, error) {
	says := strings.NewReplacer(placeholder, o.text(o.Quantity, v))
	to, err := c.to(says.Replace(o.Set))
	r := request{method: o.Method, to: to, contentType: o.ContentType, body: says.Replace(o.Body)}
	if r.method == "" {
		r.method = http.MethodPost
	}
	if r.contentType == "" {
		r.contentType = "application/json"
	}
	return r, err
}

// Describe needs no server.
func (c *documentConfig) Describe() device.Description {
	return device.Description{Model: "values of a web server", Points: driver.Points(c.Outputs, c.Inputs)}
}

// Open asks for the documents once. A device with outputs is opened also while its server is away.
func (c *documentConfig) Open(ctx context.Context) (device.Device, error) {
	server, err := c.open()
	if err != nil {
		return nil, err
	}
	sources := map[string]*source{}
	at := func(place documentPlace) *source {
		if sources[place.From] == nil {
			to, _ := c.to(place.From)
			sources[place.From] = &source{ask: func(ctx context.Context) ([]byte, error) {
				return server.do(ctx, request{method: http.MethodGet, to: to})
			}}
		}
		return sources[place.From]
	}
	var points []*point
	desc := c.Describe()
	for _, described := range desc.Points {
		p := &point{Point: described}
		if o, ok := c.Outputs[p.Name]; ok {
			p.path, p.source, p.step, p.renew = o.Path, at(o.documentPlace), o.Step, o.Renew
			p.decode = func(raw jsontext.Value) (device.Value, error) { return o.decode(o.OutputPoint, raw) }
			p.set = func(ctx context.Context, v device.Value) error {
				ask, err := o.request(c, v)
				if err == nil {
					_, err = server.do(ctx, ask)
				}
				return err
			}
		} else {
			i := c.Inputs[p.Name]
			p.path, p.unitPath, p.source, p.decode = i.Path, i.UnitPath, at(i.documentPlace), i.Decode
		}
		points = append(points, p)
	}
	return opened(ctx, desc, points, server.Close, len(c.Outputs) > 0)
}

// opened returns the device. One without outputs has to answer once, so that a mistake is found when it is opened.
func opened(ctx context.Context, desc device.Description, points []*point, release func() error,
	outputs bool) (device.Device, error) {
	r, err := newRemote(desc, points, release)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	if outputs {
		return r, nil
	}
	if _, err := r.Sample(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &reader{r}, nil
}

// reader is a device without outputs.
type reader struct{ remote *remote }

func (r *reader) Describe() device.Description { return r.remote.Describe() }
func (r *reader) Close() error                 { return r.remote.Close() }
func (r *reader) Sample(ctx context.Context) ([]device.Reading, error) {
	return r.remote.Sample(ctx)
}

// countPoints refuses a device without points, and one with too many.
func countPoints(inputs, outputs int, example string) error {
	switch n := inputs + outputs; {
	case n == 0:
		return device.Faultf(device.Invalid, "inputs: there are no inputs and no outputs; add one, such as %q", example)
	case n > maxPoints:
		return device.Faultf(device.Invalid, "inputs: %d points are too many; a device has at most %d", n, maxPoints)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
