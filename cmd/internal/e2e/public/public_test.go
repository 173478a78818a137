//go:build e2e && linux

package public

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
	"agentsite/node/acts"
)

// TestPublic: a site behind two routers, which nobody reaches, gets a certificate through its relay. A stranger sees
// it by its name and may do nothing.
func TestPublic(t *testing.T) {
	for _, by := range []string{"/quic-v1/", "/tcp/"} {
		t.Run(strings.Trim(by, "/"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.newSite(w.home())
			w.permit(s.key.ID())
			r := w.relay(zone)
			w.run(s, "on", legs(r, by))
			name := s.label(t) + "." + zone
			s.certified(t, name)
			stranger := w.stranger()
			w.refused(t, s, stranger, name)
			w.looks(t, s)
			w.handshakes(stranger, name)
			if n := w.authority.orders(); n != 1 {
				t.Errorf("%d orders\n%s", n, w.authority.log)
			}
		})
	}
}

// TestRenewed: a certificate of two minutes is replaced before its end, over the relay, by a second order. That takes
// two thirds of its life.
func TestRenewed(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 2*time.Minute)
	s := w.newSite(w.home())
	w.permit(s.key.ID())
	w.run(s, "on", w.relay(zone).Addresses)
	name := s.label(t) + "." + zone
	s.certified(t, name)
	first := s.state(t)
	harness.WaitFor(t, time.Until(first.Until), "it is renewed before its end", func() bool { return s.state(t).Until.After(first.Until) })
	if left := time.Until(first.Until); left < 20*time.Second {
		t.Errorf("%v before its end", left)
	}
	if n := w.authority.orders(); n != 2 {
		t.Errorf("%d orders", n)
	}
}

// looks: agentsite public calls the site by its name, and finds nothing wrong.
func (w *world) looks(t *testing.T, s *site) {
	t.Helper()
	steps := w.fromHere(s)
	if len(steps) != 5 {
		t.Errorf("%+v", steps)
	}
	for _, step := range steps {
		if step.Err != "" {
			t.Errorf("%s: %s", step.Step, step.Err)
		}
	}
}

// fromHere returns the steps that agentsite public takes from the site's machine.
func (w *world) fromHere(s *site, flags ...string) []acts.PublicStep {
	w.t.Helper()
	argv := bed.On(s.on, append([]string{"env", "SSL_CERT_FILE=" + w.root(), harness.Program, "public", "--json", "--data", s.data}, flags...)...)
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	var said struct{ Steps []acts.PublicStep }
	if err == nil {
		err = json.Unmarshal(out, &said)
	}
	if err != nil || len(said.Steps) == 0 {
		w.t.Fatalf("%v %s", err, out)
	}
	return said.Steps
}

// handshakes: whatever a stranger asks for, it is shown no certificate but the name's.
func (w *world) handshakes(from, name string) {
	w.t.Helper()
	for what, c := range map[string]struct {
		args  []string
		shown bool
	}{
		"TLS 1.2":      {[]string{"-servername", name, "-tls1_2"}, true},
		"no name":      {[]string{"-noservername"}, false},
		"another name": {[]string{"-servername", "x." + zone}, false},
		"a challenge":  {[]string{"-servername", name, "-alpn", "acme-tls/1"}, false},
		"no ECDSA":     {[]string{"-servername", name, "-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"}, false},
	} {
		argv := bed.On(from, append([]string{"timeout", "10", "openssl", "s_client", "-connect", name + ":443"}, c.args...)...)
		out, _ := exec.Command(argv[0], argv[1:]...).Output() // without an input it ends after the handshake
		if shown := strings.Contains(string(out), "BEGIN CERTIFICATE"); shown != c.shown {
			w.t.Errorf("%s: a certificate is shown: %v\n%s", what, shown, out)
		}
	}
}

// refused: under the public name, nothing answers but /mcp, which asks programs to sign in, how to, and the catalog's
// documents, which are the same for everybody.
func (w *world) refused(t *testing.T, s *site, from, name string) {
	t.Helper()
	root := w.root()
	base := "https://" + name
	for what, args := range map[string][]string{
		"nothing":             nil,
		"the site's token":    {"-H", "Authorization: Bearer " + s.Token},
		"another token":       {"-H", "Authorization: Bearer " + strings.Repeat("x", 43)},
		"a session":           {"-H", "Mcp-Session-Id: 1"},
		"a page of elsewhere": {"-H", "Authorization: Bearer " + s.Token, "-H", "X-Forwarded-For: 127.0.0.1"},
	} {
		for _, verb := range []string{"POST", "GET", "DELETE"} {
			a, err := w.curl(from, root, append(args, "-X", verb, base+"/mcp")...)
			if err != nil || a.code != "401" || !strings.Contains(strings.ToLower(a.header), "resource_metadata=\""+base+"/.well-known/oauth-protected-resource/mcp\"") {
				t.Errorf("%s with %s: %v %+v", verb, what, err, a)
			}
		}
	}
	if a, err := w.curl(from, root, base+"/.well-known/oauth-protected-resource/mcp"); err != nil || a.code != "200" || !strings.Contains(a.body, base+"/mcp") {
		t.Errorf("the description: %v %+v", err, a)
	}
	for _, path := range []string{"/mcp/server-card", "/.well-known/ai-catalog.json", "/.well-known/api-catalog"} {
		if a, err := w.curl(from, root, base+path); err != nil || a.code != "200" ||
			strings.Contains(a.body, s.DID(t)) || strings.Contains(a.body, "relay") {
			t.Errorf("%s: %v %+v", path, err, a)
		}
	}
	if a, err := w.curl(from, root, "-H", "Host: localhost", base+"/mcp"); err != nil || a.code != "403" {
		t.Errorf("another Host: %v %+v", err, a)
	}
	var all, public []string
	for _, c := range s.Routes(t).Carriers {
		switch c.Kind {
		case acts.HTTPCarrier:
			all = c.Routes
		case acts.PublicCarrier:
			public = c.Routes
		}
	}
	if len(all) < 20 || len(public) != 18 {
		t.Errorf("%d routes, and under the public name %q", len(all), public)
	}
	asks := []string{}
	for _, route := range all {
		if slices.Contains(public, route) {
			continue
		}
		verb, path, ok := strings.Cut(route, " ")
		if !ok {
			verb, path = "GET", route
		}
		path = strings.NewReplacer("{$}", "", "...", "", "{", "", "}", "").Replace(path)
		asks = append(asks, fmt.Sprintf("url = %q\nrequest = %q\nheader = \"Authorization: Bearer %s\"\ncacert = %q\n"+
			"output = /dev/null\nwrite-out = \"%%{http_code} %s %s\\n\"\n", base+path, verb, s.Token, root, verb, path))
	}
	argv := bed.On(from, "curl", "-sS", "-K", "-") // on one connection: a network has few
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(strings.Join(asks, "next\n"))
	out, err := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != len(asks) {
		t.Errorf("%d of %d routes answered: %v", len(lines), len(asks), err)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "404 ") {
			t.Error(line)
		}
	}
}
