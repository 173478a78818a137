package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const name = "board.example.org"

// board is a site with a manager, whose file survives it.
type board struct {
	t      *testing.T
	ca     *authority
	file   []byte
	writes int
	unsure atomic.Bool
	ahead  atomic.Int64 // of the site's clock, as a time.Duration
	m      *Manager
}

func newBoard(t *testing.T) *board {
	b := &board{t: t}
	b.ca = newAuthority(t, time.Now)
	b.ca.look = func(name string) error {
		c, err := handshake(b.m.Config(), &tls.Config{ServerName: name, NextProtos: []string{"acme-tls/1"}})
		if err != nil {
			return err
		}
		for _, e := range c.Extensions {
			if e.Id.Equal(acmeIdentifier) {
				return nil
			}
		}
		return errors.New("the certificate is of no challenge")
	}
	b.open()
	return b
}

// open opens the manager, as a start of the site does.
func (b *board) open() {
	b.t.Helper()
	var err error
	b.m, err = Open(Options{
		Directory: base + "directory", Now: func() (time.Time, bool) {
			return time.Now().Add(time.Duration(b.ahead.Load())), !b.unsure.Load()
		},
		Read:   func() ([]byte, error) { return b.file, nil },
		Write:  func(text []byte) error { b.file = text; b.writes++; return nil },
		Client: &http.Client{Transport: b.ca},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.m.SetName(name)
}

// run runs the manager for a time.
func (b *board) run(d time.Duration) {
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	defer cancel()
	b.m.Run(ctx)
}

func (b *board) serves() error {
	c, err := handshake(b.m.Config(), &tls.Config{ServerName: name})
	if err == nil {
		err = c.VerifyHostname(name)
	}
	return err
}

// TestOrder: the first certificate is ordered at once, kept over a start, and renewed after two thirds of its life;
// for a year that is an order a month.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		if b.serves() == nil {
			t.Error("there is a certificate before an order")
		}
		b.run(time.Minute)
		if err := b.serves(); err != nil || b.ca.begun != 1 || b.ca.made != 1 {
			t.Fatalf("%v after %d orders and %d certificates", err, b.ca.begun, b.ca.made)
		}
		b.open()
		b.run(29 * 24 * time.Hour)
		if err := b.serves(); err != nil || b.ca.begun != 1 {
			t.Errorf("after a month: %v, %d orders", err, b.ca.begun)
		}
		b.run(5 * 24 * time.Hour)
		if b.ca.begun != 2 {
			t.Errorf("%d orders after two thirds", b.ca.begun)
		}
		b.run(365 * 24 * time.Hour)
		if b.ca.begun < 11 || b.ca.begun > 14 || b.writes > 6*b.ca.begun {
			t.Errorf("%d orders and %d writes in a year", b.ca.begun, b.writes)
		}
	})
}

// TestCrashes: what crashes at each step of an order goes on with it: there is one order, and one certificate.
func TestCrashes(t *testing.T) {
	for _, at := range []string{"account", "z", "challenge", "order/1", "finalize", "cert"} {
		t.Run(strings.ReplaceAll(at, "/", "-"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBoard(t)
				b.ca.fail[at] = 5 * 20 // the client repeats
				for range 5 {
					b.run(20 * time.Second)
					b.open()
				}
				b.ca.fail[at] = 0
				b.run(2 * time.Hour)
				if err := b.serves(); err != nil || b.ca.begun != 1 || b.ca.made != 1 {
					t.Errorf("%v after %d orders and %d certificates", err, b.ca.begun, b.ca.made)
				}
			})
		})
	}
}

// TestOrdersLost: an order whose answer is lost at each of five crashes counts. After that it is an order a day, and
// never five certificates in a week, whatever becomes of them.
func TestOrdersLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		b.ca.fail["new-order"] = 1 << 30
		for range 5 {
			b.run(8 * time.Hour)
			b.open()
		}
		before := b.ca.begun
		if before < 5 {
			t.Fatalf("%d orders in 40 h", before)
		}
		for range 10 * 24 { // a start each hour
			b.run(time.Hour)
			b.open()
		}
		if n := b.ca.begun - before; n > 10 {
			t.Errorf("%d orders in ten days", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		for range 7 * 24 {
			b.run(time.Hour)
			s, err := parseStored(b.file)
			if err != nil {
				t.Fatal(err)
			}
			b.m.stored = s
			if err := b.m.change(func(s *stored) { s.Chain, s.ChainKey = "", "" }); err != nil { // it is lost each time
				t.Fatal(err)
			}
			b.open()
		}
		if b.ca.made > mostFinalized+1 {
			t.Errorf("%d certificates in a week", b.ca.made)
		}
	})
}

