// Package push keeps which phones an owner lets be told what happens, and how a message reaches each: a
// subscription of its browser at a push service (Push API, RFC 8030). A phone is a key that lives in a browser. It
// gives its subscription itself, and is told nothing until an owner allows its key.
package push

import (
	"cmp"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/device"

	"github.com/go-json-experiment/json"
)

const (
	maxPhones   = 8         // that are allowed, and that wait for it
	waitTime    = time.Hour // for which one waits
	maxChanges  = 6         // of the subscription of a phone, in changeTime
	changeTime  = time.Hour
	maxEndpoint = 1024 // bytes

	// MaxFile bounds the file.
	MaxFile = 64 << 10
)

// Subscription has the URL at which a browser takes messages, and the keys that they are encrypted for (RFC 8291).
type Subscription struct {
	Endpoint string `json:"endpoint"`
	Keys     Keys   `json:"keys"`
}

// Keys are the public key of a browser for its subscription, and a secret that it shares; both as unpadded base64url.
type Keys struct {
	P256dh string `json:"p256dh"`
	Auth   string `json:"auth"`
}

// hostLetters are those of a host and a port: an owner is shown them.
const hostLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]"

// Decode returns the keys, of which the second has 16 bytes.
func (k Keys) Decode() (public *ecdh.PublicKey, auth []byte, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(k.P256dh)
	if err == nil {
		public, err = ecdh.P256().NewPublicKey(raw)
	}
	if err == nil {
		auth, err = base64.RawURLEncoding.Strict().DecodeString(k.Auth)
	}
	if err == nil && len(auth) != 16 {
		err = errors.New("auth has 16 bytes")
	}
	return public, auth, err
}

// check refuses what is no subscription at an https endpoint, as browsers write it: in ASCII. Its address is checked
// when it is dialled.
func (s Subscription) check() error {
	u, err := url.Parse(s.Endpoint)
	strange := func(r rune) bool { return r <= ' ' || r > '~' }
	if err != nil || strings.ContainsFunc(s.Endpoint, strange) || strings.Trim(u.Host, hostLetters) != "" || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" ||
		len(s.Endpoint) > maxEndpoint {
		return device.Faultf(device.Invalid,
			"endpoint: takes the https URL of a push service, of at most %d bytes", maxEndpoint)
	}
	if _, _, err := s.Keys.Decode(); err != nil {
		return device.Faultf(device.Invalid,
			"keys: p256dh is a point of P-256 and auth has 16 bytes, both as unpadded base64url")
	}
	return nil
}

// Options are the parameters of a Store.
type Options struct {
	File  []byte // the last argument of Write; nil at first
	Err   error  // why File cannot be read
	Write func([]byte) error
	May   func(key string) bool // whether a key has a permission here
}

// Store is safe for concurrent use.
type Store struct {
	Options
	damage  error
	changed chan struct{} // receives when other phones are told

	mu      sync.Mutex
	on      int // how often Begin has not ended yet
	server  *ecdsa.PrivateKey
	allowed []*phone
	waiting []*phone // the oldest first; of an account at most one, and never in the file
}

type phone struct {
	Key string        `json:"key"`
	Sub *Subscription `json:"subscription,omitzero"` // nil where it has none now

	account string
	at      time.Time // when it began to wait
	changes int       // of the subscription since
	since   time.Time
}

// file is the content of the file.
type file struct {
	Version int      `json:"version"`
	Server  []byte   `json:"server"` // the private key by which push services know the site (RFC 8292)
	Phones  []*phone `json:"phones,omitzero"`
}

