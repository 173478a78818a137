package mqtt

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/lan"
)

const (
	maxPoints   = 64
	maxTopic    = 200
	maxTemplate = 1024 // bytes of a payload that is sent
	longestHold = time.Hour
	minHold     = 6 * time.Second
	// freshFor is the time for which a value is believed that nothing vouches for.
	freshFor = time.Hour
)

// config is the YAML of a device behind a broker.
type config struct {
	Broker       string            `json:"broker" jsonschema:"the broker's URL: mqtts://HOST, or mqtt://HOST without encryption; with a port where it is not 8883 or 1883"`
	User         string            `json:"user,omitempty" jsonschema:"the name to sign in with at the broker"`
	PasswordFile driver.File       `json:"password_file,omitempty" jsonschema:"the file beside the configuration with the password, which only its owner can read; never the password itself"`
	CAFile       driver.File       `json:"ca_file,omitempty" jsonschema:"the file beside the configuration with the certificate (PEM) of the authority that signed the broker's; those of the system when not written"`
	Kind         string            `json:"kind,omitempty" jsonschema:"what publishes it: zigbee2mqtt, tasmota, shelly (first generation), shelly2 (later ones) or theengs; then the topics need not be written"`
	Name         string            `json:"name,omitempty" jsonschema:"with kind: the device's name there, such as kitchen/plug of Zigbee2MQTT or the topic of Tasmota"`
	Base         string            `json:"base,omitempty" jsonschema:"what a ~ in the topics stands for; by kind and name when not written"`
	Available    *availability     `json:"available,omitempty" jsonschema:"where the broker says whether the device is there"`
	Fresh        time.Duration     `json:"fresh,omitempty" jsonschema:"how long an input is believed without a new value, at least 1s; 1h when not written, and without end where available says online"`
	Inputs       map[string]input  `json:"inputs,omitempty" jsonschema:"what is read, each with a name of yours"`
	Outputs      map[string]output `json:"outputs,omitempty" jsonschema:"what is moved, each with a name of yours"`

	brokers *brokers
}

type availability struct {
	Topic string      `json:"topic" jsonschema:"the topic, such as zigbee2mqtt/plug/availability"`
	Path  driver.Path `json:"path,omitempty" jsonschema:"the value's place in a JSON message, such as state; the whole message when not written"`
	On    string      `json:"on,omitempty" jsonschema:"what it says while the device is there; online when not written"`
}

type input struct {
	Topic    string      `json:"topic,omitempty" jsonschema:"the topic of its messages; by kind when not written"`
	Path     driver.Path `json:"path,omitempty" jsonschema:"the value's place in a JSON message: names with dots and indexes in brackets, such as ENERGY.Power or sensors[0].value; the whole message when not written"`
	On       string      `json:"on,omitempty" jsonschema:"with state: what the message says for on; ON, on, true or 1 when not written"`
	Off      string      `json:"off,omitempty" jsonschema:"with state: what the message says for off; OFF, off, false or 0 when not written"`
	UnitPath driver.Path `json:"unit_path,omitempty" jsonschema:"the place of the unit in the JSON message; another unit than the point's is a fault"`
	driver.InputPoint
}

type output struct {
	Topic      string        `json:"topic,omitempty" jsonschema:"the topic where the device says its state; by kind when not written"`
	Path       driver.Path   `json:"path,omitempty" jsonschema:"the state's place in a JSON message; the whole message when not written"`
	Set        string        `json:"set,omitempty" jsonschema:"the topic of commands; by kind when not written"`
	On         string        `json:"on,omitempty" jsonschema:"the command for on; ON when not written. {seconds} in it is how long it holds; see hold"`
	Off        string        `json:"off,omitempty" jsonschema:"the command for off; OFF when not written"`
	IsOn       string        `json:"is_on,omitempty" jsonschema:"what the state says for on; ON, on, true or 1 when not written"`
	IsOff      string        `json:"is_off,omitempty" jsonschema:"what the state says for off; OFF, off, false or 0 when not written"`
	Payload    string        `json:"payload,omitempty" jsonschema:"of a level: the command, with {value} for the number; {value} alone when not written"`
	Step       float64       `json:"step,omitempty" jsonschema:"of a level: the steps of the device in its own numbers, such as 1; any number when not written"`
	Ask        string        `json:"ask,omitempty" jsonschema:"the topic that makes the device say its state; by kind when not written"`
	AskPayload string        `json:"ask_payload,omitempty" jsonschema:"the message for ask; empty when not written"`
	Channel    int           `json:"channel,omitempty" jsonschema:"with kind: which of several outputs of the device, 0 to 31"`
	Hold       time.Duration `json:"hold,omitempty" jsonschema:"how long the device stays on without a new command, 6s to 1h: on has {seconds} for it, and the command is repeated in time"`
	driver.OutputPoint
}