// TestNoClock: without a time nothing is ordered, and what is stored is served, also after its end. With one, an
// ended certificate is replaced by a new order.
func TestNoClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		b.unsure.Store(true)
		b.run(24 * time.Hour)
		if b.ca.begun != 0 || b.m.Status().Waits == "" {
			t.Errorf("%d orders without a clock; %+v", b.ca.begun, b.m.Status())
		}
		b.unsure.Store(false)
		b.run(time.Minute)
		b.unsure.Store(true)
		time.Sleep(200 * 24 * time.Hour) // off
		b.open()
		b.run(24 * time.Hour)
		if err := b.serves(); err != nil || b.ca.begun != 1 {
			t.Errorf("without a clock: %v, %d orders", err, b.ca.begun)
		}
		b.unsure.Store(false)
		b.run(time.Minute)
		if b.ca.begun != 2 || b.m.current.Leaf.NotAfter.Before(time.Now()) {
			t.Errorf("with a clock: %d orders, until %v", b.ca.begun, b.m.current.Leaf.NotAfter)
		}
	})
}

// TestStarts: a site that starts twice a day has a certificate the day after its file was damaged, or its clock was set
// back by months.
func TestStarts(t *testing.T) {
	for name, happens := range map[string]func(*board){
		"a damaged file": func(b *board) { b.file = b.file[:len(b.file)/2] },
		"a clock of months ahead": func(b *board) {
			b.ahead.Store(int64(100 * 24 * time.Hour))
			b.ca.fail["new-order"] = 1 << 30
			b.run(30 * time.Hour)
			b.ca.fail["new-order"] = 0
			b.ahead.Store(0)
			if err := b.m.change(func(s *stored) { s.Chain, s.ChainKey = "", "" }); err != nil {
				b.t.Fatal(err)
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBoard(t)
			b.run(time.Minute)
			happens(b)
			before := b.ca.begun
			for range 2 {
				b.open()
				b.run(11 * time.Hour)
				time.Sleep(time.Hour)
			}
			if b.ca.begun != before {
				t.Errorf("%s: %d orders within a day", name, b.ca.begun-before)
			}
			b.open()
			b.run(time.Hour)
			if err := b.serves(); err != nil || b.ca.begun != before+1 {
				t.Errorf("%s: %v after a day, %d orders", name, err, b.ca.begun-before)
			}
		})
	}
}

// TestSlowDisk: callers are served while the disk takes its time.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		b.run(time.Minute)
		write := b.m.Write
		b.m.Write = func(text []byte) error {
			if !b.m.mu.TryLock() {
				t.Error("a handshake waits for the disk")
			} else if b.m.mu.Unlock(); b.serves() != nil {
				t.Error("there is no certificate meanwhile")
			}
			return write(text)
		}
		b.run(40 * 24 * time.Hour)
		if b.ca.made != 2 {
			t.Errorf("%d certificates", b.ca.made)
		}
	})
}

// TestStrangers: no handshake causes an order, and nobody sees a challenge but an authority while it looks.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		asks := map[string]*tls.Config{
			"no name": {}, "another name": {ServerName: "other.example.org"}, "challenge": {ServerName: name, NextProtos: []string{"acme-tls/1"}},
			"no ECDSA": {ServerName: name, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}},
			"old":      {ServerName: name, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		}
		all := func(when string) {
			for what, ask := range asks {
				if _, err := handshake(b.m.Config(), ask); err == nil {
					t.Errorf("%s, %s: there is an answer", when, what)
				}
			}
		}
		all("before")
		if b.ca.begun != 0 || b.file != nil {
			t.Error("a handshake ordered")
		}
		look := b.ca.look
		b.ca.look = func(of string) error {
			if _, err := handshake(b.m.Config(), &tls.Config{ServerName: "other.example.org", NextProtos: []string{"acme-tls/1"}}); err == nil {
				t.Error("the challenge is shown under another name")
			}
			if _, err := handshake(b.m.Config(), &tls.Config{ServerName: name, NextProtos: []string{"h2", "acme-tls/1"}}); err == nil {
				t.Error("the challenge is shown to a caller of another kind")
			}
			return look(of)
		}
		b.run(time.Minute)
		if err := b.serves(); err != nil {
			t.Fatal(err)
		}
		all("after")
		if c, err := handshake(b.m.Config(), &tls.Config{ServerName: name, MaxVersion: tls.VersionTLS12}); err != nil || c == nil {
			t.Error("TLS 1.2: ", err)
		}
		if b.ca.begun != 1 {
			t.Errorf("%d orders", b.ca.begun)
		}
	})
}

