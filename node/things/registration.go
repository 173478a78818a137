package things

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// registration is the registration information of a description: of a client, expires and ttl count.
type registration struct {
	Created   string   `json:"created,omitzero"`
	Modified  string   `json:"modified,omitzero"`
	Expires   string   `json:"expires,omitzero"`
	TTL       *float64 `json:"ttl,omitzero"` // seconds
	Retrieved string   `json:"retrieved,omitzero"`
}

const registrationMember = "registration"

// maxTTL is a year, in seconds.
const maxTTL = 366 * 24 * 3600

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// take sets the expiry from a description, and removes it from that. now is the site's time; sure
// says whether it is known.
func (e *entry) take(td object, now time.Time, sure bool) Invalid {
	e.TTL, e.Expires, e.ends = 0, time.Time{}, time.Time{}
	v := td[registrationMember]
	delete(td, registrationMember)
	if v == nil {
		return nil
	}
	var r struct {
		Expires *string  `json:"expires"`
		TTL     *float64 `json:"ttl"`
	}
	if v.Kind() != '{' || json.Unmarshal(v, &r) != nil {
		return mistake(registrationMember, "must be an object, with expires as a date-time and ttl as a number of seconds")
	}
	switch {
	case r.TTL != nil:
		if !(*r.TTL >= 1 && *r.TTL <= maxTTL) {
			return mistake("registration.ttl", "must be from 1 to 31622400 seconds")
		}
		e.TTL = *r.TTL
		e.renew(now)
	case r.Expires != nil:
		t, err := time.Parse(time.RFC3339, *r.Expires)
		if err != nil || sure && !t.After(now) {
			return mistake("registration.expires", "must be a date-time as in RFC 3339, with an offset, that is to come")
		}
		e.Expires = t
	}
	return nil
}

// renew begins the time to live of a registration that has one.
func (e *entry) renew(now time.Time) {
	if e.TTL > 0 {
		live := time.Duration(e.TTL * float64(time.Second))
		e.ends, e.Expires = time.Now().Add(live), now.Add(live)
	}
}

// left returns how long a registration lasts. ok is false if it has no end, or while that cannot be
// computed because the clock is not set.
func (e *entry) left(now time.Time, sure bool) (left time.Duration, ok bool) {
	switch {
	case e.TTL > 0: // whatever the clock says
		return time.Until(e.ends), true
	case e.Expires.IsZero() || !sure:
		return 0, false
	}
	return e.Expires.Sub(now), true
}

// withExpiry returns a description with the registration that a client may set.
func (e *entry) withExpiry() object {
	td := objectOf(e.TD)
	switch r := (registration{}); {
	case e.TTL > 0:
		r.TTL = &e.TTL
		td[registrationMember] = encoded(r)
	case !e.Expires.IsZero():
		r.Expires = stamp(e.Expires)
		td[registrationMember] = encoded(r)
	}
	return td
}

// enriched returns a description as it is retrieved, with its registration information.
func (e *entry) enriched(now time.Time) jsontext.Value {
	r := registration{Created: stamp(e.Created), Modified: stamp(e.Modified), Retrieved: stamp(now)}
	if !e.Expires.IsZero() {
		r.Expires = stamp(e.Expires)
	}
	if e.TTL > 0 {
		r.TTL = &e.TTL
	}
	td := objectOf(e.TD)
	td[registrationMember] = encoded(r)
	all := []jsontext.Value{td["@context"]}
	if all[0].Kind() == '[' {
		all = nil
		json.Unmarshal(td["@context"], &all) // it was checked
	}
	if own := encoded(discovery); !slices.ContainsFunc(all, func(v jsontext.Value) bool { return string(v) == string(own) }) {
		all = append(all, own)
	}
	td["@context"] = encoded(all)
	text, _ := td.encode() // it was decoded before
	return text
}

// encoded returns a value that has a form in JSON.
func encoded(v any) jsontext.Value {
	text, _ := json.Marshal(v)
	return text
}
