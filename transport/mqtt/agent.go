package mqtt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/device/mqtt/packet"
	"agentsite/node/occurrence"
	"agentsite/transport/web/outbound"
)

// KindName is the name of the kind of agent, and so the beginning of its principal.
const KindName = "mqtt"

const (
	retry    = time.Second // the pause before the next try, which doubles
	retryMax = 5 * time.Minute
	// settled is the length of a connection after which the pauses begin anew.
	settled = time.Minute
)

// World holds the parts of the site that the bridge uses.
type World struct {
	Site    string // its name
	ID      string // the site among all on a broker, of a-z, 0-9, _ and -
	Version string // of the program
	// Secret reads a file beside the configuration that nobody else can read, and File any file there.
	Secret func(name string) (string, error)
	File   func(name string) ([]byte, error)
	// Tasks takes tasks for hosted agents; nil where there are none.
	Tasks func() task.Host
	// Claimed reports whether the site has an owner. Before, nothing is published.
	Claimed func() bool
	// Supervised returns the broker of the Home Assistant that runs the site; nil where none does.
	Supervised func(context.Context) (Broker, error)
	// Points are those that are known before the site runs, and Open the devices whose points are not.
	Points []agents.Point
	Open   []string
	// Source tells of occurrences; nil where nothing runs.
	Source *occurrence.Source
}

// Broker is a broker that the site is told of.
type Broker struct {
	Host, User, Password string
	Port                 uint16
	TLS                  bool
}

// supervised is the name of the broker that World.Supervised returns.
const supervised = "homeassistant"

// Kind returns the entry of the list of kinds.
func Kind(w World) agent.Kind {
	return agent.Kind{
		Name: KindName,
		Doc:  "shows what it may read to an MQTT broker and Home Assistant, and moves from there what it may move",
		New: func() agent.Agent {
			return &Agent{
				Discovery: "homeassistant", Every: 10 * time.Second, Hold: 12 * time.Hour,
				world: w, version: packet.V5, retry: retry, timing: usual,
			}
		},
	}
}

// Agent is the bridge to a broker.
type Agent struct {
	Broker       string        `json:"broker" jsonschema:"the broker's URL: mqtts://HOST, or mqtt://HOST without encryption; with a port where it is not 8883 or 1883; homeassistant for the one of the Home Assistant whose app this site is"`
	Plain        bool          `json:"plain,omitempty" jsonschema:"whether mqtt:// may go to another machine: whoever is on the way can read, and move what may says; off when not written"`
	User         string        `json:"user,omitempty" jsonschema:"the name to sign in with at the broker"`
	PasswordFile string        `json:"password_file,omitempty" jsonschema:"the name of a file beside the configuration with the password, which only its owner can read; never the password itself"`
	CAFile       string        `json:"ca_file,omitempty" jsonschema:"the name of a file beside the configuration with the certificate (PEM) of the authority that signed the broker's; those of the system when not written"`
	Discovery    string        `json:"discovery,omitempty" jsonschema:"the first word of Home Assistant's topics; homeassistant when not written; off removes the site from Home Assistant"`
	Every        time.Duration `json:"every,omitempty" jsonschema:"how often measurements are told at most, 1s to 1h; 10s when not written"`
	Hold         time.Duration `json:"hold,omitempty" jsonschema:"how long an output stays as it was set without another word, 1m to 168h, within its max_on; 12h when not written"`
	Lights       []string      `json:"lights,omitempty" jsonschema:"outputs that are lights there, such as hall/lamp"`
	Valves       []string      `json:"valves,omitempty" jsonschema:"outputs that are valves there, such as garden/valve"`
	About        []string      `json:"about,omitempty" jsonschema:"what happens at the site that is told as events: stop, device, lease, effect, approval, permission, sign_in, wish, supply, power_off, rollback; nothing when not written"`

	agent.Status

	world   World
	version byte // of the protocol; the older one once the broker has refused the newer
	retry   time.Duration
	lease   time.Duration // of a move; the usual one where it is 0
	timing  timing

	mu     sync.Mutex
	bridge *bridge // of the connection; nil without one
}

// isWord reports whether text has 1 to 64 letters, digits, _, - and others.
func isWord(text, others string) bool {
	return text != "" && len(text) <= 64 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-"+others, r)
	})
}

// off is the word for no discovery.
const off = "off"