// TestAnotherName: a certificate of another name is served until there is one of the new, and another authority
// begins anew.
func TestAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		b.run(time.Minute)
		b.m.SetName("new.example.org")
		b.run(2 * time.Minute)
		if b.ca.begun != 2 || b.m.Status().Name != "new.example.org" {
			t.Errorf("%d orders; %+v", b.ca.begun, b.m.Status())
		}
		if m, err := Open(Options{Directory: base + "other", Read: func() ([]byte, error) { return b.file, nil }}); err != nil || m.current != nil {
			t.Error("the certificate of another authority is there", err)
		}
	})
}

// TestDamaged: a damaged file keeps no site from its start. As nobody knows what was ordered, a day passes first.
func TestDamaged(t *testing.T) {
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:len(b)/2] },
		func(b []byte) []byte { return bytes.Replace(b, []byte("BEGIN CERTIFICATE"), []byte("BEGIN what"), 1) },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBoard(t)
			b.run(time.Minute)
			b.file = damage(b.file)
			b.open()
			b.run(23 * time.Hour)
			if b.ca.begun != 1 || b.serves() == nil {
				t.Errorf("%d orders within a day", b.ca.begun)
			}
			b.run(2 * time.Hour)
			if err := b.serves(); err != nil || b.ca.begun != 2 {
				t.Errorf("%v after a day, %d orders", err, b.ca.begun)
			}
		})
	}
}

// TestDamagedAccount: a site whose account key is damaged serves its certificate, and renews it with another account.
func TestDamagedAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		b.run(time.Minute)
		const begins = `"account_key":"-----BEGIN `
		b.file = bytes.Replace(b.file, []byte(begins+"PRIVATE"), []byte(begins+"what"), 1)
		b.open()
		b.run(40 * 24 * time.Hour)
		if err := b.serves(); err != nil || b.ca.made != 2 {
			t.Errorf("%v, %d certificates", err, b.ca.made)
		}
	})
}

// transcript is an answer of crt.sh, as the README of github.com/wordeater/Format-CRTResponse shows it (and crtsh/certwatch_db,
// fnc/web_apis.fnc, makes it), and in 2025 with further members. The names are of this test.
const transcript = `[
{"issuer_ca_id":16418,"issuer_name":"C=US, O=Let's Encrypt, CN=Let's Encrypt Authority X3","common_name":"board.example.org",
"name_value":"board.example.org","id":3616206571,"entry_timestamp":"2020-11-07T16:46:43.456","not_before":"2020-11-07T15:46:43",
"not_after":"2099-02-05T15:46:43","serial_number":"03ffeea57322e24cd6fd207682f59ead324f"},
{"issuer_ca_id":295813,"issuer_name":"C=US, O=Let's Encrypt, CN=E7","common_name":null,"name_value":"*.example.org\nexample.org","id":21975830168,
"entry_timestamp":null,"not_before":"2025-10-24T17:08:54","not_after":"2099-01-22T17:08:53.5","serial_number":"061989340abe79d","result_count":2}]`

