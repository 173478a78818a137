package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"agentsite/agents/rule/calendar"
	"agentsite/device"
	"agentsite/device/driver"
)

// Site is a parsed file, checked as far as possible without hardware.
type Site struct {
	Name     string
	Watchdog string          // the board's own, as a file; "" for none
	Place    *calendar.Place // nil where it is not written
	Holidays calendar.Holidays
	Owner    string // a did:key, which owns a site without an owner; "" for none
	Claim    string // the secret to claim it by, in place of one that the site makes; "" for none
	// LastKnown uses the last known time after a start, until a network or an owner sets the
	// time.
	LastKnown bool
	HTTP      HTTP
	Protocols []string // that HTTP speaks beside MCP, of Protocols
	Discovery Discovery
	WoT       WoT
	Internet  *Internet // nil without the section
	History   History
	Approvals Approvals
	Devices   []Device // in file order
	Agents    []Agent  // in file order, with those that have a section of their own
	Simulated bool     // the devices are fakes
}

// sections are the keys at the left margin, for suggestions.
var sections = []string{
	"site", "owner", "claim", "clock", "http", "protocols", "wot", "discovery", "internet", "history", "approvals",
	"devices", "agents",
	AIOS, MQTT, Notify, Export, Power,
}

// lastKnown is the only value of clock.
const lastKnown = "last-known"

var (
	ownerForm = lazy(ownerPattern) // a did:key of an Ed25519 key
	claimForm = lazy(claimPattern) // 128 bits in base64url
	clockForm = lazy(`^` + lastKnown + `$`)
)

// siteSection is the site section.
type siteSection struct {
	Name     string   `json:"name" jsonschema:"the name of the site on the network: a-z, 0-9, _ and -, at most 24"`
	Watchdog string   `json:"watchdog,omitempty" jsonschema:"the board's own watchdog, such as /dev/watchdog, which restarts a board whose outputs nobody drives any more; none when not written"`
	Place    string   `json:"place,omitempty" jsonschema:"where the site is, as latitude and longitude in degrees, such as 52.52, 13.40: for rules that go by sunrise and sunset"`
	Holidays []string `json:"holidays,omitempty" jsonschema:"days that conditions of rules call holiday, such as [dec 25, 2027-03-26, dec 31..jan 1]"`
}

// DefaultFile is the configuration file in the working folder that commands use by default.
const DefaultFile = "agentsite.yaml"

// ReadFile returns the path and the text of the configuration at path, unparsed. "" is
// DefaultFile, whose absence is no error: then the text is nil. An error is an *Error, in
// which errors.Is finds fs.ErrNotExist.
func ReadFile(path string) (file string, text []byte, err error) {
	file = cmp.Or(path, DefaultFile)
	f, err := os.Open(file)
	if path == "" && errors.Is(err, fs.ErrNotExist) {
		return file, nil, nil
	}
	if err == nil {
		defer f.Close()
		var b bytes.Buffer
		if info, err := f.Stat(); err == nil {
			b.Grow(int(min(info.Size(), MaxBytes)) + bytes.MinRead)
		}
		_, err = b.ReadFrom(io.LimitReader(f, MaxBytes+1)) // Parse refuses more
		text = b.Bytes()
	}
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) { // which repeats the name
			err = path.Err
		}
		err = fmt.Errorf("the configuration cannot be read (%w); check its name and permissions", err)
		return file, nil, &Error{File: file, Err: err}
	}
	return file, text, nil
}

// LoadFile is ReadFile and Parse. Without a file the site is empty.
func LoadFile(path string, drivers []driver.Driver) (site *Site, file string, text []byte, err error) {
	file, text, err = ReadFile(path)
	if err != nil || text == nil {
		return &Site{}, file, nil, err
	}
	site, err = Parse(file, text, drivers)
	return site, file, text, err
}

