package remote

import (
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"
)

// What sites answer, as far as it is passed on. A field that is not here does not come
// through; what becomes of the others is said by their types, see tidy. A model reads no
// text from afar: what comes through is a name, one of few words, or a sentence of ours.
type (
	points struct {
		Points []point  `json:"points"`
		Missed []missed `json:"not_answered,omitzero"`
	}
	point struct {
		Point   address  `json:"point"`
		Kind    word     `json:"kind"`
		Unit    unit     `json:"unit,omitzero"`
		Device  label    `json:"device,omitzero"`
		Min     *float64 `json:"min,omitzero"`
		Max     *float64 `json:"max,omitzero"`
		Values  []name   `json:"values,omitzero"`
		Safe    any      `json:"safe,omitzero"`
		Seconds float64  `json:"max_seconds,omitzero"`
		Limits  sentence `json:"limits,omitzero"`
		Confirm word     `json:"confirm,omitzero"`
	}
	readings struct {
		Readings []reading `json:"readings"`
		Missed   []missed  `json:"not_answered,omitzero"`
	}
	reading struct {
		Point   address  `json:"point"`
		Value   any      `json:"value"`
		Unit    unit     `json:"unit,omitzero"`
		Time    moment   `json:"time,omitzero"`
		Age     float64  `json:"age_seconds"`
		Quality word     `json:"quality"`
		Why     sentence `json:"why,omitzero"`
	}
	history struct {
		Point address `json:"point"`
		Unit  unit    `json:"unit,omitzero"`
		Step  float64 `json:"step_seconds"`
		Min   float64 `json:"min"`
		Mean  float64 `json:"mean"`
		Max   float64 `json:"max"`
		Steps []step  `json:"steps"`
	}
	step struct {
		Time moment  `json:"time"`
		Min  float64 `json:"min"`
		Mean float64 `json:"mean"`
		Max  float64 `json:"max"`
	}
	output struct {
		Output address `json:"output"`
		Value  any     `json:"value"`
		Goal   any     `json:"going_to,omitzero"`
		Safe   any     `json:"safe"`
		Left   float64 `json:"seconds_left,omitzero"`
	}
	shown struct {
		Display address `json:"display"`
		Text    ignored `json:"text"` // the caller knows it
	}
	picture struct {
		Camera address `json:"camera"`
		Time   moment  `json:"time"`
		MIME   mime    `json:"mime_type"`
		Size   int     `json:"bytes"`
	}
	stopped struct {
		Site    string   `json:"site"`
		Stopped bool     `json:"emergency_stop"`
		Outputs []output `json:"outputs"`
	}
	status struct {
		Site      string   `json:"site"`
		Version   release  `json:"version"`
		Uptime    float64  `json:"uptime_seconds"`
		Simulated bool     `json:"simulated,omitzero"`
		Stopped   bool     `json:"emergency_stop"`
		Devices   []part   `json:"devices"`
		Moved     []moved  `json:"outputs_away_from_safe"`
		Barred    []barred `json:"outputs_not_ready,omitzero"`
	}
	part struct {
		Device name      `json:"device"`
		Model  label     `json:"model"`
		Faults []trouble `json:"faults,omitzero"`
	}
	moved struct {
		Output address  `json:"output"`
		Value  any      `json:"value"`
		Goal   any      `json:"going_to,omitzero"`
		Holder holder   `json:"held_by,omitzero"`
		Left   float64  `json:"seconds_left,omitzero"`
		Fault  sentence `json:"fault,omitzero"`
	}
	barred struct {
		Output address  `json:"output"`
		Rest   float64  `json:"rest_seconds,omitzero"`
		Needs  sentence `json:"needs,omitzero"`
		Why    sentence `json:"returned_because,omitzero"`
	}

	// Of many sites together.
	stops struct {
		Sites  []stopped `json:"sites"`
		Missed []missed  `json:"not_answered,omitzero"`
	}
	statuses struct {
		Sites  []status `json:"sites"`
		Missed []missed `json:"not_answered,omitzero"`
	}
	// missed is a site that did not answer, and why.
	missed struct {
		Site string `json:"site"`
		Why  string `json:"why"`
	}
)