// Validate finds mistakes without a network.
func (c *config) Validate() error {
	if err := c.validateBroker(); err != nil {
		return err
	}
	k, known := kinds[c.Kind]
	switch {
	case !known:
		return device.Faultf(device.Invalid, "kind: there is no kind %.40q%s", c.Kind,
			device.Suggest(c.Kind, kindNames(), "kind"))
	case c.Kind != "" && c.Name == "" && c.Base == "":
		return device.Faultf(device.Invalid, "name: write the device's name at %s, such as name: plug", k.title)
	case c.Kind == "" && c.Name != "":
		return device.Faultf(device.Invalid, "name: it goes with kind; write kind, or the topics of the points")
	case len(c.Inputs)+len(c.Outputs) == 0:
		return device.Faultf(device.Invalid, "inputs: there are no inputs and no outputs; add one, such as \"temperature: "+
			"{ topic: home/kitchen, path: temperature, unit: Cel, range: -40..85 }\"")
	case len(c.Inputs)+len(c.Outputs) > maxPoints:
		return device.Faultf(device.Invalid, "inputs: a device can have %d points; write another device", maxPoints)
	case c.Fresh != 0 && c.Fresh < time.Second:
		return device.Faultf(device.Invalid, "fresh: it takes 1s or longer")
	}
	for name, in := range c.Inputs {
		if err := in.validate("inputs." + name); err != nil {
			return err
		}
	}
	for name, out := range c.Outputs {
		if err := out.validate("outputs." + name); err != nil {
			return err
		}
	}
	r, err := c.resolve()
	if err != nil {
		return err
	}
	return r.desc.Validate()
}

func (c *config) validateBroker() error {
	u, err := url.Parse(c.Broker)
	switch {
	case err == nil && u.User != nil:
		return device.Faultf(device.Invalid, "broker: a user has a key of its own, user, and the password a file, which "+
			"password_file names; leave them out of the URL")
	case err != nil || u.Hostname() == "" || !isPort(u.Port()) || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" ||
		len(c.Broker) > 256 || u.Scheme != "mqtts" && u.Scheme != "mqtt":
		return device.Faultf(device.Invalid,
			"broker: %.80q is no broker; write mqtt://192.168.1.5 or mqtts://broker.example.org", c.Broker)
	case c.PasswordFile != "" && c.User == "":
		return device.Faultf(device.Invalid, "user: a password goes with a user; write user, too")
	case len(c.User) > 128 || !isPrintable([]byte(c.User)):
		return device.Faultf(device.Invalid, "user: it takes at most 128 printable characters")
	case c.CAFile != "" && u.Scheme != "mqtts":
		return device.Faultf(device.Invalid, "ca_file: it is for a broker at mqtts://")
	}
	return nil
}

// isPort reports whether text is a port; "" is the usual one.
func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && port > 0
}

func (in input) validate(of string) error {
	if err := in.InputPoint.Validate(of); err != nil {
		return err
	}
	if !in.State && (in.On != "" || in.Off != "") {
		return device.Faultf(device.Invalid, "%s.on: it is for a state; write state: on, or remove on and off", of)
	}
	return validateWords(of, in.On, in.Off)
}

// validateWords checks what a message says for on and off.
func validateWords(of, on, off string) error {
	switch {
	case on != "" && on == off:
		return device.Faultf(device.Invalid, "%s: on and off say the same, %.40q", of, on)
	case len(on) > maxText || len(off) > maxText:
		return device.Faultf(device.Invalid, "%s: what it says for on and off takes at most %d characters", of, maxText)
	}
	return nil
}