// Define implements agent.Defined.
func (a *Agent) Define() (agent.Definition, error) {
	wrong := func(key, format string, args ...any) (agent.Definition, error) {
		return agent.Definition{}, &agent.Mistake{Key: key, Err: fmt.Errorf(format, args...)}
	}
	u, err := url.Parse(a.Broker)
	switch {
	case a.Broker == supervised && (a.Plain || a.User != "" || a.PasswordFile != "" || a.CAFile != ""):
		return wrong("broker",
			"%s is told by Home Assistant, with user and password; leave plain, user, password_file and ca_file out", supervised)
	case a.Broker == supervised:
	case err == nil && u.User != nil:
		return wrong("broker", "a user has a key of its own, user:, and the password a file, "+
			"which password_file: names; leave them out of the URL")
	case err != nil || u.Hostname() == "" || !isPort(u.Port()) || u.Path != "" ||
		u.RawQuery != "" || u.Fragment != "" || len(a.Broker) > 256 ||
		u.Scheme != "mqtts" && u.Scheme != "mqtt":
		return wrong("broker", "%.80q is no broker such as mqtts://broker.example.org or mqtts://192.168.1.10:8883", a.Broker)
	case u.Scheme == "mqtt" && !a.Plain && !isLoopback(u.Hostname()):
		return wrong("broker", "mqtt:// to another machine can be read and changed by everybody on the way; write mqtts://, or plain: on beside it if that network is yours alone")
	case a.Plain && u.Scheme == "mqtts":
		return wrong("plain", "is for mqtt:// only; remove it")
	case a.PasswordFile != "" && !agent.IsFile(a.PasswordFile):
		return wrong("password_file",
			"takes the name of a file beside the configuration, such as mqtt.password, and never the password itself")
	case a.PasswordFile != "" && a.User == "":
		return wrong("user", "a password goes with a user; write user:, too")
	case len(a.User) > 128 || strings.ContainsFunc(a.User, func(r rune) bool { return r < ' ' || r > '~' }):
		return wrong("user", "takes at most 128 characters of ASCII")
	case a.CAFile != "" && (!agent.IsFile(a.CAFile) || u.Scheme == "mqtt"):
		return wrong("ca_file",
			"takes the name of a file beside the configuration, such as broker.pem, for a broker at mqtts://")
	}
	switch {
	case !isWord(a.Discovery, "") || a.Discovery == "on":
		return wrong("discovery", "takes one word such as homeassistant, or %s", off)
	case a.Every < time.Second || a.Every > time.Hour:
		return wrong("every", "takes 1s to 1h")
	case slices.ContainsFunc(a.About, func(kind string) bool { return !slices.Contains(occurrence.Kinds, occurrence.Kind(kind)) }):
		return wrong("about", "takes some of %v", occurrence.Kinds)
	case a.Hold < time.Minute || a.Hold > 168*time.Hour:
		return wrong("hold", "takes 1m to 168h")
	}
	d := agent.Definition{Powerless: "write what is shown and moved, such as may: 'read *, set hall/lamp max 5m'"}
	for _, of := range []struct {
		key  string
		list []string
	}{{"lights", a.Lights}, {"valves", a.Valves}} {
		for _, address := range of.list {
			dev, point, ok := strings.Cut(address, "/")
			if !ok || device.CheckName(dev) != nil || device.CheckName(point) != nil {
				return wrong(of.key, "%.60q is not the address of an output; write it like hall/lamp", address)
			}
			if of.key == "valves" && slices.Contains(a.Lights, address) {
				return wrong(of.key, "%s is one of lights, too; write it once", address)
			}
			if err := a.world.hasOutput(dev, address); err != nil {
				d.Doubts = append(d.Doubts, &agent.Mistake{Key: of.key, Err: err})
			} else {
				d.Calls = append(d.Calls,
					agent.Call{Key: of.key, Ask: agents.Ask{Op: agents.OpMove, Points: []string{address}, Effect: agents.Returns}})
			}
		}
	}
	if a.PasswordFile != "" {
		d.Secrets = append(d.Secrets, agent.Secret{Key: "password_file", File: a.PasswordFile})
	}
	return d, nil
}

// hasOutput returns an error where the configuration has no output of that address.
func (w World) hasOutput(dev, address string) error {
	if w.Points == nil || slices.Contains(w.Open, dev) {
		return nil
	}
	var outputs []string
	for _, p := range w.Points {
		if p.Kind.Output() {
			outputs = append(outputs, p.Point)
		}
	}
	if slices.Contains(outputs, address) {
		return nil
	}
	return fmt.Errorf("there is no output %.60q%s", address, device.Suggest(address, outputs, "output"))
}

