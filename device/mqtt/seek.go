package mqtt

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/lan"
	"agentsite/device/mqtt/packet"
	"agentsite/device/ucum"
)

// Bounds of what is heard of one broker in a search. It is no part of the guard's process.
const (
	heardQuiet   = 2 * time.Second // without a message, all that it has kept has come
	heardMessage = 2 << 20
	heardBytes   = 8 << 20
	heardTopics  = 2000
	maxFound     = 200 // devices of a broker
	maxBrokers   = 8
	maxNumber    = 1e9 // limits beyond are none
)

// discoveryTopics are those where devices are described.
var discoveryTopics = []string{
	"zigbee2mqtt/bridge/devices", "tasmota/discovery/+/config", "tasmota/discovery/+/sensors",
	"homeassistant/+/+/config", "homeassistant/+/+/+/config", "shellies/+/online",
}

// seek finds devices behind the brokers that this process uses, and behind those of this machine and of the network
// that let everybody in.
func (all *brokers) seek(ctx context.Context) ([]driver.Found, error) {
	known := make(map[string]access) // by URL
	all.mu.Lock()
	for a := range all.all {
		known[a.url] = a
	}
	all.mu.Unlock()
	add := func(u string) {
		if _, there := known[u]; !there && len(known) < maxBrokers {
			known[u] = access{url: u}
		}
	}
	add("mqtt://127.0.0.1")
	instances, err := lan.Browse(ctx, "_mqtt._tcp")
	for _, i := range instances {
		host := i.Host
		if host == "" && len(i.Addresses) > 0 {
			host = i.Addresses[0].String()
		}
		if u := "mqtt://" + net.JoinHostPort(strings.TrimSuffix(host, "."), strconv.Itoa(int(i.Port))); isBroker(u) {
			add(strings.TrimSuffix(u, ":1883"))
		}
	}
	var (
		mu    sync.Mutex
		found []driver.Found
		ways  sync.WaitGroup
	)
	for _, a := range known {
		ways.Go(func() {
			heard, refused := listen(ctx, a)
			mu.Lock() // one at a time is decoded
			defer mu.Unlock()
			found = append(append(found, refused...), offers(a, heard)...)
		})
	}
	ways.Wait()
	slices.SortFunc(found, func(a, b driver.Found) int { return cmp.Compare(a.Where, b.Where) })
	return found, err
}

