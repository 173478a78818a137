package device

import (
	"cmp"
	"math"
	"strings"
)

// Kind says what a point is, and so which operations apply to it.
type Kind string

const (
	KindMeasurement Kind = "measurement" // a number with a unit
	KindState       Kind = "state"       // a read-only bool, or one text of Point.Values
	KindSwitch      Kind = "switch"      // a bool output
	KindLevel       Kind = "level"       // a number output within Point.Range
	KindEvent       Kind = "event"       // edges: a button, a motion sensor
	KindText        Kind = "text"        // a display
	KindImage       Kind = "image"       // a camera
)

// Output reports whether points of this kind move something, and so belong to the guard.
// Displays and cameras are not outputs.
func (k Kind) Output() bool { return k == KindSwitch || k == KindLevel }

// Range is a closed interval in the unit of its point.
type Range struct{ Min, Max float64 }

func (r Range) Contains(n float64) bool { return n >= r.Min && n <= r.Max }

func (r Range) String() string { return Number(r.Min).String() + ".." + Number(r.Max).String() }

// Point is one named value of a device.
type Point struct {
	Name        string
	Kind        Kind
	Unit        string   // a UCUM code (Cel, %, Pa, lx, V, s, By); "" where there is none
	Description string   // one short line, for people and models
	Title       string   // a name for people, from the configuration; "" where there is none
	Range       Range    // of a Level: its possible values, required; else the measuring range, optional
	Safe        Value    // an output: the value that does no harm; the configuration may replace it
	Values      []string // a State that is a text: all it can be
}

// Description describes a device and its points; it is constant.
type Description struct {
	Model  string // a part or product: "BME280", "simulated greenhouse"
	Points []Point
}

// Point returns the point with that name.
func (d Description) Point(name string) (Point, bool) {
	for _, p := range d.Points {
		if p.Name == name {
			return p, true
		}
	}
	return Point{}, false
}

// Validate reports the first violation of the contract in d: a bad name, a name used twice, an
// output without a safe value, a level without a range.
func (d Description) Validate() error {
	seen := make(map[string]bool, len(d.Points))
	for _, p := range d.Points {
		if err := CheckName(p.Name); err != nil {
			return err
		}
		if seen[p.Name] {
			return Faultf(Invalid, "point %s is described twice", p.Name)
		}
		seen[p.Name] = true
		if err := p.validate(); err != nil {
			return err
		}
	}
	return nil
}

func (p Point) validate() error {
	switch p.Kind {
	case KindMeasurement, KindState, KindEvent, KindText, KindImage:
		return nil
	case KindSwitch:
		if p.Safe.Type() != TypeBool {
			return Faultf(Invalid, "safe: %s needs a safe value, off or on", p.Name)
		}
		return nil
	case KindLevel:
		if math.IsNaN(p.Range.Min) || math.IsNaN(p.Range.Max) || p.Range.Min >= p.Range.Max ||
			math.IsInf(p.Range.Min, 0) || math.IsInf(p.Range.Max, 0) {
			return Faultf(Invalid, "level %s needs a range, such as 0..100", p.Name)
		}
		if p.Safe.Type() != TypeNumber || !p.Range.Contains(p.Safe.Number()) {
			return Faultf(Invalid, "safe: %s needs a safe value within %s", p.Name, p.Range)
		}
		return nil
	}
	return Faultf(Invalid, "point %s has the unknown kind %q", p.Name, p.Kind)
}

// Accepts reports why the output p cannot have a value.
func (p Point) Accepts(v Value) error {
	switch {
	case p.Kind == KindSwitch && v.Type() != TypeBool:
		return Faultf(Invalid, "%s is a switch: say true or false", p.Name)
	case p.Kind == KindLevel && (v.Type() != TypeNumber || !v.Finite()):
		return Faultf(Invalid, "%s takes a number within %s", p.Name, p.Range)
	case p.Kind == KindLevel && !p.Range.Contains(v.Number()):
		return Faultf(Invalid, "%s takes %s; %v is outside", p.Name, p.Range, v)
	}
	return nil
}

// maxName and nameLetters bound the names of sites, devices and points.
const (
	maxName     = 24
	nameLetters = "abcdefghijklmnopqrstuvwxyz0123456789_-"
)

// CheckName accepts [a-z0-9_-]{1,24}, the names of sites, devices and points. Its fault
// for any other name suggests a valid one.
func CheckName(name string) error {
	if name != "" && len(name) <= maxName && strings.Trim(name, nameLetters) == "" {
		return nil
	}
	could := cmp.Or(SuggestName(name), "device-1")
	return Faultf(Invalid, "%q is not a name: use a-z, 0-9, _ and -, at most %d of them, for example %q", Clip(name, 60), maxName, could)
}

// plainLetters replaces letters of European languages by how they are written without their marks.
var plainLetters = strings.NewReplacer(
	"ä", "ae", "ö", "oe", "ü", "ue", "ß", "ss", "æ", "ae", "ø", "oe", "œ", "oe", "å", "aa", "ð", "d", "þ", "th",
	"á", "a", "à", "a", "â", "a", "ã", "a", "ă", "a", "ą", "a", "ç", "c", "ć", "c", "č", "c", "ď", "d", "é", "e", "è", "e", "ê", "e", "ë", "e",
	"ě", "e", "ę", "e", "í", "i", "ì", "i", "î", "i", "ï", "i", "ı", "i", "ł", "l", "ñ", "n", "ń", "n", "ň", "n", "ó", "o", "ò", "o", "ô", "o",
	"õ", "o", "ő", "oe", "ř", "r", "ś", "s", "š", "s", "ş", "s", "ș", "s", "ť", "t", "ț", "t", "ú", "u", "ù", "u", "û", "u", "ů", "u", "ű", "ue",
	"ý", "y", "ź", "z", "ż", "z", "ž", "z", "ğ", "g",
)

// SuggestName returns the nearest valid name to name, or "". It begins with no -, by which a command line would take it
// for an option.
func SuggestName(name string) string {
	var b strings.Builder
	for _, r := range plainLetters.Replace(strings.ToLower(name)) {
		if b.Len() == maxName {
			break
		}
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		case r == ' ', r == '.', r == '/', r == ':', r == '@':
			b.WriteByte('-')
		}
	}
	return strings.TrimLeft(b.String(), "-")
}

// Address joins a device's name and a point's: "greenhouse/heater".
func Address(device, point string) string { return device + "/" + point }

// SplitAddress is the reverse of Address.
func SplitAddress(address string) (device, point string, ok bool) {
	device, point, ok = strings.Cut(address, "/")
	return device, point, ok && device != "" && point != ""
}
