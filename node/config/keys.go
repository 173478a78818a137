package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// Key is a key that an entry of a device may have.
type Key struct {
	Key      string `json:"key"`
	Required bool   `json:"required,omitzero"`
	Takes    string `json:"takes"`            // "a number", "on or off", "a time such as 10s"
	Default  string `json:"default,omitzero"` // as written in YAML
	Says     string `json:"says,omitzero"`
}

// String describes the key in one line for people.
func (k Key) String() string {
	text := k.Key + " (" + k.Takes
	switch {
	case k.Required:
		text += ", always needed"
	case k.Default != "" && !strings.Contains(k.Says, "when not written"):
		text += ", " + k.Default + " when not written"
	}
	return text + "): " + k.Says
}

// Keys returns the keys of a driver in their order, those below another key with its name, such as
// outputs.NAME.pin.
func Keys(d driver.Driver) []Key {
	every := keysBelow("", reflect.ValueOf(commonKeys{Every: DefaultEvery}))[1:] // after driver
	return append(keysBelow("", reflect.Indirect(reflect.ValueOf(d.Config()))), every...)
}

// PointKeys returns the keys for the points of a description, which may be empty: those of outputs and
// those of measurements.
func PointKeys(desc device.Description) []Key {
	var all []Key
	levels := slices.ContainsFunc(desc.Points, func(p device.Point) bool { return p.Kind == device.KindLevel })
	for _, set := range keysFor(desc) {
		if len(set.points) == 0 {
			continue
		}
		for _, k := range keysBelow("", reflect.ValueOf(pointPart{})) {
			if slices.Contains(set.keys, k.Key) &&
				(levels || !slices.Contains([]string{"range", "slew", "ramp_to_safe"}, k.Key)) {
				all = append(all, k)
			}
		}
	}
	return all
}

// wraps has what stands for the items of a value, in the name of a key below it.
var wraps = map[reflect.Kind]string{reflect.Map: ".NAME", reflect.Slice: "[]", reflect.Pointer: ""}

func keysBelow(path string, v reflect.Value) []Key {
	var all []Key
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.index)
		k := Key{Key: join(path, f.key), Required: f.required(v), Takes: takes(value.Type()), Says: f.doc}
		below, name := value.Type(), k.Key
		for suffix, ok := wraps[below.Kind()]; ok; suffix, ok = wraps[below.Kind()] {
			below, name = below.Elem(), name+suffix
		}
		switch {
		case len(keysIn(below)) > 0:
			inner := value
			if inner.Type() != below {
				inner = reflect.Zero(below)
			}
			all = append(append(all, k), keysBelow(name, inner)...)
			continue
		case !value.IsZero() || value.Kind() == reflect.Bool && !k.Required:
			k.Default = written(value)
		}
		all = append(all, k)
	}
	return all
}

// keysIn returns the keys of a type that is written as keys; none for those with a form of their own.
func keysIn(t reflect.Type) []field {
	if t == valueType || t == rangeType || reflect.PointerTo(t).Implements(textUnmarshaler) {
		return nil
	}
	return fieldsOf(t)
}

