package push

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// disk is the file, and who has a permission.
type disk struct {
	text   []byte
	writes int
	fails  error
	out    []string // keys without a permission
}

func (d *disk) open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(Options{
		File: d.text, May: func(key string) bool { return !slices.Contains(d.out, key) },
		Write: func(text []byte) error {
			if d.fails == nil {
				d.text, d.writes = text, d.writes+1
			}
			return d.fails
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// begun is open with phones that are told.
func (d *disk) begun(t *testing.T) *Store {
	t.Helper()
	s := d.open(t)
	s.Begin()
	return s
}

func sub(n int) Subscription {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	b := base64.RawURLEncoding.EncodeToString
	return Subscription{fmt.Sprintf("https://push.example.net/send/%d", n), Keys{b(key.PublicKey().Bytes()), b(make([]byte, 16))}}
}

func kind(err error) device.FaultKind {
	if err == nil {
		return ""
	}
	return device.AsFault(err).Kind
}

// TestAllowed: a phone is told once an owner allowed it, over restarts, and until it has no permission, which counts at
// once and does not come back with another permission.
func TestAllowed(t *testing.T) {
	d := new(disk)
	s := d.begun(t)
	state, err := s.State("ann")
	if err != nil || state.Allowed || state.Server == "" {
		t.Fatal(state, err)
	}
	of := sub(1)
	if err := s.Offer("ann", "ann", of); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := s.Find("ann"); ok || len(s.Told()) > 0 || strings.Contains(string(d.text), "send/1") {
		t.Errorf("it is told or stored before an owner allows it: %s", d.text)
	}
	if err := s.Allow("bob"); kind(err) != device.Invalid {
		t.Error(err)
	}
	if err := s.Allow("ann"); err != nil {
		t.Fatal(err)
	}
	s = d.begun(t)
	if got, server, ok := s.Find("ann"); !ok || got != of || server == nil {
		t.Fatal(got, ok)
	}
	if again, err := s.State("ann"); err != nil || again.Server != state.Server || !again.Allowed || !again.Subscribed {
		t.Error(again, err)
	}
	// What is gone at its push service comes back with another subscription, which no owner has to allow.
	if err := s.Drop("ann", "https://push.example.net/other"); err != nil || len(s.Told()) != 1 {
		t.Error("another subscription is dropped", err)
	}
	if err := s.Drop("ann", of.Endpoint); err != nil || len(s.Told()) != 0 {
		t.Error(err)
	}
	if err := s.Offer("ann", "ann", sub(2)); err != nil || len(s.Told()) != 1 {
		t.Error(err)
	}
	d.out = []string{"ann"}
	if _, _, ok := s.Find("ann"); ok {
		t.Error("a key without a permission is told")
	}
	d.fails = errors.New("the disk is full")
	if err := s.Recheck(); err == nil || len(s.List()) > 0 {
		t.Error("it is there while the disk is full", err)
	}
	d.fails, d.out = nil, nil
	if err := s.Offer("ann", "ann", sub(3)); err != nil || len(s.Told()) > 0 {
		t.Error("it is told by a permission of later", err)
	}
	if err := s.Allow("ann"); err != nil {
		t.Error(err)
	}
	if err := s.Remove("ann"); err != nil || len(s.List()) > 0 || strings.Contains(string(d.text), "send") {
		t.Errorf("%v %s", err, d.text)
	}
}

// TestBounds: phones that wait take places in memory, one for an account and for an hour, and nothing that a phone
// repeats writes without an end.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(disk)
		s := d.begun(t)
		for n := range 100 {
			if err := s.Offer(fmt.Sprint("key", n), "one", sub(n)); err != nil {
				t.Fatal(err)
			}
		}
		if len(s.List()) != 1 || d.writes > 0 {
			t.Error(s.List(), d.writes)
		}
		for n := range maxPhones {
			key := fmt.Sprint("account", n)
			if err := s.Offer(key, key, sub(n)); (kind(err) == device.Busy) != (n == maxPhones-1) {
				t.Error(n, err)
			}
		}
		time.Sleep(waitTime)
		if err := s.Allow("account0"); kind(err) != device.Invalid || len(s.List()) > 0 {
			t.Error("it waits for too long", err)
		}
		if _, err := s.State("x"); err != nil {
			t.Fatal(err)
		}
		for n := range maxPhones + 1 {
			key := fmt.Sprint("account", n)
			if err := s.Offer(key, key, sub(n)); err != nil {
				t.Fatal(err)
			}
			if err := s.Allow(key); (err != nil) != (n == maxPhones) {
				t.Error(n, err)
			}
		}
		before, last := d.writes, error(nil)
		for n := range 100 {
			last = s.Offer("account0", "account0", sub(n))
		}
		if kind(last) != device.Busy || d.writes-before != maxChanges {
			t.Error(last, d.writes-before)
		}
		if len(d.text) > MaxFile {
			t.Error(len(d.text))
		}
	})
}

// TestWrong: what is no subscription is refused, and so is everything while the configuration tells no phones. A damaged
// file tells nobody, and is not written over.
func TestWrong(t *testing.T) {
	d := new(disk)
	s := d.open(t)
	good := sub(1)
	end := s.Begin()
	for name, change := range map[string]func(*Subscription){
		"a host that turns a line": func(s *Subscription) { s.Endpoint = "https://push.example.net\u202e/x" },
		"the same, encoded":        func(s *Subscription) { s.Endpoint = "https://push.example.net%E2%80%AE/x" },
		"a host of quotes":         func(s *Subscription) { s.Endpoint = `https://"allow ann"/x` },
		"plain HTTP":               func(s *Subscription) { s.Endpoint = "http://push.example.net/x" },
		"a user":                   func(s *Subscription) { s.Endpoint = "https://a:b@push.example.net/x" },
		"no host":                  func(s *Subscription) { s.Endpoint = "https:///x" },
		"a long one":               func(s *Subscription) { s.Endpoint += strings.Repeat("x", maxEndpoint) },
		"no key":                   func(s *Subscription) { s.Keys.P256dh = "" },
		"no point":                 func(s *Subscription) { s.Keys.P256dh = "BA" + strings.Repeat("A", 85) },
		"a short auth":             func(s *Subscription) { s.Keys.Auth = "AAAA" },
	} {
		of := good
		change(&of)
		if err := s.Offer("ann", "ann", of); kind(err) != device.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Begin()()
	if _, err := s.State("ann"); err != nil {
		t.Error("another end ends it", err)
	}
	end()
	if err := s.Offer("ann", "ann", good); kind(err) != device.Unavailable {
		t.Error(err)
	}
	if state, err := s.State("ann"); err != nil || state != (State{}) {
		t.Error(state, err)
	}
	for _, text := range []string{"", "x", `{"version":2}`, `{"version":1}`, `{"version":1,"server":"AAAA"}`, `{"version":1,"server":"` + strings.Repeat("AAAA", 10) + `AQE=","phones":[null]}`} {
		var unread error
		if text == "" {
			unread = errors.New("it cannot be read")
		}
		s, err := Open(Options{File: []byte(text), Err: unread, May: func(string) bool { return true }, Write: func([]byte) error { t.Error("it is written over"); return nil }})
		if err == nil {
			t.Error(text)
			continue
		}
		s.Begin()
		for _, err := range []error{s.Offer("ann", "ann", good), s.Allow("ann")} {
			if kind(err) != device.Unavailable {
				t.Error(text, err)
			}
		}
	}
}
