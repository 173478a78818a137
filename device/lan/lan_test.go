package lan

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"

	"github.com/miekg/dns"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDialNames(t *testing.T) {
	for host, want := range map[string]bool{
		"kitchen.local": true, "Kitchen.LOCAL.": true, "kitchen": false, "local": false, ".local": false,
		"kitchen.local.example.com": false, "192.0.2.7": false,
	} {
		if isLocal(host) != want {
			t.Errorf("%q is local: %v", host, !want)
		}
	}
	for _, address := range []string{"kitchen", "", "kitchen.local", "[::1"} {
		if _, err := Dial(t.Context(), address); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%q: %v", address, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, "127.0.0.1:9"); !errors.Is(err, context.Canceled) || device.AsFault(err).Kind != device.Offline {
		t.Errorf("a cancelled Dial: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	c.Close()
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) { // what is unsent is not sent
		t.Errorf("a closed connection ends with %v", err)
	}
}

// TestRace: a device is reached although another host claims its name, whether that refuses or is silent. No
// connection but the first stays open.
func TestRace(t *testing.T) {
	silent, refuses, works := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	var open []*fakeConn
	dial := func(ctx context.Context, a netip.Addr) (net.Conn, error) {
		switch a {
		case silent:
			<-ctx.Done()
			return nil, ctx.Err()
		case refuses:
			return nil, io.ErrUnexpectedEOF
		}
		c := new(fakeConn)
		open = append(open, c)
		return c, nil
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c, err := race(t.Context(), []netip.Addr{silent, refuses, works}, dial)
		if err != nil || time.Since(start) != headStart {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		c.Close()
		if _, err := race(t.Context(), []netip.Addr{refuses, refuses}, dial); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := race(ctx, []netip.Addr{silent, silent}, dial); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if len(open) != 1 || !open[0].closed {
			t.Errorf("%d connections", len(open))
		}
	})
}

type fakeConn struct {
	net.Conn
	closed bool
}

func (c *fakeConn) Close() error { c.closed = true; return nil }

var link = iface{net.Interface{Name: "lan0", Index: 3}, []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("fe80::/64")}}

