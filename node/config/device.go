package config

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// The default and the bounds of the key every.
const (
	DefaultEvery = 10 * time.Second
	minEvery     = 100 * time.Millisecond
	maxEvery     = 24 * time.Hour
)

// Device is one entry of the devices section.
type Device struct {
	Name   string
	Driver string
	Every  time.Duration // how often a sensor is read
	Config driver.Config // the driver's own keys, decoded and validated
	// BesideOutputs is set if it needs a part that only one process can open, and a device with outputs needs it.
	BesideOutputs bool

	src     *source
	at      pos // of the name
	entries []entry
	driver  []entry       // with the driver's own keys
	written []pointConfig // the owner's keys about points: the device's, then each point's
	files   []file        // that the driver reads
}

// commonKeys holds the keys that are this package's own in every device.
type commonKeys struct {
	Driver string        `json:"driver" jsonschema:"what kind of device this is"`
	Every  time.Duration `json:"every,omitempty" jsonschema:"how often a sensor is asked, 100ms to 24h; 10s when not written"`
}

const pointsKey = "points"

// ownKeys never reach a driver.
var ownKeys = append(keysOf(reflect.TypeFor[commonKeys]()), pointsKey)

// device decodes one entry; ok is false where its driver is not known, so that nothing else
// can be checked.
func (r *report) device(e entry, drivers []driver.Driver) (_ Device, ok bool) {
	d := decoder{report: r, where: e.key}
	if !d.areKeys(e.value, "driver: …") {
		return Device{}, false
	}
	entries := e.value.entries
	if _, written := find(entries, "driver"); !written {
		for _, e := range entries {
			if slices.Contains(meantBy(e.key), "driver") && e.value.shape == scalar {
				d.fail(e.at, "there is no key %q here; write driver", e.key)
				return Device{}, false
			}
		}
	}
	own := commonKeys{Every: DefaultEvery}
	d.fields(e.at, "", only(entries, "driver", "every"), reflect.ValueOf(&own).Elem())
	if every, ok := find(entries, "every"); ok && (own.Every < minEvery || own.Every > maxEvery) {
		d.fail(every.value.at, "every takes 100ms to 24h; %s is outside", every.value.text)
	}
	drv, ok := driver.Find(drivers, own.Driver)
	if !ok {
		if name, written := find(entries, "driver"); written && name.value.shape == scalar {
			d.fail(name.value.at, "there is no driver %q%s", clip(own.Driver), DriverHint(own.Driver, drivers))
		}
		return Device{}, false
	}
	d.of = &drv
	out := Device{
		Name: e.key, Driver: drv.Name, Every: own.Every, Config: drv.Config(), src: r.src, at: e.at, entries: entries,
	}
	before := len(r.errs)
	d.parts(&out)
	if len(r.errs) == before {
		out.check(r)
	}
	return out, true
}

// networks are names of integrations of other programs.
var networks = []string{"zwave"}

// DriverHint returns the end of an error about an unknown driver: what to write for it.
func DriverHint(name string, drivers []driver.Driver) string {
	if named := driver.Named(drivers, name); len(named) > 0 {
		return "; write driver: " + strings.Join(driverNames(named), " or driver: ")
	}
	for _, d := range drivers {
		if d.Instead == nil {
			continue
		}
		if says := d.Instead(name); says != "" {
			return "; " + says
		}
	}
	if slices.Contains(networks, strings.ToLower(name)) {
		return "; a device is a part that is wired to this board, not one that is reached by " + name
	}
	return cmp.Or(device.Suggest(name, driverNames(drivers), ""), "; agentsite drivers lists all")
}

// parts separates the driver's keys from those about points, and decodes both.
func (d decoder) parts(out *Device) {
	config := reflect.Indirect(reflect.ValueOf(out.Config))
	driverKeys := keysOf(config.Type())
	var forDriver, forPoint []entry
	for _, e := range out.entries {
		switch {
		case slices.Contains(ownKeys, e.key):
		case slices.Contains(pointKeys, e.key) && !slices.Contains(driverKeys, e.key):
			forPoint = append(forPoint, e)
		default:
			forDriver = append(forDriver, e)
		}
	}
	out.driver = forDriver
	d.files = &out.files
	d.fields(out.at, "", forDriver, config, append(ownKeys, pointKeys...)...)
	d.files = nil
	out.written = append(out.written, d.point("", out.at, forPoint))
	if points, ok := find(out.entries, pointsKey); ok {
		out.written = append(out.written, d.points(points)...)
	}
}