func (o output) validate(of string) error {
	if err := o.OutputPoint.Validate(of); err != nil {
		return err
	}
	level := o.Point(of).Kind == device.KindLevel
	switch {
	case max(len(o.On), len(o.Off), len(o.Payload), len(o.AskPayload)) > maxTemplate:
		return device.Faultf(device.Invalid, "%s: a command takes at most %d characters", of, maxTemplate)
	case level && (o.On != "" || o.Off != "" || o.IsOn != "" || o.IsOff != "" || o.Hold != 0):
		return device.Faultf(device.Invalid,
			"%s.on: a level has a number; remove on, off, is_on, is_off and hold, or unit and range", of)
	case level && o.Payload != "" && strings.Count(o.Payload, placeValue) != 1:
		return device.Faultf(device.Invalid, "%s.payload: write %s once, where the number goes", of, placeValue)
	case !level && (o.Payload != "" || o.Step != 0):
		return device.Faultf(device.Invalid, "%s.payload: it is for a level, which has a range; a switch has on and off", of)
	case !(o.Step >= 0 && o.Step <= 1e9):
		return device.Faultf(device.Invalid, "%s.step: %v is no step", of, o.Step)
	case o.Channel < 0 || o.Channel > 31:
		return device.Faultf(device.Invalid, "%s.channel: it takes 0 to 31", of)
	case o.Hold != 0 && (o.Hold < minHold || o.Hold > longestHold || o.Hold%time.Second != 0):
		return device.Faultf(device.Invalid, "%s.hold: it takes whole seconds, 6s to 1h", of)
	case o.Hold != 0 && o.Safe != device.Bool(false):
		return device.Faultf(device.Invalid, "%s.hold: the device goes off by itself, so safe has to be off", of)
	case strings.Contains(o.On, placeSeconds) != (o.Hold != 0) && (o.On != "" || o.Hold == 0):
		return device.Faultf(device.Invalid, "%s.hold: hold and %s in on go together", of, placeSeconds)
	}
	return validateWords(of, o.IsOn, o.IsOff)
}

// The places in a command, each for one number, and in topics of a kind.
const (
	placeValue   = "{value}"
	placeSeconds = "{seconds}"
)