// said makes a packet of records.
func said(t testing.TB, records ...string) packet {
	t.Helper()
	var m dns.Msg
	m.Response = true
	for _, r := range records {
		rr, err := dns.NewRR(r)
		if err != nil {
			t.Fatal(err)
		}
		m.Answer = append(m.Answer, rr)
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packet{b, link}
}

// TestAnswers: only what was asked is taken, and only addresses of this network.
func TestAnswers(t *testing.T) {
	a := newAnswers()
	questions := addressQuestions("kitchen.local.")
	a.add(said(t,
		"Kitchen.local. 120 IN A 198.51.100.7",
		"kitchen.local. 9 IN A 10.0.0.7",        // private
		"kitchen.local. 120 IN A 203.0.113.1",   // public, of another network
		"kitchen.local. 120 IN A 127.0.0.1",     // this machine
		"kitchen.local. 120 IN A 0.0.0.0",       // this machine, too
		"kitchen.local. 120 IN AAAA ::1",        //
		"kitchen.local. 120 IN A 224.0.0.1",     // a group
		"kitchen.local. 0 IN A 198.51.100.8",    // a goodbye
		"kitchen.local. 120 IN AAAA fe80::7",    // of this link
		"bath.local. 120 IN A 198.51.100.9",     // not asked
		"kitchen.local. 120 IN TXT \"a=b\"",     // not asked
		"_x._tcp.local. 120 IN PTR y.local.",    // not asked
		"kitchen.local. 120 IN A 198.51.100.7"), // again
		questions)
	want := []netip.Addr{netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("fe80::7%lan0")}
	if got := a.addrs["kitchen.local."]; !slices.Equal(got, want) || len(a.addrs) != 1 {
		t.Errorf("%v", a.addrs)
	}
	if a.ttl != 9*time.Second || len(a.pointed) != 0 {
		t.Errorf("%v, %v", a.ttl, a.pointed)
	}
}

// TestBrowse: an instance has what its device sent, in one packet or several, and nothing that is not printable.
func TestBrowse(t *testing.T) {
	b := &browser{service: "_esphomelib._tcp.local.", answers: newAnswers()}
	add := func(records ...string) { b.answers.add(said(t, records...), b.questions()) }
	add(`_esphomelib._tcp.local. 10 IN PTR Living\032Room\.2._esphomelib._tcp.local.`,
		`Living\032Room\.2._esphomelib._tcp.local. 10 IN SRV 0 0 6053 living.local.`,
		`Living\032Room\.2._esphomelib._tcp.local. 10 IN TXT "MAC=aabb" "mac=ccdd" "board=esp32" "bad=\007" "=x" "flag"`,
		`living.local. 10 IN A 198.51.100.7`,
		`_http._tcp.local. 10 IN PTR web._http._tcp.local.`)
	add(`_esphomelib._tcp.local. 10 IN PTR bath._esphomelib._tcp.local.`)
	if !slices.Contains(b.questions(), question{"bath._esphomelib._tcp.local.", dns.TypeSRV}) {
		t.Errorf("%v", b.questions())
	}
	add(`bath._esphomelib._tcp.local. 10 IN SRV 0 0 6054 BATH.local.`)
	if !slices.Contains(b.questions(), question{"bath.local.", dns.TypeA}) {
		t.Errorf("%v", b.questions())
	}
	add(`bath.local. 10 IN A 198.51.100.8`,
		`_esphomelib._tcp.local. 10 IN PTR evil\027[2J._esphomelib._tcp.local.`,
		`evil\027[2J._esphomelib._tcp.local. 10 IN SRV 0 0 6053 evil.local.`,
		`_esphomelib._tcp.local. 10 IN PTR far._esphomelib._tcp.local.`,
		`far._esphomelib._tcp.local. 10 IN SRV 0 0 6053 example.com.`,
		`_esphomelib._tcp.local. 10 IN PTR other._http._tcp.local.`,
		`other._http._tcp.local. 10 IN SRV 0 0 80 other.local.`)
	all := b.instances()
	if len(all) != 2 {
		t.Fatalf("%v", all)
	}
	if i := all[0]; i.Name != "Living Room.2" || i.Host != "living.local" || i.Port != 6053 || len(i.Addresses) != 1 ||
		len(i.Text) != 3 || i.Text["mac"] != "aabb" || i.Text["board"] != "esp32" {
		t.Errorf("%+v", i)
	}
	if i := all[1]; i.Name != "bath" || i.Host != "bath.local" || i.Port != 6054 || len(i.Addresses) != 1 || len(i.Text) != 0 {
		t.Errorf("%+v", i)
	}
	if len(b.questions()) != 1+2+2 { // evil and far have no address
		t.Errorf("%v", b.questions())
	}
	if b := pack(7, b.questions()); b == nil || b[0] != 0 || b[1] != 7 {
		t.Error("the questions cannot be sent")
	}
}

// TestOnLink: an answer comes from the mDNS port of a host of the network.
func TestOnLink(t *testing.T) {
	q := &query{own: map[int]iface{3: link}}
	for from, want := range map[string]bool{
		"198.51.100.7:5353": true, "198.51.100.7:5354": false, "203.0.113.1:5353": false, "[fe80::1%lan0]:5353": true,
		"[2001:db8::1]:5353": false,
	} {
		for _, on := range []int{0, 3} {
			if _, got := q.link(on, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(from))); got != want {
				t.Errorf("%s on %d: %v", from, on, got)
			}
		}
		if _, got := q.link(4, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(from))); got {
			t.Errorf("%s on another interface", from)
		}
	}
}

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cache
		at := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
		c.put("Kitchen.local", at, time.Hour)
		c.put("bath.local", at, time.Second)
		c.put("hall.local", at, 0)
		if c.get("kitchen.local") == nil || c.get("bath.local") == nil || c.get("hall.local") != nil {
			t.Error("what is cached")
		}
		time.Sleep(time.Second)
		if c.get("bath.local") != nil {
			t.Error("an address outlives its TTL")
		}
		time.Sleep(maxCached)
		if c.get("kitchen.local") != nil {
			t.Error("an address is cached for longer than a minute")
		}
		for i := range 2 * maxNames {
			c.put(strings.Repeat("x", i+1)+".local", at, time.Minute)
		}
		if len(c.known) != maxNames {
			t.Errorf("%d names", len(c.known))
		}
		c.forget("X.local")
		if c.get("x.local") != nil {
			t.Error("not forgotten")
		}
	})
}