type (
	address string // of a point there, and from tidy on here; without one all that it is of goes
	name    string // by the name pattern; without one all that it is of goes
	word    string // one of few small words, or ""
	unit    string // as UCUM has it, or ""
	moment  string // RFC 3339, or ""

	label    string // of a product, by the name pattern in small letters, or ""
	sentence string // one of templates; any other becomes otherSentence
	trouble  string // what is wrong with a point: its name, a word, and a sentence
	holder   string // who holds an output, or ""
	release  string // of this program, or ""
	mime     string // of a picture, or ""
	ignored  string // "" whatever it is
)

var (
	nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_-]{1,24}$`) })
	wordForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_]{1,24}$`) })
	// As device.Fault has them, and agents.Principal.
	troubleForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([a-z0-9_-]{1,24}: (?:good|bad|stale|fault))(?: (.*))?$`)
	})
	holderForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(somebody else|did:key:z[1-9A-HJ-NP-Za-km-z]{40,60}|[a-z0-9_-]{1,24}(:[a-z0-9_-]{1,24})?)$`)
	})
	releaseForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(dev|v?[0-9]{1,5}(\.[0-9]{1,5}){0,2}(-(dev|alpha|beta|rc)?[.-]?[0-9]{0,5}(-g[0-9a-f]{7,12})?)?)$`)
	})
	mimeForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^image/(jpeg|png)$`) })

	unitForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[!-~]{1,24}$`) })
)

// otherSentence stands for what a site said in words of its own.
const otherSentence = "its site tells people more (agentsite --site)"

const (
	// maxList bounds a list in an answer, and maxSentence a text that is looked at.
	maxList     = 512
	maxSentence = 800
)

// tidy makes what a site said fit to be passed on, by the types above, and lists are
// bounded. It reports whether anything is
// left of v.
func tidy(v reflect.Value, site string) bool {
	switch v.Type() {
	case reflect.TypeFor[address]():
		there := v.String()
		v.SetString(site + "/" + there)
		return addressForm().MatchString(there)
	case reflect.TypeFor[name]():
		return nameForm().MatchString(v.String())
	case reflect.TypeFor[word]():
		keep(v, wordForm().MatchString(v.String()))
		return true
	case reflect.TypeFor[unit]():
		keep(v, unitForm().MatchString(v.String()))
		return true
	case reflect.TypeFor[moment]():
		_, err := time.Parse(time.RFC3339, v.String())
		keep(v, err == nil)
		return true
	case reflect.TypeFor[label]():
		v.SetString(strings.ToLower(v.String()))
		keep(v, nameForm().MatchString(v.String()))
		return true
	case reflect.TypeFor[sentence]():
		v.SetString(ours(v.String()))
		return true
	case reflect.TypeFor[trouble]():
		v.SetString(troubled(v.String()))
		return true
	case reflect.TypeFor[holder]():
		keep(v, holderForm().MatchString(v.String()))
		return true
	case reflect.TypeFor[release]():
		keep(v, releaseForm().MatchString(v.String()))
		return true
	case reflect.TypeFor[mime]():
		keep(v, mimeForm().MatchString(v.String()))
		return true
	}
	switch v.Kind() {
	case reflect.String: // of no type above
		v.SetString("")
	case reflect.Interface: // a number, a bool, one of a state's words, or nothing
		switch is := v.Interface().(type) {
		case string:
			if !nameForm().MatchString(is) {
				v.SetZero()
			}
		case bool, float64:
		default:
			v.SetZero()
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !tidy(v.Field(i), site) {
				return false
			}
		}
	case reflect.Slice:
		kept := 0
		for i := range v.Len() {
			if kept < maxList && tidy(v.Index(i), site) {
				v.Index(kept).Set(v.Index(i))
				kept++
			}
		}
		v.SetLen(kept)
	}
	return true
}

func keep(v reflect.Value, ok bool) {
	if !ok {
		v.SetZero()
	}
}

// ours is a site's sentence as it may be passed on; "" stays "".
func ours(text string) string {
	if text == "" || known(text) != "" {
		return text
	}
	return otherSentence
}

// troubled is a site's word on one of its points as it may be passed on.
func troubled(text string) string {
	of := troubleForm().FindStringSubmatch(text[:min(len(text), maxSentence)])
	if of == nil {
		return ours(text)
	}
	return strings.TrimSpace(of[1] + " " + ours(of[2]))
}
