package things

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/node/quota"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of the store, in total and for each root grant. The last quarter of the total is for
// owners.
const (
	maxThing  = 32 << 10 // bytes of a description
	maxThings = 256
	maxBytes  = 1 << 20
	maxEach   = 64
	maxOwned  = 256 << 10 // bytes of each
)

// writes is the rate at which an account may cause writes of the file; owners are not counted.
var writes = quota.Rate{PerSecond: 1. / 60, Burst: 64}

// ErrNone is the error about a description that is not there, or that its caller may not see.
var ErrNone = device.Faultf(device.Invalid, "no such thing is registered here")

// Caller is on whose behalf descriptions are changed and read.
type Caller struct {
	ID      string // a principal
	Account string // whose limits count
	Owner   bool   // may change what others registered
	Reads   bool   // may read what others registered
}

// Options configure a Store.
type Options struct {
	File  []byte                            // as stored; nil for none
	Write func([]byte) error                // replaces the file, durably
	Now   func() (now time.Time, sure bool) // the site's time, and whether it is more than a lower bound
	Own   string                            // the IDs of the site's own things begin with it
}

// Store holds the registered descriptions. Its methods are safe for concurrent use. While some
// description has an expiry, a timer waits for the first one; otherwise nothing runs.
type Store struct {
	Options
	damage error // why the file cannot be read; nothing replaces it then

	mu     sync.Mutex
	all    []*entry // by their IDs, which nobody changes in place
	timer  *time.Timer
	events ring
	writes quota.RateLimiter // by account
	closed bool
}

// entry is a description. It is replaced when it changes, but for its end.
type entry struct {
	ID       string         `json:"id"`
	TD       jsontext.Value `json:"td"` // without its registration
	By       string         `json:"by"` // the principal that registered it
	Account  string         `json:"account"`
	Created  time.Time      `json:"created"`
	Modified time.Time      `json:"modified"`
	Expires  time.Time      `json:"expires,omitzero"`
	TTL      float64        `json:"ttl,omitzero"` // seconds; 0 for none

	ends time.Time // of its TTL, by the monotonic clock
}

// Thing is a description for its reader, with its registration information.
type Thing struct {
	ID   string
	By   string // the principal that registered it
	Text jsontext.Value
}

// Open reads the registered descriptions. A damaged file is an error of every change, and none of
// the start. Time to live begins anew: while the site was off, nobody could have renewed it.
func Open(o Options) *Store {
	s := &Store{Options: o, events: newRing(), writes: quota.RateLimiter{Rate: writes}}
	if s.all, s.damage = decode(o.File); s.damage != nil {
		slog.Error("registered things cannot be read", "err", s.damage)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, _ := s.Now()
	for _, e := range s.all {
		e.renew(now)
	}
	s.purge()
	return s
}

// Close ends the timer, for good: nothing is written by itself after it.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.schedule()
}

// find returns the index of an ID, or where it belongs.
func find(all []*entry, id string) (int, bool) {
	return slices.BinarySearchFunc(all, id, func(e *entry, id string) int { return strings.Compare(e.ID, id) })
}

func (c Caller) sees(by string) bool { return c.Owner || c.Reads || c.ID == by }

// Get returns a description that a caller may see.
func (s *Store) Get(c Caller, id string) (Thing, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.purge()
	i, ok := find(s.all, id)
	if !ok || !c.sees(s.all[i].By) {
		return Thing{}, false
	}
	now, _ := s.Now()
	return Thing{id, s.all[i].By, s.all[i].enriched(now)}, true
}

// List returns the descriptions that a caller may see, by their IDs.
func (s *Store) List(c Caller) (all []Thing) {
	s.mu.Lock()
	s.purge()
	entries := s.all
	s.mu.Unlock()
	now, _ := s.Now()
	for _, e := range entries {
		if c.sees(e.By) {
			all = append(all, Thing{e.ID, e.By, e.enriched(now)})
		}
	}
	return all
}

// Add registers a description without an ID, and returns the ID that it has here.
func (s *Store) Add(c Caller, text jsontext.Value) (id string, err error) {
	td := objectOf(text)
	if td["id"] != nil {
		return "", mistake("id", "a description with an id is registered by PUT, at the URL with that id")
	}
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // UUID version 4 (RFC 9562, section 5.4)
	id = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	td["id"] = encoded(id)
	_, err = s.put(c, id, func(*entry) (object, error) { return td, nil })
	return id, err
}

// Put registers a description under the ID that it has, or replaces it.
func (s *Store) Put(c Caller, id string, text jsontext.Value) (created bool, err error) {
	return s.put(c, id, func(*entry) (object, error) { return objectOf(text), nil })
}

// Patch applies a JSON merge patch to a description, and has its time to live begin anew. One that
// changes nothing else writes nothing.
func (s *Store) Patch(c Caller, id string, patch jsontext.Value) error {
	_, err := s.put(c, id, func(e *entry) (object, error) {
		if e == nil {
			return nil, ErrNone
		}
		if patch.Kind() != '{' {
			return nil, mistake("(root)", "a partial description is an object")
		}
		was, err := e.withExpiry().encode()
		if err != nil {
			return nil, err
		}
		merged, err := merge(was, patch)
		return objectOf(merged), err
	})
	return err
}

