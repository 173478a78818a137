package web

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
	"agentsite/device/driver"
)

// thingConfig is the YAML of thing: properties of a W3C Thing at url, the address of its description. The owner's
// words about a property are what holds: the description is compared with them whenever it is fetched.
type thingConfig struct {
	endpoint
	Inputs  map[string]thingInput  `json:"inputs,omitempty" jsonschema:"the properties that are read, each with a name of yours"`
	Outputs map[string]thingOutput `json:"outputs,omitempty" jsonschema:"the properties that are set, each with a name of yours"`
}

type thingInput struct {
	driver.InputPoint
	Property string      `json:"property,omitempty" jsonschema:"the property's name in the description; the point's name when not written"`
	Path     driver.Path `json:"path,omitempty" jsonschema:"where the value is in the property's, if that is an object; the whole when not written"`
}

type thingOutput struct {
	driver.OutputPoint
	Property string        `json:"property,omitempty" jsonschema:"the property's name in the description; the point's name when not written"`
	Step     float64       `json:"step,omitempty" jsonschema:"the step in which the Thing takes numbers, in the unit; any number when not written"`
	Renew    time.Duration `json:"renew,omitempty" jsonschema:"how often a value away from safe is written again, for Things that return to safe by themselves, as those of another agentsite; never when not written"`
}

func nameOr(property, point string) string {
	if property == "" {
		return point
	}
	return property
}

// Validate finds mistakes.
func (c *thingConfig) Validate() error {
	if err := c.endpoint.Validate(); err != nil {
		return err
	}
	if err := countPoints(len(c.Inputs), len(c.Outputs), "temperature: { unit: Cel, range: -40..60 }"); err != nil {
		return err
	}
	properties := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		i, of := c.Inputs[name], "inputs."+name
		properties[nameOr(i.Property, name)] = true
		if err := firstError(i.InputPoint.Validate(of), i.Path.Validate(of+".path")); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		o, of := c.Outputs[name], "outputs."+name
		properties[nameOr(o.Property, name)] = true
		err := firstError(o.OutputPoint.Validate(of), outputWords{Step: o.Step}.validate(of, o.Point(name)),
			checkRenew(of, o.Renew))
		if err != nil {
			return err
		}
	}
	if len(properties) > maxSources {
		return device.Faultf(device.Invalid,
			"inputs: %d properties are too many; a device has at most %d: make several devices",
			len(properties), maxSources)
	}
	return c.Describe().Validate()
}

// Describe needs no Thing.
func (c *thingConfig) Describe() device.Description {
	return device.Description{Model: "a W3C Thing", Points: driver.Points(c.Outputs, c.Inputs)}
}

// Resources lists the properties that its outputs set.
func (c *thingConfig) Resources() []driver.Resource {
	var all []driver.Resource
	for name, o := range c.Outputs {
		if of, err := c.to(""); err == nil {
			all = append(all, c.claim(of.RequestURI()+" property "+nameOr(o.Property, name)))
		}
	}
	return all
}

// Open fetches the description. A device with outputs is opened also while its Thing is away.
func (c *thingConfig) Open(ctx context.Context) (device.Device, error) {
	server, err := c.open()
	if err != nil {
		return nil, err
	}
	t := &thing{client: server}
	sources := map[string]*source{}
	var points []*point
	desc := c.Describe()
	for _, described := range desc.Points {
		p := &point{Point: described}
		i, o := c.Inputs[p.Name], c.Outputs[p.Name]
		name, q := nameOr(i.Property, p.Name), i.Quantity
		if p.Kind.Output() {
			name, q = nameOr(o.Property, p.Name), o.Quantity
			p.step, p.renew, p.decode = o.Step, o.Renew, o.Decode
			p.set = func(ctx context.Context, v device.Value) error {
				return t.write(ctx, name, outputWords{}.text(o.Quantity, v))
			}
		} else {
			p.path, p.decode = i.Path, i.Decode
		}
		decode := p.decode
		p.decode = func(raw jsontext.Value) (device.Value, error) {
			if err := t.check(p, name, q); err != nil {
				return device.Value{}, err
			}
			return decode(raw)
		}
		if p.set != nil {
			set := p.set
			p.set = func(ctx context.Context, v device.Value) error {
				if err := t.fetch(ctx); err != nil {
					return err
				}
				if err := t.check(p, name, q); err != nil {
					return err
				}
				return set(ctx, p.sent(v))
			}
		}
		if sources[name] == nil {
			sources[name] = &source{ask: func(ctx context.Context) ([]byte, error) { return t.read(ctx, name) }}
		}
		p.source = sources[name]
		points = append(points, p)
	}
	return opened(ctx, desc, points, server.Close, len(c.Outputs) > 0)
}

// thing is a Thing, one request at a time. Its description is fetched again after a failure, because another Thing may
// have its place then.
type thing struct {
	client      *client
	description *description // nil if it is to be fetched
}

func (t *thing) fetch(ctx context.Context) error {
	if t.description != nil {
		return nil
	}
	text, err := t.client.do(ctx, request{method: http.MethodGet, to: t.client.base})
	if err == nil {
		t.description, err = parseDescription(text)
	}
	return err
}

// check compares a property with its point, whose step it sets if the property has one.
func (t *thing) check(p *point, name string, q driver.Quantity) error {
	property := t.description.Properties[name]
	if p.step == 0 {
		p.step = property.step(q)
	}
	return property.check(p.Point, q)
}

func (t *thing) read(ctx context.Context, name string) ([]byte, error) {
	return t.do(ctx, name, readProperty, "")
}

func (t *thing) write(ctx context.Context, name, value string) error {
	_, err := t.do(ctx, name, writeProperty, value)
	return err
}

func (t *thing) do(ctx context.Context, name, op, body string) ([]byte, error) {
	if err := t.fetch(ctx); err != nil {
		return nil, err
	}
	ask, err := t.description.request(t.client, name, op)
	if err != nil {
		return nil, err
	}
	ask.body = body
	answer, err := t.client.do(ctx, ask)
	if err != nil {
		t.description = nil
	}
	return answer, err
}