// Open returns the store with what its file has. An error says that the file is damaged; then nobody is told, and
// nothing is stored.
func Open(o Options) (*Store, error) {
	s := &Store{Options: o, changed: make(chan struct{}, 1)}
	if o.File == nil && o.Err == nil {
		return s, nil
	}
	var f file
	err := o.Err
	if err == nil {
		err = json.Unmarshal(o.File, &f)
	}
	if err == nil && f.Version != 1 {
		err = errors.New("its version is another one")
	}
	if err == nil {
		s.server, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), f.Server)
	}
	for _, p := range f.Phones {
		switch {
		case err != nil:
		case p == nil:
			err = errors.New("it has a phone without a key")
		case p.Sub != nil:
			err = p.Sub.check()
		}
	}
	if err != nil {
		s.damage = device.Faultf(device.Unavailable, "the list of phones cannot be read: %w", err)
		return s, s.damage
	}
	s.allowed = f.Phones
	return s, nil
}

// Begin has phones be told until end is called. Only then they can be offered.
func (s *Store) Begin() (end func()) {
	add := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.on += n
	}
	add(1)
	return func() { add(-1) }
}

var errOff = device.Faultf(device.Unavailable,
	"this site tells no phones: its owner writes notify: with page: in its configuration")

// State is the state of a phone as that phone is told it.
type State struct {
	Server     string `json:"server,omitzero"`     // the public key for its subscription, as unpadded base64url
	Allowed    bool   `json:"allowed,omitzero"`    // by an owner
	Subscribed bool   `json:"subscribed,omitzero"` // the site has its subscription
}

// State returns how it is with the phone that has a key; the zero State where no phones are told. The site's
// own key is made when it is first asked for.
func (s *Store) State(key string) (State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damage != nil {
		return State{}, s.damage
	}
	if s.on == 0 {
		return State{}, nil
	}
	if s.server == nil {
		made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return State{}, err
		}
		s.server = made
		if err := s.save(); err != nil {
			s.server = nil
			return State{}, err
		}
	}
	public, err := s.server.PublicKey.Bytes()
	if err != nil {
		return State{}, err
	}
	s.forget()
	p, allowed := s.find(key)
	return State{base64.RawURLEncoding.EncodeToString(public), allowed, p != nil && p.Sub != nil}, nil
}

// find returns the phone with a key, and whether it is allowed. The lock is held.
func (s *Store) find(key string) (_ *phone, allowed bool) {
	is := func(p *phone) bool { return p.Key == key }
	if i := slices.IndexFunc(s.allowed, is); i >= 0 {
		return s.allowed[i], true
	}
	if i := slices.IndexFunc(s.waiting, is); i >= 0 {
		return s.waiting[i], false
	}
	return nil, false
}

// forget drops the phones that wait for too long, or have no permission any more. The lock is held.
func (s *Store) forget() {
	s.waiting = slices.DeleteFunc(s.waiting, func(p *phone) bool {
		return time.Since(p.at) >= waitTime || !s.May(p.Key)
	})
}

// Offer takes the subscription of the phone with a key, in place of the one before. A phone that is not allowed waits
// for an owner, in memory, one for an account.
func (s *Store) Offer(key, account string, sub Subscription) error {
	if err := sub.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.damage != nil:
		return s.damage
	case s.on == 0:
		return errOff
	case !s.May(key):
		return device.Faultf(device.Denied, "your permission has ended")
	}
	s.forget()
	p, allowed := s.find(key)
	if !allowed {
		s.waiting = slices.DeleteFunc(s.waiting, func(p *phone) bool { return p.account == account })
		if len(s.waiting) >= maxPhones {
			return device.Faultf(device.Busy, "%d phones wait for an owner already: try again later", maxPhones)
		}
		s.waiting = append(s.waiting, &phone{Key: key, Sub: &sub, account: account, at: time.Now()})
		return nil
	}
	if p.Sub != nil && *p.Sub == sub {
		return nil
	}
	if time.Since(p.since) >= changeTime {
		p.changes, p.since = 0, time.Now()
	}
	if p.changes >= maxChanges {
		return device.Faultf(device.Busy,
			"this phone changed its subscription %d times within an hour: try again later", maxChanges)
	}
	p.changes++
	return s.set(p, &sub)
}

// set replaces the subscription of a phone. The lock is held.
func (s *Store) set(p *phone, sub *Subscription) error {
	before := p.Sub
	p.Sub = sub
	if err := s.save(); err != nil {
		p.Sub = before
		return err
	}
	s.poke()
	return nil
}

