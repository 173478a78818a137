//go:build e2e && linux

package public

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
	"agentsite/node/acts"
	"agentsite/transport/public"
)

// TestRelayRestarts: the relay is killed in an order, before the authority looks, and comes again. The site has its
// certificate after one order more, a minute later.
func TestRelayRestarts(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"/quic-v1/", "/tcp/"} {
		t.Run(strings.Trim(by, "/"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			keep := w.delays()
			s := w.newSite(w.home())
			w.permit(s.key.ID())
			r := w.relay(zone)
			kept := keep("/authZ/")
			w.run(s, "on", legs(r, by))
			kept()
			r.Kill()
			keep("")
			harness.WaitFor(t, 60*time.Second, "the authority has tried the challenge", func() bool {
				return strings.Contains(w.authority.log.String(), "by completed challenge")
			})
			r.Start(t)
			s.certified(t, s.label(t)+"."+zone)
			if n := w.authority.orders(); n != 2 {
				t.Errorf("%d orders", n)
			}
		})
	}
}

// TestMoved: an owner's own name is a CNAME of the site's name. The site says what is missing, and is reached by it
// once it is there. The other relay, which does not bring its callers, shows it itself as others see it. When the CNAME
// moves to that relay, the certificate and the tokens of programs that signed in stay.
func TestMoved(t *testing.T) {
	t.Parallel()
	const own = "board.owner.test"
	w := newWorld(t)
	s := w.newSite(w.home())
	w.permit(s.key.ID())
	first, second := w.relay(zone), w.relay("other.test")
	w.run(s, own, append(first.Addresses[:1:1], second.Addresses[0]))
	harness.WaitFor(t, 30*time.Second, "both relays say what is missing", func() bool {
		p := s.state(t)
		return len(p.Relays) == 2 && strings.Contains(p.Relays[0].Why, "CNAME") && strings.Contains(p.Relays[1].Why, "CNAME") && p.Target != ""
	})
	if n := w.authority.orders(); n != 0 {
		t.Errorf("%d orders for a name that leads nowhere", n)
	}
	w.setDNS(own, s.label(t)+"."+zone)
	s.certified(t, own)
	stranger := w.stranger()
	root, at := w.root(), "https://"+own+"/mcp"
	if a, err := w.curl(stranger, root, "-X", "POST", at); err != nil || a.code != "401" {
		t.Errorf("by the first relay: %v %+v", err, a)
	}
	if p := s.state(t); !strings.Contains(p.URL, own) {
		t.Errorf("%+v", p)
	}
	var seen acts.PublicState
	harness.WaitFor(t, 2*time.Minute, "the other relay makes a look", func() bool {
		seen = s.state(t)
		all := seen.Relays[1].Steps
		return len(all) > 0 && all[0].Step != public.StepRefused // it asks too often meanwhile
	})
	if steps := seen.Relays[1].Steps; len(seen.Relays[0].Steps) > 0 || len(steps) != 5 || steps[4].Err != "" {
		t.Errorf("from outside: %+v", steps)
	}
	p := &place{Site: s.Site, url: at, certificate: root}
	p.http = w.browser(stranger, root, map[string]string{own + ":443": first.IP + ":443"})
	p.owner(t, "token", "add", "first", "read *") // its signer becomes the owner
	token := p.byGo(t, "lamp")
	if code, err := w.pings(stranger, root, at, token); err != nil || code == "401" {
		t.Errorf("its token: %s, %v", code, err)
	}
	if seen = s.state(t); len(seen.SignIns) == 0 {
		t.Error("no step of its sign-in is remembered")
	}
	first.Kill()
	w.setDNS(own, s.label(t)+".other.test")
	code := ""
	harness.WaitFor(t, 3*time.Minute, "it is reached by the second relay", func() bool {
		var err error
		code, err = w.pings(stranger, root, at, token)
		return err == nil
	})
	if code == "401" {
		t.Errorf("its token after the move: %s", code)
	}
	if n := w.authority.orders(); n != 1 {
		t.Errorf("%d orders", n)
	}
	if now := s.state(t); !now.Until.Equal(seen.Until) {
		t.Errorf("another certificate, until %v and not %v", now.Until, seen.Until)
	}
}

// TestForwarded: without a relay, the owner's router forwards a port to the site, which gets its certificate itself. A
// name that leads into the owner's network is not called there, unless they write it.
func TestForwarded(t *testing.T) {
	t.Parallel()
	const own = "board.owner.test"
	w := newWorld(t)
	home := w.Home(bed.Preserving)
	s := w.newSite(w.resolves(home.Host()))
	home.Forward(443, "192.168.1.2:8443")
	w.setDNS(own, home.IP)
	w.run(s, own, nil, `public_listen: ":8443"`)
	s.certified(t, own)
	w.refused(t, s, w.stranger(), own)
	w.setDNS(own, "192.168.1.1") // as a site that wants its owner's computer to call the router
	for private, flags := range map[bool][]string{true: nil, false: {"--to", "192.168.1.1"}} {
		if first := w.fromHere(s, flags...)[0]; first.Err == "" || first.Step != public.StepConnect || strings.Contains(first.Err, "private network") != private {
			t.Errorf("%q: %+v", flags, first)
		}
	}
}

