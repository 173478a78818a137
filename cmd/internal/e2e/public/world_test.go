//go:build e2e && linux

// Package public tests a site's public name: relay, certificate and what strangers may there, in network namespaces,
// with an authority (pebble) and a DNS server of the test.
package public

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/public"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/miekg/dns"
)

const zone = "sites.test"

// roleEnv has this program play one of the roles, instead of running tests: its name, a space and its parameters.
const roleEnv = "E2E_PUBLIC_ROLE"

// roles do not return.
var roles = map[string]func(parameters string){
	"dns": serveDNS, "hold": hold, "delay": delay, "hostile": beHostile, "proxy": proxyTo,
}

func TestMain(m *testing.M) {
	name, parameters, _ := strings.Cut(os.Getenv(roleEnv), " ")
	if play := roles[name]; play != nil {
		play(parameters)
	}
	os.Exit(m.Run())
}

// serveDNS answers from a file of names with an address, or with another name. It is read at each question, and
// *.ZONE is every name below ZONE.
func serveDNS(file string) {
	h := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(q)
		names := make(map[string]string)
		text, _ := os.ReadFile(file)
		_ = json.Unmarshal(text, &names)
		name := strings.ToLower(strings.TrimSuffix(q.Question[0].Name, "."))
		for range 3 {
			value, ok := names[name]
			if !ok {
				_, parent, _ := strings.Cut(name, ".")
				value, ok = names["*."+parent]
			}
			if !ok {
				break
			}
			head := func(t uint16) dns.RR_Header {
				return dns.RR_Header{Name: dns.Fqdn(name), Class: dns.ClassINET, Rrtype: t}
			}
			if ip := net.ParseIP(value); ip != nil {
				if q.Question[0].Qtype == dns.TypeA {
					m.Answer = append(m.Answer, &dns.A{Hdr: head(dns.TypeA), A: ip})
				}
				break
			}
			m.Answer = append(m.Answer, &dns.CNAME{Hdr: head(dns.TypeCNAME), Target: dns.Fqdn(value)})
			name = value
		}
		_ = w.WriteMsg(m)
	})
	for _, by := range []string{"udp", "tcp"} {
		go func() { panic((&dns.Server{Addr: ":53", Net: by, Handler: h}).ListenAndServe()) }()
	}
	select {}
}

// world is an internet with a DNS server, an authority and relays with public names.
type world struct {
	*bed.World
	t         testing.TB
	dir       string
	dnsIP     string
	names     map[string]string // what the DNS knows
	authority authority
	allow     string        // the relays' file
	life      time.Duration // of certificates
}

// authority is pebble on a machine of its own.
type authority struct {
	host, ip, ca, key string // ca is the certificate of its own API
	directory         string // the URL that sites ask
	log               *harness.LogBuffer
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOf(t, 45*24*time.Hour)
}

// newWorldOf is newWorld with the life of certificates.
func newWorldOf(t testing.TB, life time.Duration) *world {
	t.Helper()
	harness.Need(t, "the program", harness.Program)
	w := &world{World: bed.NewWorld(t), t: t, dir: harness.TempDir(t), names: make(map[string]string), life: life}
	var host string
	host, w.dnsIP = w.Public()
	w.setDNS()
	w.plays(host, "dns", w.dnsFile())
	w.startAuthority()
	w.allow = filepath.Join(w.dir, "allow")
	w.permit()
	return w
}

func (w *world) dnsFile() string { return filepath.Join(w.dir, "names.json") }