// points decodes the keys per point.
func (d decoder) points(points entry) []pointConfig {
	if points.value.shape != mapping {
		d.fail(points.value.at, "points expects a name per point, such as \"heater: { safe: off }\", not %s",
			points.value.what())
		return nil
	}
	var all []pointConfig
	for _, e := range points.value.entries {
		p := decoder{report: d.report, where: device.Address(d.where, clip(e.key))}
		if err := device.CheckName(e.key); err != nil {
			d.fail(e.at, "%w", err)
			continue
		}
		if p.areKeys(e.value, "safe: off") {
			all = append(all, p.point(e.key, e.at, e.value.entries))
		}
	}
	return all
}

// check calls the driver's validation, which needs no hardware.
func (d Device) check(r *report) {
	if v, ok := d.Config.(driver.Validator); ok {
		if err := v.Validate(); err != nil {
			key, _, _ := strings.Cut(err.Error(), ":") // as in "outputs.fan.pin: …"
			r.fail(placeOf(key, d.at, d.entries), d.Name, "%w", err)
			return
		}
	}
	if desc, ok := d.Config.(driver.Describer); ok {
		d.points(r, desc.Describe())
	}
}

// placeOf returns the place of the value at a path such as steps[2].if below entries, or of the nearest
// around it; at is the place of the entries.
func placeOf(path string, at pos, entries []entry) pos {
	for part := range strings.SplitSeq(path, ".") {
		name, index, isItem := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		e, ok := find(entries, name)
		if !ok {
			break
		}
		value := e.value
		if i, err := strconv.Atoi(index); isItem && err == nil && i >= 0 && i < len(value.items()) {
			value = value.entries[i].value
		}
		at, entries = value.at, value.entries
	}
	return at
}

// Errorf returns an error about a key of a point that is found after Parse. It shows the line
// of the key, or else of the point, or else of the device; point and key may be "". The text
// has to name the device. A %w keeps its cause.
func (d Device) Errorf(point, key, format string, args ...any) error {
	return d.src.errorf(d.place(point, key), format, args...)
}

func (d Device) place(point, key string) pos {
	at := d.at
	if points, ok := find(d.entries, pointsKey); ok {
		if p, ok := find(points.value.entries, point); ok {
			if e, ok := find(p.value.entries, key); ok {
				return e.at
			}
			at = p.at
		}
	}
	if e, ok := find(d.entries, key); ok {
		return e.at
	}
	return at
}

// Period returns the time in which a new reading is expected: every, or a third of what the driver's readings last.
func (d Device) Period() time.Duration {
	if l, ok := d.Config.(driver.Lasting); ok {
		return max(d.Every, l.GoodFor()/3)
	}
	return d.Every
}

// Same reports whether d and e are equal, with the content of their files, whatever their place in the file and the
// order of their keys. Defaults that follow from another device count too.
func (d Device) Same(e Device) bool {
	return d.Name == e.Name && d.BesideOutputs == e.BesideOutputs && sameEntries(d.entries,
		e.entries) && maps.Equal(d.ages(), e.ages())
}

// SameDriver reports whether the drivers, their keys and the content of their files are equal in d and e: what the
// outputs may do, and how often a sensor is read, may differ.
func (d Device) SameDriver(e Device) bool {
	return d.Name == e.Name && d.Driver == e.Driver && sameEntries(d.driver, e.driver)
}

// ages returns the max_age of the outputs' requirements, by the outputs' names.
func (d Device) ages() map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, w := range d.written {
		if w.Requires != nil {
			all[w.point] = w.Requires.MaxAge
		}
	}
	return all
}

func sameEntries(a, b []entry) bool { return canonical(a) == canonical(b) }

// canonical returns a text that is equal for entries that say the same, in any order of their keys and
// anywhere in a file.
func canonical(entries []entry) string {
	var b strings.Builder
	writeCanonical(&b, entries)
	return b.String()
}

func writeCanonical(b *strings.Builder, entries []entry) {
	sorted := slices.SortedFunc(slices.Values(entries), func(x, y entry) int { return strings.Compare(x.key, y.key) })
	for _, e := range sorted {
		fmt.Fprintf(b, "%d:%s", len(e.key), e.key)
		e.value.writeCanonical(b)
	}
}

func (n *node) writeCanonical(b *strings.Builder) {
	fmt.Fprintf(b, "(%v%d:%s%s", n.shape, len(n.text), n.text, n.digest)
	if n.shape == mapping {
		writeCanonical(b, n.entries)
	}
	for _, item := range n.items() {
		item.value.writeCanonical(b)
	}
	b.WriteByte(')')
}

// only returns the entries with those keys.
func only(entries []entry, keys ...string) []entry {
	var kept []entry
	for _, e := range entries {
		if slices.Contains(keys, e.key) {
			kept = append(kept, e)
		}
	}
	return kept
}

func driverNames(drivers []driver.Driver) []string {
	names := make([]string, len(drivers))
	for i, d := range drivers {
		names[i] = d.Name
	}
	return names
}
