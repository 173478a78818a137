package config

import (
	"errors"
	"strconv"
	"strings"
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

	agePattern  = `^([0-9]{1,4}[hdwy])+$`
	sizePattern = `^[0-9]{1,5}(MB|GB)$`
)

// age is how long something is kept.
type age time.Duration

func (a *age) UnmarshalText(text []byte) error {
	*a = 0
	for rest := string(text); ; {
		i := strings.IndexAny(rest, "hdwy")
		if i < 0 {
			break
		}
		n, err := strconv.ParseUint(rest[:i], 10, 14)
		if err != nil {
			break
		}
		unit := map[byte]age{'h': age(time.Hour), 'd': days, 'w': 7 * days, 'y': years}[rest[i]]
		*a += min(age(n), 11*years/unit) * unit
		if rest = rest[i+1:]; rest != "" {
			continue
		}
		if *a < age(time.Hour) || *a > 10*years {
			return errors.New("must be from 1h to 10y")
		}
		return nil
	}
	return errors.New("takes hours, days, weeks or years, such as 36h, 7d or 10y, not " + strconv.Quote(clip(string(text))))
}

// size is a number of bytes.
type size int64

func (s *size) UnmarshalText(text []byte) error {
	digits, factor := string(text), size(0)
	for unit, f := range map[string]size{"MB": 1 << 20, "GB": 1 << 30} {
		if n, ok := strings.CutSuffix(string(text), unit); ok {
			digits, factor = n, f
		}
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || factor == 0 {
		return errors.New("takes a size such as 64MB or 1GB, not " + strconv.Quote(clip(string(text))))
	}
	if *s = size(n) * factor; *s < 8<<20 || *s > 64<<30 {
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