// Parse parses the text of a file; errors name it name. With an error it returns no site. The
// error joins up to ten *Error, in the order of the file.
func Parse(name string, text []byte, drivers []driver.Driver) (*Site, error) {
	root, src, err := parseTree(name, text)
	if err != nil {
		return nil, err
	}
	r := &report{src: src}
	site := &Site{
		HTTP: HTTP{Listen: DefaultListen, HTTPS: DefaultHTTPS}, Protocols: DefaultProtocols,
		Discovery: Discovery{MDNS: true}, History: DefaultHistory, Approvals: Approvals{Wait: minWait},
	}
	if root.shape != mapping {
		r.fail(root.at, "", "a site is written as keys such as \"site: { name: my-site }\", not %s", root.what())
		return nil, r.err()
	}
	for _, e := range root.entries {
		switch e.key {
		case "site":
			r.about(e, site)
		case "owner":
			site.Owner = r.word(e, ownerForm(), "takes the public half of an owner's key, such as did:key:z6Mk…: "+
				"agentsite identity --card - prints yours")
		case "claim":
			site.Claim = r.word(e, claimForm(), "takes a secret of 22 random letters, digits, - and _; "+
				"openssl rand -base64 16 | tr +/ -_ | tr -d = makes one")
		case "clock":
			site.LastKnown = r.word(e, clockForm(), "takes "+lastKnown+": after a start the site goes by the last known time "+
				"until a network or an owner tells it. Without the key, permissions wait for that") != ""
		case "http":
			r.section(e, &site.HTTP)
			r.http(e)
			if at, ok := find(e.value.entries, "oauth"); ok && site.HTTP.OAuth && site.HTTP.HTTPS == ListenNone {
				r.fail(at.at, "http", "oauth needs HTTPS, which https: %s turns off", ListenNone)
			}
		case "protocols":
			site.Protocols = r.protocols(e)
		case "wot":
			r.section(e, &site.WoT)
			r.wot(e)
		case "discovery":
			r.section(e, &site.Discovery)
		case "internet":
			site.Internet = r.internet(e)
		case "history":
			r.section(e, &site.History)
			r.history(e, site.History)
		case "approvals":
			r.section(e, &site.Approvals)
			r.approvals(e, site.Approvals)
		case "devices":
			site.Devices = r.devices(e, drivers)
		case "agents":
			site.Agents = append(site.Agents, r.agents(e)...)
		case AIOS, MQTT, Notify, Export, Power, HomeAssistant:
			site.Agents = append(site.Agents, r.sectioned(e)...)
		default:
			r.fail(e.at, "", "there is no section %q%s", clip(e.key), sectionHint(e))
		}
	}
	if e, ok := find(root.entries, "http"); ok {
		if at, ok := find(e.value.entries, "oauth"); ok && site.Internet != nil && site.Internet.Public != "" {
			r.fail(at.at, "http", "oauth is for a site without a public name: under internet: public, programs sign in there, "+
				"and nowhere else; leave it out")
		}
		if at, ok := find(e.value.entries, "callers"); ok && !slices.Contains(site.Protocols, "anp") {
			r.fail(
				at.at, "http", "callers is for requests by ANP, which this site does not speak; write it under protocols:, too",
			)
		}
	}
	if e, ok := find(root.entries, "wot"); ok && !slices.Contains(site.Protocols, "wot") {
		r.fail(e.at, "wot", "is for a protocol that this site does not speak; write wot under protocols:, too")
	}
	if _, ok := find(root.entries, "site"); !ok {
		r.fail(pos{1, 1}, "", "the section site is missing; add \"site: { name: my-site }\"")
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	site.simulate(drivers, root)
	return site, nil
}

// sectionHint returns the hint for an unknown section, which may be an entry that is not indented.
func sectionHint(e entry) string {
	for _, of := range [][2]string{{"driver", "devices"}, {"kind", "agents"}} {
		if _, ok := find(e.value.entries, of[0]); ok {
			return "; indent it with spaces, below " + of[1] + ":"
		}
	}
	switch strings.ToLower(e.key) {
	case "sensors", "sensor", "outputs", "output", "switch", "things", "components", "parts":
		return "; write devices"
	case "automations", "automation", "rules", "rule", "routines", "scripts":
		return "; write agents"
	}
	return device.Suggest(e.key, sections, "section")
}

// word returns the value of a key at the left margin; what it takes is said of one of another form.
func (r *report) word(e entry, form *regexp.Regexp, takes string) string {
	if e.value.shape != scalar || !form.MatchString(e.value.text) {
		r.fail(e.value.at, e.key, "%s", takes)
	}
	return e.value.text
}

// section decodes the keys under e into a struct.
func (r *report) section(e entry, into any) {
	v := reflect.ValueOf(into).Elem()
	d := decoder{report: r, where: e.key}
	if d.areKeys(e.value, keysOf(v.Type())[0]+": …") {
		d.fields(e.at, "", e.value.entries, v)
	}
}

// scalar returns the place and the text of a key of a section that is written as a scalar.
func (e entry) scalar(key string) (at pos, text string, ok bool) {
	found, ok := find(e.value.entries, key)
	if !ok || found.value.shape != scalar {
		return pos{}, "", false
	}
	return found.value.at, found.value.text, true
}

// scalars returns the items of a list of a section that are written as scalars; more than most are a
// mistake, unless that is 0.
func (r *report) scalars(e entry, key string, most int) (all []*node) {
	list, ok := find(e.value.entries, key)
	if !ok {
		return nil
	}
	if n := len(list.value.items()); most > 0 && n > most {
		r.fail(list.value.at, e.key, "%s: %d are enough; leave out the others", key, most)
	}
	for _, item := range list.value.items() {
		if item.value.shape == scalar {
			all = append(all, item.value)
		}
	}
	return all
}

// about decodes the section site.
func (r *report) about(e entry, site *Site) {
	var a siteSection
	r.section(e, &a)
	site.Name, site.Watchdog = a.Name, a.Watchdog
	if at, name, ok := e.scalar("name"); ok {
		if err := device.CheckName(name); err != nil {
			r.fail(at, "site", "%w", err)
		}
	}
	if at, dog, ok := e.scalar("watchdog"); ok && !strings.HasPrefix(dog, "/") {
		r.fail(at, "site", "watchdog takes a file such as /dev/watchdog, not %q", clip(dog))
	}
	if at, text, ok := e.scalar("place"); ok {
		place, err := calendar.ParsePlace(text)
		if err != nil {
			r.fail(at, "site", "place: %w", err)
		}
		site.Place = &place
	}
	if list, ok := find(e.value.entries, "holidays"); ok && a.Holidays != nil {
		var err error
		if site.Holidays, err = calendar.ParseHolidays(a.Holidays); err != nil {
			r.fail(list.value.at, "site", "holidays: %w", err)
		}
	}
}

// devices decodes the section of that name. It may be empty, as after the last device was
// commented out.
func (r *report) devices(e entry, drivers []driver.Driver) (devices []Device) {
	all := e.value.entries
	i := slices.IndexFunc(all, func(e entry) bool { return e.key == "driver" && e.value.shape == scalar })
	if i > 0 && e.value.shape == mapping && all[i-1].value.shape == empty {
		r.fail(all[i].at, "devices", "indent driver, and the keys below it, further than %s", all[i-1].key)
		return nil
	}
	for _, e := range (decoder{report: r, where: "devices"}).named(e, "device", "pump: { driver: … }") {
		if d, ok := r.device(e, drivers); ok {
			devices = append(devices, d)
		}
	}
	r.claims(devices)
	if len(r.errs) == 0 { // otherwise devices are missing
		shareProcess(devices)
		r.relations(devices)
	}
	return devices
}
