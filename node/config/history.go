package config

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// History is the section of that name: how much of the past is kept.
type History struct {
	Raw     age  `json:"raw,omitempty" jsonschema:"how long each reading is kept, from 1h to 10y; 7d when not written"`
	Minutes age  `json:"minutes,omitempty" jsonschema:"how long minutes, and the changes of states and outputs, are kept, not shorter than raw; 90d when not written"`
	Hours   age  `json:"hours,omitempty" jsonschema:"how long hours are kept, not shorter than minutes; 10y when not written"`
	Size    size `json:"size,omitempty" jsonschema:"what all of it may take on the disk, from 8MB to 64GB; the oldest go first; 64MB when not written"`
}

// DefaultHistory is the section where nothing is written.
var DefaultHistory = History{Raw: 7 * days, Minutes: 90 * days, Hours: 10 * years, Size: 64 << 20}

const (
	days  = age(24 * time.Hour)
	years = 365 * days

	agePattern  = `^([0-9]{1,5}[hdwy])+$`
	sizePattern = `^([0-9]{1,5})(MB|GB)$`
)

var ageForm, sizeForm, agePart = lazy(agePattern), lazy(sizePattern), lazy(`([0-9]+)([hdwy])`)

// age is how long something is kept.
type age time.Duration

func (a *age) UnmarshalText(text []byte) error {
	if !ageForm().Match(text) {
		return fmt.Errorf("takes hours, days, weeks or years, such as 36h, 7d or 10y, not %q", clip(string(text)))
	}
	const most = 10 * years
	units := map[string]age{"h": age(time.Hour), "d": days, "w": 7 * days, "y": years}
	*a = 0
	for _, part := range agePart().FindAllStringSubmatch(string(text), -1) {
		n, _ := strconv.Atoi(part[1])
		unit := units[part[2]]
		*a = min(*a+min(age(n), most/unit+1)*unit, most+1)
	}
	if *a < age(time.Hour) || *a > most {
		return errors.New("must be from 1h to 10y")
	}
	return nil
}

// size is a number of bytes.
type size int64

func (s *size) UnmarshalText(text []byte) error {
	m := sizeForm().FindStringSubmatch(string(text))
	if m == nil {
		return fmt.Errorf("takes a size such as 64MB or 1GB, not %q", clip(string(text)))
	}
	n, _ := strconv.Atoi(m[1])
	if *s = size(n) << 20; m[2] == "GB" {
		*s <<= 10
	}
	if *s < 8<<20 || *s > 64<<30 {
		return errors.New("must be from 8MB to 64GB")
	}
	return nil
}

// history checks the written values of the section together.
func (r *report) history(e entry, h History) {
	at, _, ok := e.scalar("hours")
	if other, _, minutes := e.scalar("minutes"); !ok && minutes {
		at, ok = other, true
	}
	if !ok {
		at, _, _ = e.scalar("raw")
	}
	if h.Raw > h.Minutes || h.Minutes > h.Hours {
		r.fail(at, "history", "raw must not be longer than minutes, and minutes not than hours")
	}
}