// Drop forgets the subscription of a phone, if it is at that endpoint; "" for any. The phone stays allowed.
func (s *Store) Drop(key, endpoint string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, allowed := s.find(key)
	switch {
	case p == nil || p.Sub == nil || endpoint != "" && p.Sub.Endpoint != endpoint:
		return nil
	case !allowed:
		s.waiting = slices.DeleteFunc(s.waiting, func(o *phone) bool { return o == p })
		return nil
	}
	return s.set(p, nil)
}

// Allow has the phone with a key that waits be told from now on.
func (s *Store) Allow(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	p, allowed := s.find(key)
	switch {
	case s.damage != nil:
		return s.damage
	case allowed:
		return nil
	case p == nil:
		return device.Faultf(device.Invalid,
			"no phone with that key waits: press Tell this phone on it first, in the view Access")
	case len(s.allowed) >= maxPhones:
		return device.Faultf(device.Invalid, "%d phones are told already: remove one of them first", maxPhones)
	}
	s.allowed = append(s.allowed, p)
	if err := s.save(); err != nil {
		s.allowed = s.allowed[:len(s.allowed)-1]
		return err
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(o *phone) bool { return o == p })
	s.poke()
	return nil
}

// Remove has the phone with a key be told nothing any more.
func (s *Store) Remove(key string) error {
	return s.remove(func(p *phone) bool { return p.Key == key })
}

// Recheck removes the phones whose key has no permission any more.
func (s *Store) Recheck() error {
	return s.remove(func(p *phone) bool { return !s.May(p.Key) })
}

// remove drops phones at once, also where that cannot be stored.
func (s *Store) remove(over func(*phone) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.allowed)
	s.waiting = slices.DeleteFunc(s.waiting, over)
	if s.allowed = slices.DeleteFunc(s.allowed, over); len(s.allowed) == before {
		return nil
	}
	s.poke()
	return s.save()
}

// Phone is a phone as an owner sees it.
type Phone struct {
	Key     string `json:"did"`
	Name    string `json:"name,omitzero"` // what an owner calls its key
	Allowed bool   `json:"allowed"`
	At      string `json:"at,omitzero"` // the host of its push service; "" where it has no subscription now
}

// List returns the phones that are told, and those that wait for an owner.
func (s *Store) List() []Phone {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	all := make([]Phone, 0, len(s.allowed)+len(s.waiting))
	for i, p := range slices.Concat(s.allowed, s.waiting) {
		host := ""
		if p.Sub != nil {
			if u, err := url.Parse(p.Sub.Endpoint); err == nil {
				host = u.Host
			}
		}
		all = append(all, Phone{Key: p.Key, Allowed: i < len(s.allowed), At: host})
	}
	return all
}

// Told returns the keys of the phones that are told now, in order.
func (s *Store) Told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for _, p := range s.allowed {
		if p.Sub != nil {
			keys = append(keys, p.Key)
		}
	}
	slices.SortFunc(keys, cmp.Compare[string])
	return keys
}

// Changed receives after the answer of Told may have changed. It has one receiver.
func (s *Store) Changed() <-chan struct{} { return s.changed }

// Find returns where the phone with a key is told, and the site's private key; false where it is told nothing now.
func (s *Store) Find(key string) (sub Subscription, server *ecdsa.PrivateKey, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, allowed := s.find(key)
	if !allowed || p.Sub == nil || !s.May(key) {
		return sub, nil, false
	}
	return *p.Sub, s.server, true
}

func (s *Store) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// save writes the file. The lock is held.
func (s *Store) save() error {
	if s.damage != nil {
		return s.damage
	}
	private, err := s.server.Bytes()
	if err != nil {
		return err
	}
	text, err := json.Marshal(file{1, private, s.allowed})
	if err == nil {
		err = s.Write(text)
	}
	if err != nil {
		return device.Faultf(device.Unavailable, "the site cannot store this now: %w", err)
	}
	return nil
}