// checkTopic refuses what is no topic of one device.
func checkTopic(of, topic string) error {
	switch {
	case topic == "":
		return device.Faultf(device.Invalid, "%s: the topic is missing; write it, or kind and name", of)
	case strings.ContainsAny(topic, "+#"):
		return device.Faultf(device.Invalid, "%s: %.80q has a wildcard, + or #; write the topic of one device", of, topic)
	case len(topic) > maxTopic || !utf8.ValidString(topic) || strings.ContainsFunc(topic, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return device.Faultf(device.Invalid, "%s: a topic takes at most %d printable characters", of, maxTopic)
	case strings.HasPrefix(topic, "$"):
		return device.Faultf(device.Invalid, "%s: %.80q is the broker's own, and no device's", of, topic)
	case slices.Contains(strings.Split(topic, "/"), "~"):
		return device.Faultf(device.Invalid, "%s: there is nothing for the ~ of %.80q; write base, or kind and name", of,
			topic)
	}
	return nil
}

// ownTopics begins the topics of this site's bridge, and of other sites'.
const ownTopics = "agentsite/"

// Peer returns the name of the device that keeps its outputs when the broker is lost.
func (c *config) Peer() string { return cmp.Or(c.Name, "the device behind "+c.Broker) }

// GoodFor returns the longest time for which judge believes an input without a new value; a week stands for without end.
func (c *config) GoodFor() time.Duration { return cmp.Or(c.Fresh, 7*24*time.Hour) }

// Describe needs no network.
func (c *config) Describe() device.Description {
	r, _ := c.resolve()
	return r.desc
}

// SentTo returns the broker that gets the password as it is.
func (c *config) SentTo() string {
	u, err := url.Parse(c.Broker)
	if err != nil || u.Scheme != "mqtt" || c.PasswordFile == "" || lan.IsLoopback(u.Hostname()) {
		return ""
	}
	return u.Hostname()
}

// Resources lists the topics of commands: two devices that move one output would each think that the other is a
// stranger.
func (c *config) Resources() []driver.Resource {
	r, _ := c.resolve()
	var all []driver.Resource
	for _, p := range r.points {
		if p.out != nil {
			all = append(all, driver.Resource{
				Name: strings.TrimSuffix(c.Broker, "/") + " " + p.out.set + " " + p.out.on, Elsewhere: true})
		}
	}
	return all
}

// Open connects to the broker, and subscribes.
func (c *config) Open(ctx context.Context) (device.Device, error) {
	r, err := c.resolve()
	if err != nil {
		return nil, err
	}
	d := newDevice(r, c.Fresh)
	if d.broker, err = c.brokers.join(ctx, c.access(), d); err != nil {
		return nil, err
	}
	return d, nil
}

func (c *config) access() access {
	return access{url: c.Broker, user: c.User, password: c.PasswordFile, ca: string(c.CAFile)}
}

// sorted returns the keys of m in order.
func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// resolved is a device with its topics, as its kind completes them.
type resolved struct {
	desc      device.Description
	points    []point // as desc.Points
	available []presence
	json      map[string]document // the topics with JSON messages
}

// presence is a topic that says whether the device, or what publishes it, is there.
type presence struct {
	topic    string
	path     driver.Path
	on       string
	needed   bool // without a word nothing is believed
	vouches  bool // while it says that the device is there, what the broker had kept is believed
	together bool // it is of what publishes the device, among others
}

// point is one point and its place.
type point struct {
	device.Point
	topic    string
	path     driver.Path
	unitPath driver.Path
	usual    func(jsontext.Value) (device.Value, error)
	on, off  string // words of a state; "" for the usual ones
	quantity driver.Quantity
	out      *command // nil for an input
}

// command has the topic and the payloads that move an output.
type command struct {
	set        string
	on, off    string
	payload    string
	step       float64
	ask        string
	askPayload string
	hold       time.Duration
}

// resolve completes the configuration by its kind, and checks the topics.
func (c *config) resolve() (resolved, error) {
	k := kinds[c.Kind]
	base := c.Base
	if base == "" {
		base = strings.ReplaceAll(k.base, placeName, c.Name)
	}
	r := resolved{desc: device.Description{Model: "device behind MQTT"}}
	if k.title != "" {
		r.desc.Model = k.title + " device"
	}
	var wrong error
	topic := func(of, text string) string {
		if base != "" {
			levels := strings.Split(text, "/")
			for i, level := range levels {
				if level == "~" {
					levels[i] = base
				}
			}
			text = strings.Join(levels, "/")
		}
		if err := checkTopic(of, text); err != nil && wrong == nil {
			wrong = err
		}
		return text
	}
	place := func(of string, p driver.Path) driver.Path {
		if err := p.Validate(of); err != nil && wrong == nil {
			wrong = err
		}
		return p
	}
	for _, p := range k.available {
		if c.Available == nil || p.together {
			p.topic = topic("available.topic", p.topic)
			r.available = append(r.available, p)
		}
	}
	if a := c.Available; a != nil {
		r.available = append(r.available, presence{
			topic: topic("available.topic", a.Topic), path: place("available.path", a.Path), on: cmp.Or(a.On, "online"),
			needed: true, vouches: true,
		})
	}
	for _, name := range sorted(c.Outputs) {
		of, o := "outputs."+name, k.output(name, c.Outputs[name])
		p := point{
			Point: o.Point(name), topic: topic(of+".topic", o.Topic), path: place(of+".path", o.Path), on: o.IsOn, off: o.IsOff,
			quantity: o.Quantity, usual: o.Decode,
			out: &command{
				set: topic(of+".set", o.Set), on: cmp.Or(o.On, "ON"), off: cmp.Or(o.Off, "OFF"),
				payload: cmp.Or(o.Payload, placeValue),
				step:    o.Step, askPayload: o.AskPayload, hold: o.Hold,
			},
		}
		if o.Hold != 0 && !strings.Contains(p.out.on, placeSeconds) && wrong == nil {
			wrong = device.Faultf(device.Invalid, "%s.hold: write the command for on, with %s where the seconds go", of,
				placeSeconds)
		}
		p.out.on = strings.Replace(p.out.on, placeSeconds, strconv.Itoa(int(o.Hold/time.Second)), 1)
		if o.Ask != "" {
			p.out.ask = topic(of+".ask", o.Ask)
		}
		if p.out.on == p.out.off && wrong == nil && p.Kind == device.KindSwitch {
			wrong = device.Faultf(device.Invalid, "%s.on: on and off are the same command", of)
		}
		r.points = append(r.points, p)
	}
	for _, name := range sorted(c.Inputs) {
		of, in := "inputs."+name, k.input(name, c.Inputs[name])
		r.points = append(r.points, point{
			Point: in.Point(name), topic: topic(of+".topic", in.Topic), path: place(of+".path", in.Path),
			unitPath: place(of+".unit_path", in.UnitPath),
			on:       in.On, off: in.Off, quantity: in.Quantity, usual: in.Decode,
		})
	}
	for _, p := range r.points {
		r.desc.Points = append(r.desc.Points, p.Point)
		if p.out != nil && wrong == nil {
			wrong = r.checkCommands(p)
		}
	}
	if wrong == nil {
		r.json, wrong = documents(r.points)
	}
	return r, wrong
}

// checkCommands refuses commands whose own echo would confirm them, and those to a site.
func (r *resolved) checkCommands(p point) error {
	for _, to := range []string{p.out.set, p.out.ask} {
		for _, other := range r.points {
			if to == other.topic {
				return device.Faultf(device.Invalid, "outputs.%s.set: commands to %.80q would be taken for what the device says "+
					"of %s; the device says its state in another topic",
					p.Name, to, other.Name)
			}
		}
		if strings.HasPrefix(to, ownTopics) {
			return device.Faultf(device.Invalid, "outputs.%s.set: %.80q is of a bridge of this site or another one, not of a "+
				"device; call the other site instead", p.Name, to)
		}
	}
	return nil
}
