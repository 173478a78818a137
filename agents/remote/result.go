package remote

import (
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
)

// What sites answer, as far as it is passed on. A field that is not here does not come
// through; what becomes of the others is said by their types, see tidy. Descriptions of
// points are left out: a model reads no text from afar that its owner did not ask for.
type (
	points struct {
		Points []point  `json:"points"`
		Missed []missed `json:"not_answered,omitzero"`
	}
	point struct {
		Point   address  `json:"point"`
		Kind    word     `json:"kind"`
		Unit    unit     `json:"unit,omitzero"`
		Device  string   `json:"device,omitzero"`
		Min     *float64 `json:"min,omitzero"`
		Max     *float64 `json:"max,omitzero"`
		Values  []string `json:"values,omitzero"`
		Safe    any      `json:"safe,omitzero"`
		Seconds float64  `json:"max_seconds,omitzero"`
		Limits  string   `json:"limits,omitzero"`
		Confirm word     `json:"confirm,omitzero"`
	}
	readings struct {
		Readings []reading `json:"readings"`
		Missed   []missed  `json:"not_answered,omitzero"`
	}
	reading struct {
		Point   address `json:"point"`
		Value   any     `json:"value"`
		Unit    unit    `json:"unit,omitzero"`
		Time    moment  `json:"time,omitzero"`
		Age     float64 `json:"age_seconds"`
		Quality word    `json:"quality"`
		Why     string  `json:"why,omitzero"`
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
		Text    string  `json:"text"`
	}
	picture struct {
		Camera address `json:"camera"`
		Time   moment  `json:"time"`
		MIME   string  `json:"mime_type"`
		Size   int     `json:"bytes"`
	}
	stopped struct {
		Site    string   `json:"site"`
		Stopped bool     `json:"emergency_stop"`
		Outputs []output `json:"outputs"`
	}
	status struct {
		Site      string   `json:"site"`
		Version   string   `json:"version"`
		Uptime    float64  `json:"uptime_seconds"`
		Simulated bool     `json:"simulated,omitzero"`
		Stopped   bool     `json:"emergency_stop"`
		Devices   []part   `json:"devices"`
		Moved     []moved  `json:"outputs_away_from_safe"`
		Barred    []barred `json:"outputs_not_ready,omitzero"`
	}
	part struct {
		Device name     `json:"device"`
		Model  string   `json:"model"`
		Faults []string `json:"faults,omitzero"`
	}
	moved struct {
		Output address `json:"output"`
		Value  any     `json:"value"`
		Goal   any     `json:"going_to,omitzero"`
		Holder string  `json:"held_by,omitzero"`
		Left   float64 `json:"seconds_left,omitzero"`
		Fault  string  `json:"fault,omitzero"`
	}
	barred struct {
		Output address `json:"output"`
		Rest   float64 `json:"rest_seconds,omitzero"`
		Needs  string  `json:"needs,omitzero"`
		Why    string  `json:"returned_because,omitzero"`
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
)

var (
	nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_-]{1,24}$`) })
	wordForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_]{1,24}$`) })
	unitForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[!-~]{1,24}$`) })
)

const (
	// maxList bounds a list in an answer, and maxText a text.
	maxList = 512
	maxText = 200
)

// tidy makes what a site said fit to be passed on, by the types above: lists and texts
// are bounded, and texts hold nothing but what is seen. It reports whether anything is
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
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(clean(v.String()))
	case reflect.Interface: // a number, a bool, a text or nothing
		switch is := v.Interface().(type) {
		case string:
			v.Set(reflect.ValueOf(clean(is)))
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

// clean is a text of a site's as it may be shown: in one line, without what hides, moves
// or colours it, and bounded.
func clean(s string) string {
	s = s[:min(len(s), 4*maxText)]
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > maxText {
		s = string(runes[:maxText]) + "…"
	}
	return s
}