// isPort reports whether text is a port; "" is the usual one.
func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && port > 0
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// Report implements agent.Reporting.
func (a *Agent) Report(ctx context.Context) agent.Report {
	r := a.Status.Report(ctx)
	a.mu.Lock()
	b := a.bridge
	a.mu.Unlock()
	if b != nil && r.State == agent.Idle {
		if n := b.holding(); n > 0 {
			r.State, r.Says = agent.Holding, fmt.Sprintf("%s, and holds %d outputs", r.Says, n)
		}
	}
	return r
}

// Run keeps a connection to the broker until ctx ends.
func (a *Agent) Run(ctx context.Context, self agents.Principal, site agents.Site) error {
	const unclaimed = "the site has no owner, and tells nothing before: agentsite claim"
	if a.AwaitOwner(ctx, a.world.Claimed, unclaimed) != nil {
		return nil
	}
	defer a.join()()
	for pause, last := a.retry, ""; ; {
		began := time.Now()
		a.Say(agent.Waiting, "it connects to the broker")
		err := a.connect(ctx, self, site)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > settled {
			pause = a.retry
		}
		var refused *packet.RefusedError
		switch {
		case errors.As(err, &refused) && refused.Version() && a.version == packet.V5:
			a.version = packet.V311
		case errors.As(err, &refused): // a wrong password does not become right by itself
			pause = max(pause, settled)
		}
		what := "the broker is not reached"
		if _, own := errors.AsType[*device.Fault](err); own {
			what = "the site refuses the bridge"
		}
		a.Say(agent.Waiting, "%s, and is tried again: %v", what, err)
		if text := err.Error(); text != last {
			last = text
			slog.Warn("MQTT: "+what, "err", err)
		}
		if device.Sleep(ctx, pause/2+rand.N(pause/2)) != nil {
			return nil
		}
		pause = min(2*pause, retryMax)
	}
}

// connect keeps one connection, and returns why it ended.
func (a *Agent) connect(ctx context.Context, self agents.Principal, site agents.Site) error {
	dialing, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	b, err := a.broker(dialing)
	if err != nil {
		return err
	}
	conn, err := a.dial(dialing, b)
	if err != nil {
		return outbound.Quiet(err, b.Host)
	}
	l, err := open(dialing, conn, a.version, packet.Hello{
		Client: a.world.ID, User: b.User, Password: b.Password, Seconds: uint16(usual.silence / time.Second),
		Longest: maxPacket,
		Will:    a.status(), Says: offline,
	}, a.timing)
	if err != nil {
		return err
	}
	whole := newBridge(a, self, site, l)
	a.setBridge(whole)
	defer a.setBridge(nil)
	return whole.run(ctx)
}

func (a *Agent) setBridge(b *bridge) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bridge = b
}

// broker returns the broker to connect to now.
func (a *Agent) broker(ctx context.Context) (b Broker, err error) {
	if a.Broker == supervised {
		if a.world.Supervised == nil {
			return b, fmt.Errorf("this site is not an app of Home Assistant, which would tell it of its broker; write broker: mqtts://HOST")
		}
		return a.world.Supervised(ctx)
	}
	u, err := url.Parse(a.Broker)
	if err != nil {
		return b, err
	}
	b = Broker{Host: u.Hostname(), User: a.User, Port: 1883, TLS: u.Scheme == "mqtts"}
	if b.TLS {
		b.Port = 8883
	}
	if u.Port() != "" {
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil {
			return b, err
		}
		b.Port = uint16(port)
	}
	if a.PasswordFile != "" {
		if b.Password, err = a.world.Secret(a.PasswordFile); err != nil {
			return b, fmt.Errorf("password_file: %w", err)
		}
	}
	return b, nil
}

// dial connects to the broker, with TLS unless the owner wrote that it has none.
func (a *Agent) dial(ctx context.Context, b Broker) (net.Conn, error) {
	d := &net.Dialer{KeepAlive: -1, Control: limitUntaken} // the protocol asks whether the broker is there
	address := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
	if !b.TLS {
		return d.DialContext(ctx, "tcp", address)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CAFile != "" {
		text, err := a.world.File(a.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca_file: there is no certificate in %s", a.CAFile)
		}
	}
	return (&tls.Dialer{NetDialer: d, Config: c}).DialContext(ctx, "tcp", address)
}

// base returns the prefix of the site's own topics.
func (a *Agent) base() string { return "agentsite/" + a.world.ID }

// status is the topic that says whether the site is there.
func (a *Agent) status() string { return a.base() + "/status" }