// TestForeign: a certificate of the name in the log that the site did not order is reported while it counts, and its
// own, of before and now, are not. A log that does not answer changes nothing.
func TestForeign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		b.m.Log = base + "log"
		b.run(watchFirst + watchFirst + time.Minute)
		if s := b.m.Status(); len(s.Foreign) != 0 || b.ca.looked != 1 {
			t.Fatalf("%+v after %d looks", s.Foreign, b.ca.looked)
		}
		until := time.Now().Add(30 * 24 * time.Hour).Format("2006-01-02T15:04:05")
		b.ca.log = `[{"serial_number":"0abc","issuer_name":"C=XX","not_after":"` + until + `"},{"serial_number":"0ABC","not_after":"` + until + `"},` +
			`{"serial_number":"02","not_after":"` + until + `"},{"serial_number":"0d","not_after":"1999-01-01T00:00:00"},{"serial_number":"what","not_after":""}]`
		b.run(watchEvery + watchFirst)
		if s := b.m.Status(); len(s.Foreign) != 1 || s.Foreign[0].Serial != "abc" {
			t.Errorf("%+v", s.Foreign)
		}
		read := b.m.Status().LogRead
		for _, answer := range []string{"no JSON", "<html>502", strings.Repeat(" ", maxLog+1) + "[]"} {
			b.ca.log = answer
			b.run(watchEvery + watchFirst)
			if s := b.m.Status(); len(s.Foreign) != 1 || s.LogErr == "" || !s.LogRead.Equal(read) || b.serves() != nil {
				t.Errorf("%+v", s)
			}
		}
		b.ca.log = transcript
		b.run(watchEvery + watchFirst)
		if s := b.m.Status(); len(s.Foreign) != 1 || s.Foreign[0].Serial != "3ffeea57322e24cd6fd207682f59ead324f" || s.LogErr != "" || s.Foreign[0].Until.Year() != 2099 {
			t.Errorf("%+v", s)
		}
		b.open()
		b.m.Log, b.ca.log = base+"log", `[{"serial_number":"02","not_after":"`+until+`"}]`
		b.run(watchEvery)
		if s := b.m.Status(); len(s.Foreign) != 0 {
			t.Errorf("its own, after a start: %+v", s.Foreign)
		}
	})
}

// TestIdle: a manager that has a certificate looks at the time once an hour, and a site without a name no more often.
func TestIdle(t *testing.T) {
	for _, reached := range []string{name, ""} {
		synctest.Test(t, func(t *testing.T) {
			b := newBoard(t)
			b.run(time.Minute)
			b.m.SetName(reached)
			looks := 0
			b.m.Now = func() (time.Time, bool) { looks++; return time.Now(), true }
			if b.run(24 * time.Hour); looks > 26 {
				t.Errorf("%q: it looks %d times in a day", reached, looks)
			}
		})
	}
}

// TestForeignZone: of a name below another's zone, a certificate for all names there is one for it.
func TestForeignZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		b.m.Log, b.m.Given = base+"log", true
		b.ca.log = `[{"serial_number":"0abc"}]`
		b.run(2*watchFirst + time.Minute)
		if s := b.m.Status(); len(s.Foreign) != 1 || s.LogErr == "" || !s.LogRead.IsZero() {
			t.Errorf("one of two is not answered: %+v", s)
		}
		b.ca.log, b.ca.zone = "[]", transcript
		b.run(watchEvery + watchFirst)
		if s := b.m.Status(); len(s.Foreign) != 1 || s.Foreign[0].Name != "*.example.org" || s.Foreign[0].Until.Year() != 2099 || s.LogErr != "" {
			t.Errorf("%+v", s)
		}
	})
}

// TestLogNames: a search finds names around the one that was asked for, which are none of the site's.
func TestLogNames(t *testing.T) {
	for _, c := range []struct {
		names, common string
		is            bool
	}{
		{name, name, true}, {"a.example.org\n" + name, "a.example.org", true}, {"BOARD.Example.org", "", true}, {"", name, true}, {"", "", true},
		{"www." + name, "", false}, {"*." + name, "", false}, {"my" + name + "\n" + name + ".evil.example", "", false}, {"example.org", "*.example.org", false},
	} {
		if e := (logEntry{Names: c.names, Common: c.common}); e.isOf(name) != c.is {
			t.Errorf("%+v", c)
		}
	}
}

// TestOwnOfBefore: what the site ordered of another authority, for trials or before, is its own.
func TestOwnOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(t)
		b.run(time.Minute)
		m, err := Open(Options{Directory: base + "other", Read: func() ([]byte, error) { return b.file, nil }})
		if err != nil {
			t.Fatal(err)
		}
		if found := m.judge([]logEntry{{Serial: "02"}, {Serial: "03"}}, name, time.Now()); len(found) != 1 || found[0].Serial != "3" {
			t.Errorf("%+v", found)
		}
	})
}