// TestForget: a name whose cached addresses do not answer is asked for again.
func TestForget(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	names.put("moved.local", []netip.Addr{netip.MustParseAddr("127.0.0.1")}, time.Minute)
	defer names.forget("moved.local")
	c, err := Dial(t.Context(), "moved.local:"+port)
	if err != nil || names.get("moved.local") == nil {
		t.Fatal(err)
	}
	c.Close()
	l.Close()
	if _, err := Dial(t.Context(), "moved.local:"+port); device.AsFault(err).Kind != device.Offline || names.get("moved.local") != nil {
		t.Errorf("%v, and its address is cached: %v", err, names.get("moved.local"))
	}
}

// TestLimit: a peer within the rate is read for ever; one that floods is disconnected, at the latest after what it may
// send in two seconds.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := Limit(near, 1000)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 60 {
				far.Write(make([]byte, 900))
				time.Sleep(time.Second)
			}
			for err := error(nil); err == nil; {
				_, err = far.Write(make([]byte, 100))
				time.Sleep(time.Millisecond)
			}
		}()
		got, b := 0, make([]byte, 4096)
		var err error
		for err == nil {
			var n int
			n, err = c.Read(b)
			got += n
		}
		if device.AsFault(err).Kind != device.Offline || got < 60*900 || got > 60*900+2000 {
			t.Errorf("%d bytes, %v", got, err)
		}
		if _, again := c.Read(b); again != err {
			t.Error(again)
		}
		<-done
	})
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Backoff
		pause := func(hurry <-chan struct{}) time.Duration {
			start := time.Now()
			if err := b.Wait(t.Context(), hurry); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		if got := pause(nil); got != 0 {
			t.Errorf("the first attempt is delayed by %v", got)
		}
		for _, least := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
			least := time.Duration(least) * time.Second
			if got := pause(nil); got < least || got > least+least/8 {
				t.Errorf("a pause of %v, want %v", got, least)
			}
		}
		hurry := make(chan struct{})
		close(hurry)
		if got := pause(hurry); got != time.Second {
			t.Errorf("in a hurry after %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := b.Wait(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		b.Succeeded()
		if got := pause(nil); got != 0 { // the last attempt was more than a second ago
			t.Errorf("after a success %v", got)
		}
		if got := pause(nil); got < time.Second || got > time.Second+time.Second/8 {
			t.Errorf("the second one after a success %v", got)
		}
	})
}

// FuzzAnswers: a responder can send anything.
func FuzzAnswers(f *testing.F) {
	f.Add(said(f, "kitchen.local. 120 IN A 198.51.100.7", "_x._tcp.local. 9 IN PTR a._x._tcp.local.",
		"a._x._tcp.local. 9 IN SRV 0 0 80 kitchen.local.", `a._x._tcp.local. 9 IN TXT "a=\\b"`).bytes)
	f.Fuzz(func(t *testing.T, b []byte) {
		br := &browser{service: "_x._tcp.local.", answers: newAnswers()}
		for range 2 {
			br.answers.add(packet{b, link}, append(br.questions(), addressQuestions("kitchen.local.")...))
			pack(1, br.questions())
		}
		for _, i := range br.instances() {
			if !printable(i.Name) || i.Port == 0 || len(i.Addresses) > maxAddrs || len(i.Text) > maxText {
				t.Errorf("%+v", i)
			}
		}
	})
}