// isBroker reports whether an URL that was made of what the network says is one.
func isBroker(u string) bool {
	parsed, err := url.Parse(u)
	if err != nil || (&config{Broker: u}).validateBroker() != nil {
		return false
	}
	_, err = netip.ParseAddr(parsed.Hostname())
	return err == nil || strings.Trim(parsed.Hostname(), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == ""
}

// listen hears what a broker has kept about devices, by topic. One that is not reached, or lets nobody in, has none.
func listen(ctx context.Context, a access) (heard map[string][]byte, refused []driver.Found) {
	conn, err := dial(ctx, a)
	if err != nil {
		return nil, nil
	}
	defer conn.Close()
	hello := packet.Hello{Client: "agentsite-" + strconv.FormatUint(rand.Uint64(), 36), User: a.user, Seconds: 60}
	if a.password != "" {
		if hello.Password, err = a.password.Secret(); err != nil {
			return nil, nil
		}
	}
	in := bufio.NewReader(conn)
	_, err = packet.Greet(ctx, conn, in, packet.V311, hello, 1<<10)
	if why, is := errors.AsType[*packet.RefusedError](err); is && a.user == "" && (why.Code == 4 || why.Code == 5) {
		return nil, []driver.Found{{Where: a.url, What: "MQTT broker", Says: "it lets nobody in without a password; write " +
			"a device of driver mqtt with user and password_file"}}
	}
	if err != nil {
		return nil, nil
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := conn.Write(packet.AppendSubscribeAll(nil, packet.V311, 1, discoveryTopics)); err != nil {
		return nil, nil
	}
	heard = make(map[string][]byte)
	from := packet.Source{Conn: conn, In: in, Version: packet.V311, Limit: heardMessage, Rate: heardBytes >> 11, Silence: heardQuiet}
	for size := 0; size < heardBytes && len(heard) < heardTopics; {
		p, err := from.Next()
		if err != nil {
			break
		}
		if p.Kind == packet.Publish {
			size += len(p.Topic) + len(p.Payload)
			heard[p.Topic] = p.Payload
		}
	}
	conn.SetWriteDeadline(time.Now().Add(goodbye))
	conn.Write(packet.AppendDisconnect(nil))
	return heard, nil
}

// offers makes entries of what was heard.
func offers(a access, heard map[string][]byte) []driver.Found {
	var all []driver.Found
	zigbee := heard["zigbee2mqtt/bridge/devices"]
	all = append(all, offerZigbee(a, zigbee)...)
	for _, topic := range slices.Sorted(maps.Keys(heard)) {
		levels := strings.Split(topic, "/")
		switch {
		case strings.HasPrefix(topic, "tasmota/discovery/") && levels[len(levels)-1] == "config":
			all = append(all, offerTasmota(a, heard[topic], heard[strings.TrimSuffix(topic, "config")+"sensors"])...)
		case levels[0] == "shellies" && isName(levels[1]) && string(heard[topic]) == "true":
			o := offer{kind: "shelly", name: levels[1], every: "10m"}
			o.output("relay", "safe: off")
			all = append(all, o.found(a, "Shelly of the first generation", "a relay is offered; remove it where it has none")...)
		}
	}
	all = append(all, offerHomeAssistant(a, heard, zigbee != nil)...)
	return all[:min(len(all), maxFound)]
}

// offer is an entry in the making.
type offer struct {
	kind, name, every string
	extra             []string // keys of the device
	inputs, outputs   []string // points, each with its keys
	names             driver.Names
}

func (o *offer) input(name, keys string) {
	o.inputs = append(o.inputs, o.names.New(name, "input")+": { "+keys+" }")
}

func (o *offer) output(name, keys string) {
	o.outputs = append(o.outputs, o.names.New(name, "output")+": { "+keys+" }")
}

// found returns the entry; none where there is nothing to offer, or something cannot be written.
func (o offer) found(a access, what, says string) []driver.Found {
	if len(o.inputs)+len(o.outputs) == 0 || len(o.inputs)+len(o.outputs) > maxPoints {
		return nil
	}
	keys := []string{"driver: mqtt", "broker: " + quote(a.url)}
	if a.user != "" {
		keys = append(keys, "user: "+quote(a.user))
	}
	if a.password != "" {
		keys = append(keys, "password_file: "+strconv.Quote(string(a.password)))
	}
	if a.ca != "" {
		keys = append(keys, "ca_file: "+quote(a.ca))
	}
	if o.kind != "" {
		keys = append(keys, "kind: "+o.kind, "name: "+quote(o.name))
	}
	keys = append(append(keys, "every: "+o.every), o.extra...)
	if len(o.inputs) > 0 {
		keys = append(keys, "inputs: { "+strings.Join(o.inputs, ", ")+" }")
	}
	if len(o.outputs) > 0 {
		keys = append(keys, "outputs: { "+strings.Join(o.outputs, ", ")+" }")
	}
	name := cmp.Or(device.SuggestName(o.name), "mqtt-device")
	return []driver.Found{{
		Where: device.Clip(printable(o.name), 60) + " at " + a.url, What: device.Clip(printable(what), 80), Says: says,
		Name: name, YAML: "{ " + strings.Join(keys, ", ") + " }",
	}}
}

// printable drops what does not belong into a line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// quote writes a text for YAML.
func quote(text string) string {
	plain := strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-") == "" && text != "" &&
		(text[0] >= 'a' && text[0] <= 'z' || text[0] >= 'A' && text[0] <= 'Z') && len(text) > 5 // not on, null, 1e5
	if plain || strings.HasPrefix(text, "mqtt") && isBroker(text) {
		return text
	}
	return strconv.QuoteToASCII(text)
}

// isName reports whether a text of a description can be a name, a path or a topic of an entry.
func isName(text string) bool { return isWord(text) && !strings.ContainsAny(text, "\"'`{}[],;&|<>") }

// isWord reports whether a text of a description can be a value or a command of an entry.
func isWord(text string) bool {
	return text != "" && len(text) <= 120 && isPrintable([]byte(text)) && strings.IndexFunc(text, func(r rune) bool { return r > '~' || r == '\\' }) < 0
}

// usualRanges are the ranges of units for which devices say none.
var usualRanges = map[string]string{
	"Cel": "-40..125", "[degF]": "-40..257", "%": "0..100", "W": "-25000..25000", "kW": "-100..100", "kW.h": "0..1000000", "W.h": "0..1000000000",
	"V": "0..1000", "mV": "0..10000", "A": "-100..100", "mA": "-100000..100000", "lx": "0..200000", "hPa": "300..1200", "kPa": "30..120",
	"Pa": "30000..120000", "mm[Hg]": "225..825", "[in_i'Hg]": "9..33",
	"[ppm]": "0..10000", "[ppb]": "0..60000", "ug/m3": "0..10000", "Hz": "0..1000", "V.A": "0..25000",
}

// number makes an input of a number; false where its unit is not known. min and max are what the device says, if it
// does.
func (o *offer) number(name, where, unit string, low, high *float64) bool {
	code, _ := ucum.Known(unit)
	limits, known := usualRanges[code]
	if low != nil && high != nil && *low < *high && *low >= -maxNumber && *high <= maxNumber {
		limits, known = device.Range{Min: *low, Max: *high}.String(), true
	}
	if !known || device.CheckName(name) != nil {
		return false
	}
	if code != "" {
		code = ", unit: " + strconv.Quote(code)
	}
	o.input(name, where+code+", range: "+limits)
	return true
}

// shallow reports whether no list or object is nested deeper than maxDepth.
func shallow(doc []byte) bool {
	depth, text := 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return true
}