// setDNS has the DNS know names and values, in pairs, from now on.
func (w *world) setDNS(pairs ...string) {
	w.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		w.names[pairs[i]] = pairs[i+1]
	}
	text, err := json.Marshal(w.names)
	if err == nil {
		err = state.WriteAtomic(w.dnsFile(), text, 0o644)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// resolves has a host ask the test's DNS server.
func (w *world) resolves(host string) string {
	w.t.Helper()
	folder := filepath.Join("/etc/netns", host) // ip-netns(8)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.WriteFile(filepath.Join(folder, "resolv.conf"), []byte("nameserver "+w.dnsIP+"\noptions timeout:1\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return host
}

// start runs a program on a host until the test ends.
func (w *world) start(host string, log *harness.LogBuffer, env []string, argv ...string) {
	w.t.Helper()
	argv = bed.On(host, argv...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// plays has a host play a role until the test ends, and returns what it says.
func (w *world) plays(host, role, parameters string) *harness.LogBuffer {
	w.t.Helper()
	log := &harness.LogBuffer{}
	w.start(host, log, []string{roleEnv + "=" + role + " " + parameters}, os.Args[0])
	return log
}

// converses is plays for a role that ends with its input, which stop closes. next returns the next line that it says.
func (w *world) converses(host, role, parameters string) (next func() string, in io.Writer, stop func()) {
	w.t.Helper()
	argv := bed.On(host, "nice", "-n", "10", os.Args[0]) // what it does is not measured
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Stderr = append(os.Environ(), roleEnv+"="+role+" "+parameters), os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { input.Close(); _ = cmd.Wait() })
	w.t.Cleanup(stop)
	lines := bufio.NewScanner(out)
	return func() string {
		w.t.Helper()
		if !lines.Scan() {
			w.t.Fatalf("%s has ended: %v", role, lines.Err())
		}
		return lines.Text()
	}, input, stop
}

// stranger returns a machine with an address of its own, which asks the test's DNS server.
func (w *world) stranger() string {
	w.t.Helper()
	host, _ := w.Public()
	return w.resolves(host)
}

func (w *world) startAuthority() {
	w.t.Helper()
	program := harness.Need(w.t, "pebble", os.Getenv("PEBBLE"))
	if _, err := os.Stat(program); err != nil {
		harness.Need(w.t, "pebble", "")
	}
	a := &w.authority
	a.host, a.ip = w.Public()
	a.ca, a.log = filepath.Join(w.dir, "ca.pem"), &harness.LogBuffer{}
	a.key, a.directory = filepath.Join(w.dir, "api.key"), "https://"+a.ip+":14000/dir"
	selfSigned(w.t, a.ip, a.ca, a.key)
	config, _ := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": a.ip + ":14000", "managementListenAddress": a.ip + ":15000", "certificate": a.ca, "privateKey": a.key,
		"httpPort": 80, "tlsPort": 443, "externalAccountBindingRequired": false,
		"retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles":   map[string]any{"default": map[string]any{"description": "the only one", "validityPeriod": int(w.life.Seconds())}},
	}})
	file := filepath.Join(w.dir, "pebble.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.start(a.host, a.log, []string{"PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=5"}, program, "-config", file, "-dnsserver", w.dnsIP+":53")
	harness.WaitFor(w.t, 20*time.Second, "the authority answers", func() bool {
		return exec.Command("ip", "netns", "exec", a.host, "curl", "-sk", "-o", "/dev/null", "https://"+a.ip+":14000/dir").Run() == nil
	})
}