// put changes a description and stores it; change gets nil if there is none.
func (s *Store) put(c Caller, id string, change func(*entry) (object, error)) (created bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damage != nil {
		return false, errDamaged
	}
	s.purge()
	i, there := find(s.all, id)
	var old *entry
	if there {
		if old = s.all[i]; !c.Owner && old.By != c.ID {
			return false, s.notTheirs(c, old)
		}
	} else if strings.HasPrefix(id, s.Own) {
		return false, device.Faultf(device.Denied, "this is the ID of a thing of the site's own")
	}
	td, err := change(old)
	if err != nil {
		return false, err
	}
	now, sure := s.Now()
	next := &entry{ID: id, By: c.ID, Account: c.Account, Created: now, Modified: now}
	if there {
		next.By, next.Account, next.Created = old.By, old.Account, old.Created
	}
	wrong := next.take(td, now, sure)
	if wrong = append(wrong, check(td)...); wrong == nil && string(td["id"]) != string(encoded(id)) {
		wrong = mistake("id", "must be the id in the URL")
	}
	if wrong != nil {
		return false, wrong
	}
	if next.TD, err = td.encode(); err != nil {
		return false, err
	}
	if there && bytes.Equal(old.TD, next.TD) && old.TTL == next.TTL && (next.TTL > 0 || old.Expires.Equal(next.Expires)) {
		next.Modified = old.Modified
		s.all = slices.Clone(s.all)
		s.all[i] = next
		s.schedule()
		return false, nil
	}
	all := slices.Clone(s.all)
	if there {
		all[i] = next
	} else {
		all = slices.Insert(all, i, next)
	}
	if err := s.fits(c, all, next); err != nil {
		return false, err
	}
	if err := s.change(c, all); err != nil {
		return false, err
	}
	kind := Updated
	if !there {
		kind = Created
	}
	s.events.add(kind, next)
	return !there, nil
}

// notTheirs refuses a caller that may not change a description, and says that there is none where
// the caller may not see it either.
func (s *Store) notTheirs(c Caller, e *entry) error {
	if c.sees(e.By) {
		return device.Faultf(device.Denied, "another registered this thing; an owner of the site may change it")
	}
	return device.Faultf(device.Denied, "this id cannot be registered by you")
}

// fits refuses a description that is too large, or too many.
func (s *Store) fits(c Caller, all []*entry, next *entry) error {
	if len(next.TD) > maxThing {
		return device.Faultf(device.Invalid, "a description has at most %d bytes", maxThing)
	}
	things, size, own, ownSize := 0, 0, 0, 0
	for _, e := range all {
		things, size = things+1, size+len(e.TD)
		if e.Account == next.Account {
			own, ownSize = own+1, ownSize+len(e.TD)
		}
	}
	if things > maxThings || size > maxBytes || !c.Owner && (things > maxThings*3/4 || size > maxBytes*3/4 || own > maxEach || ownSize > maxOwned) {
		return device.Faultf(device.Unavailable, "the directory has no more room for you: remove a thing first")
	}
	return nil
}

// Delete removes a description.
func (s *Store) Delete(c Caller, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damage != nil {
		return errDamaged
	}
	s.purge()
	i, ok := find(s.all, id)
	if !ok || !c.sees(s.all[i].By) {
		return ErrNone
	}
	gone := s.all[i]
	if !c.Owner && gone.By != c.ID {
		return s.notTheirs(c, gone)
	}
	if err := s.change(c, slices.Delete(slices.Clone(s.all), i, i+1)); err != nil {
		return err
	}
	s.events.add(Deleted, gone)
	return nil
}

// change makes a caller's change durable. The lock is held.
func (s *Store) change(c Caller, all []*entry) error {
	if !c.Owner && !s.writes.Allow(c.Account) {
		return device.Faultf(device.Busy, "too many changes of the directory by you, or by those who share your permission: try again in a minute")
	}
	err := s.store(all)
	s.schedule()
	return err
}

var errDamaged = device.Faultf(device.Unavailable, "the registered things cannot be read, so they stay as they are; remove the file things from the data folder, and start again")

// store makes a change durable. The lock is held.
func (s *Store) store(all []*entry) error {
	text, err := encode(all)
	if err != nil {
		return err
	}
	if err := s.Write(text); err != nil {
		return device.Faultf(device.Unavailable, "everything stays as it is, because the disk does not store the change: %w", err)
	}
	s.all = all
	return nil
}

// purge removes expired descriptions. The lock is held.
func (s *Store) purge() {
	now, sure := s.Now()
	var stay, gone []*entry
	for _, e := range s.all {
		if left, ok := e.left(now, sure); ok && left <= 0 {
			gone = append(gone, e)
		} else {
			stay = append(stay, e)
		}
	}
	if gone == nil {
		s.schedule()
		return
	}
	if err := s.store(stay); err != nil { // they are gone all the same
		slog.Warn("expired things stay in the file", "err", err)
		s.all = stay
	}
	for _, e := range gone {
		s.events.add(Deleted, e)
	}
	s.schedule()
}

// schedule sets the timer that purges the next description to expire. The lock is held.
func (s *Store) schedule() {
	now, sure := s.Now()
	first := time.Duration(-1)
	for _, e := range s.all {
		if left, ok := e.left(now, sure); ok && !s.closed && (first < 0 || left < first) {
			first = max(left, 0)
		}
	}
	switch {
	case s.timer != nil && first < 0:
		s.timer.Stop()
	case s.timer != nil:
		s.timer.Reset(first)
	case first >= 0:
		s.timer = time.AfterFunc(first, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.closed {
				s.purge()
			}
		})
	}
}