// written returns a default as in YAML.
func written(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Uint8, reflect.Uint16: // addresses and registers
		return fmt.Sprintf("%#02x", v.Uint())
	case reflect.Bool:
		return device.Bool(v.Bool()).String()
	case reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = written(v.Index(i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	if d, ok := v.Interface().(time.Duration); ok {
		text := strings.ReplaceAll(d.String(), "µ", "u")
		for _, zero := range []string{"m0s", "h0m"} { // 5m0s
			if strings.HasSuffix(text, zero) {
				text = text[:len(text)-2]
			}
		}
		return text
	}
	return fmt.Sprint(plain(v.Interface()))
}

// takes says what a value of the type is written as.
func takes(t reflect.Type) string {
	switch {
	case t == durationType || t == reflect.TypeFor[limit]():
		return "a time such as 10s"
	case t == rangeType:
		return "two numbers such as 0..90"
	case t == valueType:
		return "on, off or a number"
	case t.Kind() == reflect.Pointer:
		return takes(t.Elem())
	case reflect.PointerTo(t).Implements(textUnmarshaler):
		return "text"
	}
	switch kind := t.Kind(); {
	case kind == reflect.Bool:
		return "on or off"
	case kind == reflect.Float32 || kind == reflect.Float64:
		return "a number"
	case kind >= reflect.Int && kind <= reflect.Uint64:
		return "a whole number"
	case kind == reflect.Slice:
		return "a list"
	case kind == reflect.Struct || kind == reflect.Map:
		return "keys"
	}
	return "text"
}

// otherWords has the words of other programs for our keys, in small letters and without _ and -. The likelier
// of two keys for one word comes first. A key is only suggested where it is known.
var otherWords = []struct{ key, words string }{
	{"every", "interval updateinterval scaninterval period poll pollinginterval refresh"},
	{"active_low", "inverted invert inverse lowactive activehigh invertlogic"},
	{"driver", "platform type model chip component"},
	{"pin", "gpio gpiopin line bcm port data datapin"},
	{"address", "addr i2caddress i2caddr"},
	{"port", "spi serial uart device tty"},
	{"baud", "baudrate"},
	{"trigger", "trig triggerpin"},
	{"echo", "echopin"},
	{"clock", "clk sck"},
	{"pull", "pulldown pullup pullupdown"},
	{"debounce", "bouncetime delay filters"},
	{"lamps", "numleds ledcount leds count pixels length"},
	{"order", "rgborder colororder"},
	{"safe", "default initial restoremode failsafe off state"},
	{"max_on", "timeout autooff maxruntime maxtime ontime"},
	{"min_off", "cooldown pause"},
	{"range", "min max minvalue maxvalue minangle maxangle limits"},
	{"unit", "unitofmeasurement units"},
	{"offset", "calibration correction"},
	{"frequency", "freq hz pwmfrequency"},
	{"interlock", "interlocks"},
	{"confirm", "confirmation"},
	{"requires", "depends condition"},
	{"at", "schedule cron time"},
	{"may", "permission permissions allow"},
	{"description", "name"},
	{"data", "datapin dt dout din dio"},
	{"bus", "port i2cbus i2c i2cid"},
	{"do", "then action actions"},
	{"scale", "filters multiply factor multiplier calibration"},
	{"width", "resolution size"},
	{"if", "condition conditions"},
	{"columns", "size dimensions cols"},
	{"hold", "then action actions"},
	{"when", "condition conditions trigger triggers"},
	{"kind", "type"},
	{"pin_a", "clk"},
	{"pin_b", "dt"},
	{"height", "resolution size dimensions"},
	{"clamp", "min max minvalue maxvalue"},
	{"on", "trigger triggers"},
	{"rows", "size dimensions lines"},
	{"gain", "resolution"},
	{"channels", "resolution"},
	{"digits", "size"},
}

// meantBy returns the keys that another program's word may stand for.
func meantBy(word string) (keys []string) {
	word = strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(word))
	for _, o := range otherWords {
		if slices.Contains(strings.Fields(o.words), word) {
			keys = append(keys, o.key)
		}
	}
	return keys
}

// suggestKey returns the hint for a key that is none of own and also, and the keys that it may be meant
// for.
func (d decoder) suggestKey(key string, own, also []string) (hint string, meant []string) {
	if d.of != nil {
		if advice := d.of.Lacks[key]; advice != "" {
			return "; " + advice, own
		}
	}
	known := slices.Concat(own, also)
	synonyms := meantBy(key)
	for _, k := range synonyms {
		if slices.Contains(known, k) {
			meant = append(meant, k)
		}
	}
	if len(meant) > 0 {
		return "; write " + strings.Join(meant, " or "), meant
	}
	if len(synonyms) == 0 {
		for _, k := range known {
			if device.Suggest(key, []string{k}, "") != "" {
				meant = append(meant, k)
			}
		}
	}
	if len(meant) > 0 {
		return device.Suggest(key, known, ""), meant
	}
	if d.of == nil || len(own) == 0 {
		return device.Suggest("", known, "key"), nil
	}
	return fmt.Sprintf("; the keys of %s are %s; agentsite drivers %[1]s explains them",
		d.of.Name, strings.Join(own, ", ")), nil
}