// hold opens connections, as HOST:PORT COUNT KIND has it, prints how many are answered, and keeps them until its input
// ends. tls are silent after their handshake, body send a request with a byte of its body a second, hello nothing but a
// ClientHello, and slow a byte of one a second; the last two await no answer.
func hold(parameters string) {
	words := strings.Fields(parameters)
	at, kind := words[0], words[2]
	n, _ := strconv.Atoi(words[1])
	host, _, _ := net.SplitHostPort(at)
	good := 0
	var all []net.Conn // or they would be closed as garbage
	drip := func(c net.Conn, text string) {
		for _, b := range []byte(text) {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	}
	for range n {
		raw, err := net.DialTimeout("tcp", at, 10*time.Second)
		if err != nil {
			continue
		}
		c := tls.Client(raw, &tls.Config{ServerName: host, InsecureSkipVerify: true})
		all = append(all, c)
		switch kind {
		case "slow":
			go drip(raw, helloOf(host))
		case "hello":
			_, err = io.WriteString(raw, helloOf(host))
		default:
			raw.SetDeadline(time.Now().Add(10 * time.Second))
			if err = c.Handshake(); err == nil && kind == "body" {
				_, err = io.WriteString(c, "POST /register HTTP/1.1\r\nHost: "+host+"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
				go drip(c, strings.Repeat(" ", 1000))
			}
			raw.SetDeadline(time.Time{})
		}
		if err == nil {
			good++
		}
	}
	fmt.Println(good)
	_, _ = io.Copy(io.Discard, os.Stdin)
	for _, c := range all {
		c.Close()
	}
	os.Exit(0)
}

// holds has a host hold connections until the test ends or stop is called, and returns how many are answered.
func (w *world) holds(on, name string, count int, kind string) (answered int, stop func()) {
	w.t.Helper()
	next, _, stop := w.converses(on, "hold", fmt.Sprintf("%s:443 %d %s", name, count, kind))
	answered, err := strconv.Atoi(next())
	if err != nil {
		w.t.Fatal(err)
	}
	return answered, stop
}

// TestCallers: strangers that hold all of a site's connections keep nobody from another site of the same relay, and
// nobody for good, whether they are silent, slow, or gone without a word. The relay's memory contains the name that was
// called, and no content of the call. A site that the relay's owner has not listed has no name.
func TestCallers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	on := w.home()
	s, other, unlisted := w.newSite(on), w.newSite(w.home()), w.newSite(w.home())
	w.permit(s.key.ID(), other.key.ID())
	r := w.relay(zone)
	w.run(s, "on", r.Addresses)
	w.run(other, "on", r.Addresses)
	w.run(unlisted, "on", r.Addresses)
	name, second := s.label(t)+"."+zone, other.label(t)+"."+zone
	s.certified(t, name)
	other.certified(t, second)

	stranger := w.stranger()
	root := w.root()
	w.readsNothing(t, r, s, stranger, name)

	total := 0
	var stops []func()
	for range 3 {
		n, stop := w.holds(w.stranger(), name, 20, "tls")
		if n > 16 {
			t.Errorf("one network holds %d connections", n)
		}
		total += n
		stops = append(stops, stop)
	}
	if total > 32 || total < 16 {
		t.Errorf("strangers hold %d connections", total)
	}
	if a, err := w.curl(stranger, root, "-X", "POST", "https://"+second+"/mcp"); err != nil || a.code != "401" {
		t.Errorf("another site: %v %+v", err, a)
	}
	if _, err := s.CLI(t, "points"); err != nil {
		t.Errorf("a caller on the site's machine: %v", err)
	}
	harness.WaitFor(t, 30*time.Second, "silent callers are ended", func() bool {
		a, err := w.curl(stranger, root, "-X", "POST", "https://"+name+"/mcp")
		return err == nil && a.code == "401"
	})
	for _, stop := range stops {
		stop()
	}
	w.slowCallers(t, s, root, name, second)
	if size := harness.Status(t, r.Cmd.Process.Pid, "VmHWM:") / 1024; size > 100 {
		t.Errorf("the relay took %.0f MB", size)
	} else {
		t.Logf("the relay took %.0f MB at most", size)
	}
	if p := unlisted.state(t); p.URL != "" || len(p.Relays) != 1 || p.Relays[0].Why == "" {
		t.Errorf("a site that is not listed: %+v", p)
	}
	if _, err := w.curl(stranger, root, "https://"+unlisted.label(t)+"."+zone+"/mcp"); err == nil {
		t.Error("a site that is not listed is reached")
	}
}

// slowCallers: strangers with half of a site's connections that send a byte a second, and others whose ClientHello
// comes so, delay nobody; and those whose machine is gone have their places for seconds.
func (w *world) slowCallers(t *testing.T, s *site, root, name, other string) {
	t.Helper()
	stranger := w.stranger() // that has not called before, and is not too often there
	if n, _ := w.holds(w.stranger(), name, 20, "body"); n != 16 {
		t.Errorf("one network holds %d slow requests", n)
	}
	w.holds(w.stranger(), name, 60, "slow")
	w.answered(t, 2*time.Second, stranger, root, name)
	w.answered(t, 2*time.Second, stranger, root, other)
	if _, err := s.CLI(t, "points"); err != nil {
		t.Errorf("a caller on the site's machine: %v", err)
	}
	var gone []string
	for range 2 {
		host := w.stranger()
		w.holds(host, name, 16, "tls")
		gone = append(gone, host)
	}
	for _, host := range gone {
		w.IP(host, "link set eth0 down")
	}
	w.answered(t, 2*time.Second, stranger, root, other)
	harness.WaitFor(t, 30*time.Second, "callers that are gone are ended", func() bool {
		a, err := w.curl(stranger, root, "-X", "POST", "https://"+name+"/mcp")
		return err == nil && a.code == "401"
	})
}