// root returns a file with the certificate that clients trust.
func (w *world) root() string {
	w.t.Helper()
	out, err := exec.Command("ip", "netns", "exec", w.authority.host, "curl", "-sk", "https://"+w.authority.ip+":15000/roots/0").Output()
	file := filepath.Join(w.dir, "root.pem")
	if err == nil {
		err = os.WriteFile(file, out, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return file
}

// trust returns a file with the certificates that a site trusts: of the authority's own API, and those that it makes.
func (w *world) trust() string {
	w.t.Helper()
	var all []byte
	for _, file := range []string{w.authority.ca, w.root()} {
		text, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, text...)
	}
	file := filepath.Join(w.dir, "trust.pem")
	if err := os.WriteFile(file, all, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return file
}

// permit lists sites that the relays give public names to.
func (w *world) permit(sites ...identity.ID) {
	w.t.Helper()
	text := "# the sites with a public name\n"
	for _, s := range sites {
		text += s.String() + "\n"
	}
	if err := os.WriteFile(w.allow, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// relay starts a relay with public names below a zone, which the DNS has point to it.
func (w *world) relay(zone string) *harness.PublicRelay {
	w.t.Helper()
	r := &harness.PublicRelay{Folder: harness.TempDir(w.t), Flags: []string{"--public", zone, "--allow", w.allow}}
	r.Host, r.IP = w.Public()
	w.resolves(r.Host)
	w.setDNS("*."+zone, r.IP)
	r.Start(w.t)
	return r
}

// home returns a machine behind two routers, that of a home and that of its provider.
func (w *world) home() (host string) {
	w.t.Helper()
	provider := w.Home(bed.Symmetric)
	inner := provider.Host()
	host = w.Host()
	w.IP(inner, "link add lan type veth peer name eth0 netns "+host, "addr add 10.1.1.1/24 dev lan", "link set lan up")
	w.IP(host, "addr add 10.1.1.2/24 dev eth0", "link set eth0 up", "route add default via 10.1.1.1")
	run := func(input string, argv ...string) {
		argv = bed.On(inner, argv...)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin = strings.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
	run("", "sysctl", "-qw", "net.ipv4.ip_forward=1")
	run(`table ip nat { chain outward { type nat hook postrouting priority srcnat; oifname "eth0" masquerade random,fully-random; }; }
table ip wall { chain through { type filter hook forward priority filter; policy drop; iifname "lan" accept; ct state established,related accept; }; }`, "nft", "-f", "-")
	return w.resolves(host)
}

// site is a site with a public name.
type site struct {
	*harness.Site
	key  identity.Key
	on   string
	data string
}

// newSite makes the folder of a site, which is not started.
func (w *world) newSite(on string) *site {
	w.t.Helper()
	s := &site{key: identity.New(), on: on, data: harness.TempDir(w.t)}
	if err := os.WriteFile(filepath.Join(s.data, "key"), s.key.PEM(), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// label is the first label of the site's names.
func (s *site) label(t testing.TB) string {
	t.Helper()
	id, err := peer.Decode(s.key.ID().PeerID())
	if err != nil {
		t.Fatal(err)
	}
	return public.Label(id)
}

// run starts the site with a public name, and relays; keys are further ones of the section internet.
func (w *world) run(s *site, name string, relays []string, keys ...string) {
	w.t.Helper()
	section := append([]string{"public: " + name, `acme: "` + w.authority.directory + `"`}, keys...)
	if len(relays) > 0 {
		section = append(section, `relays: ["`+strings.Join(relays, `", "`)+`"]`)
	}
	w.runWith(s, "internet: { "+strings.Join(section, ", ")+" }", "--listen-peers", ":8475")
}

// runWith starts the site with further lines of its configuration.
func (w *world) runWith(s *site, lines string, flags ...string) {
	w.t.Helper()
	config := "site: { name: shed }\ndevices:\n  lamp: { driver: sim, model: relay, min_off: 0 }\n" + lines + "\n"
	argv := bed.On(s.on, "env", "SSL_CERT_FILE="+w.trust(), harness.Program, "run")
	s.Site = harness.StartIn(w.t, s.data, config, nil, append(argv, flags...)...)
	var err error
	if s.key, err = state.Folder(s.data).ReadKey(); err != nil {
		w.t.Fatal(err)
	}
	if _, err := s.CLI(w.t, "clock", "--set"); err != nil { // this machine's clock may not be set, as the site sees it
		w.t.Fatal(err)
	}
}

// state returns what the site says about its public name.
func (s *site) state(t testing.TB) (p acts.PublicState) {
	t.Helper()
	out, err := s.CLI(t, "public", "--json")
	if err != nil {
		t.Fatal(err)
	}
	harness.DecodeJSON(t, out, &p)
	return p
}

// certified waits until the site has its certificate.
func (s *site) certified(t testing.TB, name string) {
	t.Helper()
	begun := time.Now()
	defer func() {
		if t.Failed() {
			t.Logf("%+v\nthe site's log:\n%s", s.state(t), s.Log)
		}
	}()
	harness.WaitFor(t, 2*time.Minute, "there is a certificate for "+name, func() bool { return s.state(t).Certificate == name })
	t.Logf("a certificate for %s after %v", name, time.Since(begun).Round(10*time.Millisecond))
}

// answer is an answer to curl.
type answer struct {
	code   string
	header string
	body   string
}

// curl asks from a host, as a stranger that trusts the authority.
func (w *world) curl(on, root string, args ...string) (a answer, err error) {
	w.t.Helper()
	argv := bed.On(on, append([]string{"curl", "-sS", "--max-time", "10", "--cacert", root, "-D", "-"}, args...)...)
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if exit, ok := err.(*exec.ExitError); ok {
		return a, fmt.Errorf("curl: %w: %s", err, exit.Stderr)
	}
	a.header, a.body, _ = strings.Cut(string(out), "\r\n\r\n")
	if words := strings.Fields(a.header); len(words) > 1 {
		a.code = words[1]
	}
	return a, err
}

// legs returns the relay's addresses by one carrier.
func legs(r *harness.PublicRelay, by string) []string {
	return slices.DeleteFunc(slices.Clone(r.Addresses), func(at string) bool { return !strings.Contains(at, by) })
}

// orders returns how many orders the authority had.
func (a *authority) orders() (n int) {
	for all := bufio.NewScanner(strings.NewReader(a.log.String())); all.Scan(); {
		if strings.Contains(all.Text(), "to the db") && strings.Contains(all.Text(), "order") {
			n++
		}
	}
	return n
}
