//go:build e2e

package access

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/tls"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// probed is a site, with all that it must not tell.
type probed struct {
	*harness.Site
	claimed bool
	routes  acts.Routes
	tools   []string
	secrets []string // names of its tools, devices and points, and what readings are made of; five letters at least, for a key or a challenge may have any three
	held    string   // the witness of an output that its owner holds
	free    string   // and of an output that nobody holds
	session string   // of an older revision, open for the holder of the site's token
	probes  int
}

// startProbed starts a site of which one output is held, and asks it for its ways in.
func startProbed(t *testing.T, claimed bool, internet ...string) *probed {
	t.Helper()
	dir := harness.TempDir(t)
	p := &probed{claimed: claimed, held: filepath.Join(dir, "hartebeest"), free: filepath.Join(dir, "springbok")}
	data := harness.TempDir(t)
	certify(t, data)
	p.Site = harness.StartIn(t, data, "site: { name: quagga }\nprotocols: ["+strings.Join(config.Protocols, ", ")+"]\nhttp: { domain: garden.example.org, certificate: domain.pem, certificate_key: domain.key }\ninternet: { "+
		strings.Join(append(internet, "realm: \""+probedRealm+"\""), ", ")+" }\ndevices:\n"+
		"  hartebeest: { driver: sim, model: relay, min_off: 0s, outputs_file: "+p.held+" }\n"+
		"  springbok: { driver: sim, model: relay, min_off: 0s, outputs_file: "+p.free+" }\n"+
		"  bontebok: { driver: sim, model: dimmer }\n"+
		"  okapi: { driver: sim, model: climate }\n", nil, harness.Need(t, "the program", harness.Program), "--listen-https=127.0.0.1:0", "--listen-peers=127.0.0.1:0")
	harness.WaitFor(t, time.Minute, "the relay switches", func() bool {
		_, err := p.CLI(t, "set", "hartebeest/relay", "on", "--for", "5m")
		return err == nil
	})
	if claimed {
		if _, err := p.CLI(t, "token", "add", "first", "read *"); err != nil {
			t.Fatal(err)
		}
	}
	p.routes = p.Routes(t)
	owner, err := peer.Dial(peer.Target{Folder: state.Folder(p.Folder), Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	tools, err := owner.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		p.tools = append(p.tools, tool.Name)
	}
	p.secrets = append([]string{
		"quagga", "zorilla", "hartebeest", "springbok", "bontebok", "okapi", "relay", "level", "temperature", "humidity", "pressure", "%RH",
		"quality", "seconds_left", "held_by", "inputSchema", "structuredContent", "agentsite_", "check_up", "overnight", "list_changed", "acknowledged",
	}, p.tools...)
	p.session = p.BeginSession(t, p.Token)
	return p
}

// certify writes a certificate of garden.example.org and its key into a folder: a site with a domain
// has one more route.
func certify(t *testing.T, dir string) {
	t.Helper()
	out, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=garden.example.org",
		"-addext", "subjectAltName=DNS:garden.example.org", "-keyout", filepath.Join(dir, "domain.key"), "-out", filepath.Join(dir, "domain.pem")).CombinedOutput()
	if err != nil {
		t.Fatalf("openssl: %v %s", err, out)
	}
}

// inCBOR is a message in CBOR.
func inCBOR(t *testing.T, body string) string {
	t.Helper()
	var b bytes.Buffer
	if err := rpc.CBOR.Encode(&b, rpc.RawJSON([]byte(body))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestProbe asks a site in every way that the running program has, without anything that
// counts, and hears nothing of it. A new way that tells something, or of which the probe
// does not know how to ask, fails it.
func TestProbe(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", harness.TempDir(t))
	claimed, unclaimed := startProbed(t, true), startProbed(t, false)
	ended := claimed.ExpiredToken(t)
	for name, p := range map[string]*probed{"claimed": claimed, "unclaimed": unclaimed} {
		t.Run(name, func(t *testing.T) {
			if got, want := socketsOf(p.routes.Carriers), listening(t, p.Cmd.Process.Pid); !slices.Equal(got, want) {
				t.Errorf("the site says that it listens on %q, and the system %q: name every carrier in owner/routes, and teach the probe about it", got, want)
			}
			if out, _ := p.CLI(t, "doctor"); !strings.Contains(out, "listens at "+p.URL) {
				t.Error(out)
			}
			_, heldSince := harness.ReadWitness(p.held)
			_, freeSince := harness.ReadWitness(p.free)
			other := map[*probed]*probed{claimed: unclaimed, unclaimed: claimed}[p]
			for _, c := range p.routes.Carriers {
				t.Run(c.Kind, func(t *testing.T) {
					probe := map[string]func(*testing.T, acts.Carrier){
						acts.HTTPCarrier: func(t *testing.T, c acts.Carrier) {
							p.overHTTP(t, c, &http.Client{CheckRedirect: stay}, p.useless(ended, other.Token))
						},
						acts.HTTPSCarrier: func(t *testing.T, c acts.Carrier) {
							useless := p.useless(ended, other.Token)
							useless["the folder's token"] = func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+p.Token) }
							id, err := state.Folder(p.Folder).Identity()
							if err != nil {
								t.Fatal(err)
							}
							pinned, err := identity.Parse(id.DID)
							if err != nil {
								t.Fatal(err)
							}
							secured, err := web.ClientTLS(identity.New(), pinned)
							if err != nil {
								t.Fatal(err)
							}
							with := &http.Client{CheckRedirect: stay, Transport: &http.Transport{TLSClientConfig: secured}}
							defer with.CloseIdleConnections()
							p.overHTTP(t, c, with, useless)
							nobody := &http.Client{CheckRedirect: stay, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
							defer nobody.CloseIdleConnections()
							p.overHTTP(t, c, nobody, useless)
						},
						acts.P2PCarrier:    p.overPeers,
						acts.OwnerCarrier:  p.ownersSocket,
						acts.AgentsCarrier: p.agentsSocket,
					}[c.Kind]
					if probe == nil {
						t.Fatalf("a carrier %q: teach the probe about it", c.Kind)
					}
					probe(t, c)
				})
			}
			if v, at := harness.ReadWitness(p.held); v != "on" || at != heldSince {
				t.Errorf("what the owner holds is %s since %v, and was on since %v\n%s", v, at, heldSince, p.Log)
			}
			if v, at := harness.ReadWitness(p.free); v != "off" || at != freeSince {
				t.Errorf("what nobody holds is %s since %v", v, at)
			}
			t.Logf("%d probes: %d methods, %d tools, routes %q", p.probes, len(p.routes.Methods), len(p.tools), p.routes.Carriers[0].Routes)
			if p.probes < 1000 {
				t.Error("this shows too little")
			}
		})
	}
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// useless returns the ways to authenticate without a valid token.
func (p *probed) useless(ended, others string) map[string]func(*http.Request) {
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	inURL := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.URL.RawQuery = name + "=" + p.Token }
	}
	return map[string]func(*http.Request){
		"nothing":                 func(*http.Request) {},
		"a wrong token":           bearer(strings.Repeat("0", 64)),
		"an empty token":          bearer(""),
		"a token that ended":      bearer(ended),
		"another site's token":    bearer(others),
		"a token and more":        bearer(p.Token + "0"),
		"part of the token":       bearer(p.Token[:63]),
		"the token in the URL":    inURL("access_token"),
		"the token as token=":     inURL("token"),
		"the token in a cookie":   func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "token", Value: p.Token}) },
		"the token as a password": func(r *http.Request) { r.SetBasicAuth("token", p.Token) },
		"the token as a key":      func(r *http.Request) { r.Header.Set("X-Api-Key", p.Token) },
		"the token twice":         func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + p.Token, "Bearer " + p.Token} },
	}
}

// open are the routes that answer anybody, and how such an answer begins. It is the
// same for every site.
var open = map[string]string{
	"GET /healthz":          "ok\n",
	"GET /{$}":              "<!doctype html>",
	"GET /page/{file}":      "<!doctype html>",
	"GET /page/challenge":   `{"site":"did:key:`,
	"GET /page/phone/waits": `{"waits":false}`,
	"GET /help":             "<!doctype html>",
	"GET /.well-known/oauth-protected-resource/{path...}": `{"resource":"`,
	"GET /.well-known/agent-card.json":                    `{"name":"agentsite","description":"An agentsite. Holders of a token`,
	"GET /.well-known/agent-descriptions":                 `{"@context":{"`,
	"GET /.well-known/did.json":                           `{"@context":["https://www.w3.org/ns/did/v1"`,
	"GET /anp/ad.json":                                    `{"protocolType":"ANP"`,
	"GET /anp/interface.json":                             `{"openrpc":"1.3.2"`,
	"GET /agora/wellknown":                                "{}",
	"GET /api/openapi.json":                               `{"components":{"securitySchemes":`,
	"GET /.well-known/agents.json":                        `{"agentsJson":"0.1.0","info":{"description":"What can be asked of a physical site, by the operations of its OpenAPI document.","title":"agentsite"`,
	"GET /.well-known/wot":                                `{"@context":[`,
	"GET /mcp/server-card":                                `{"$schema":"https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json","name":"local.agentsite/12D3KooW`,
	"GET /.well-known/ai-catalog.json":                    `{"specVersion":"1.0","entries":[{"identifier":"urn:air:agentsite.local:mcp:12D3KooW`,
	"GET /.well-known/api-catalog":                        `{"linkset":[{"anchor":"http`,
	"GET /.well-known/capabilities.json":                  `{"id":"agentsite","description":"",`,
}

// exchange is the route on which anybody may show the key of a link, and nobody without one gets anything.
const exchange = "POST /page/session"

// hosts are the hosts that a route answers under, where that is not the address.
var hosts = map[string]string{"GET /.well-known/did.json": "garden.example.org"}

// wildcards fills the patterns of routes with names of the site.
var wildcards = strings.NewReplacer("{$}", "", "{file}", "index.html", "{number}", "1", "{path...}", "mcp", "{device}", "okapi", "{point}", "temperature", "{agent}", "okapi", "{task}", "okapi", "{push}", "okapi", "{thing}", "okapi", "{name}", "temperature")

// overHTTP is the probe of a carrier that speaks HTTP.
func (p *probed) overHTTP(t *testing.T, c acts.Carrier, with *http.Client, useless map[string]func(*http.Request)) {
	if known := slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(open)), exchange))); !slices.Equal(slices.Sorted(slices.Values(c.Public)), known) {
		t.Errorf("the site's table of routes answers everybody on %q, and open names %q", c.Public, known)
	}
	// With a verb that a route does not have, and a message in an older or a wrong form, two of these
	// ways, and in a soak test all.
	others := harness.Workload([]string{"nothing", "a wrong token"}, slices.Collect(maps.Keys(useless)))
	for name, how := range useless {
		for _, pattern := range c.Routes {
			verb, path, ok := strings.Cut(pattern, " ")
			if !ok {
				verb, path = "", pattern
			}
			path = wildcards.Replace(path)
			for _, v := range []string{"GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"} {
				if v != verb && verb != "" && !slices.Contains(others, name) {
					continue
				}
				req := harness.NewRequest(t, v, c.Address+path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Content-Type", "application/json")
				req.Host = hosts[pattern]
				begins, isOpen := open[pattern]
				if v != verb && !(v == "HEAD" && verb == "GET") { // which net/http serves alike
					isOpen = false
				}
				how(req)
				status, answer := p.ask(t, with, req)
				what := fmt.Sprintf("%s %s with %s", v, path, name)
				if isOpen && !(status == 401 && name != "nothing") { // what is sent and does not count may be refused
					if _, body, _ := strings.Cut(answer, "\r\n\r\n"); status != 200 || v != "HEAD" && !strings.HasPrefix(body, begins) {
						t.Errorf("%s: %s\nwant %q", what, answer, begins)
					}
				} else if !slices.Contains([]int{401, 403, 404, 405}, status) {
					t.Errorf("%s is answered: %s\nIf anybody may hear that, say so in open", what, answer)
				}
			}
		}
		for _, m := range p.messages(t) {
			if m.form != "JSON" && m.form != "CBOR" && !slices.Contains(others, name) {
				continue
			}
			req := harness.NewRequest(t, "POST", c.Address+"/mcp", m.body, m.headers...)
			how(req)
			// A caller with any key is told that the key has no permission here, and may claim an
			// unclaimed site.
			status, answer := p.ask(t, with, req)
			stranger := c.Kind == acts.HTTPSCarrier && status != 401 && refused.MatchString(inJSON(answer)) && !strings.Contains(inJSON(answer), `"result":`)
			challenge := c.Kind == acts.HTTPSCarrier && !p.claimed && strings.HasPrefix(m.name, "claim/challenge ") && strings.Contains(answer, "challenge")
			if status != 401 && !stranger && !challenge {
				t.Errorf("%s with %s: %s", m.name, name, answer)
			}
		}
	}
	if c.Kind == acts.HTTPCarrier { // the folder's token counts nowhere else
		p.control(t, c, with)
	}
}

// inJSON is an answer whose body may be CBOR.
func inJSON(answer string) string {
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	var cbor rpc.Raw
	if rpc.CBOR.Decode([]byte(body), &cbor) == nil {
		if text, err := cbor.JSONText(); err == nil {
			body = string(text)
		}
	}
	return head + body
}

// control asks with what counts: then the same messages bring what they must not bring
// without.
func (p *probed) control(t *testing.T, c acts.Carrier, with *http.Client) {
	for _, m := range p.messages(t) {
		tells := strings.HasPrefix(m.name, "tools/list ") || strings.HasPrefix(m.name, "tools/call read_points ")
		if !tells || !slices.Contains([]string{"JSON", "CBOR", "in a session"}, m.form) {
			continue
		}
		req := harness.NewRequest(t, "POST", c.Address+"/mcp", m.body, m.headers...)
		req.Header.Set("Authorization", "Bearer "+p.Token)
		res, err := with.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := httputil.DumpResponse(res, true); res.StatusCode != 200 || !bytes.Contains(b, []byte("okapi")) {
			t.Errorf("%s, which counts, is not answered, so that the probe shows nothing: %s", m.name, b)
		}
		res.Body.Close()
	}
}

// ask sends a request, and fails where all that comes back tells a secret.
func (p *probed) ask(t *testing.T, with *http.Client, req *http.Request) (status int, answer string) {
	t.Helper()
	p.probes++
	res, err := with.Do(req)
	if err != nil {
		t.Fatal(req.Method, req.URL, err)
	}
	defer res.Body.Close()
	b, err := httputil.DumpResponse(res, true)
	if err != nil {
		t.Fatal(err)
	}
	answer = string(b)
	p.tellsNothing(t, req.Method+" "+req.URL.Path, answer)
	return res.StatusCode, answer
}

func (p *probed) tellsNothing(t *testing.T, what, answer string) {
	t.Helper()
	for _, secret := range p.secrets {
		if strings.Contains(answer, secret) {
			t.Errorf("%s tells of %s: %s", what, secret, answer)
		}
	}
}

// sent is a message with its headers, in a form.
type sent struct {
	name, form, body string
	headers          []string
}

// messages are all methods, and of the call of a tool all tools, in every form.
func (p *probed) messages(t *testing.T) (all []sent) {
	t.Helper()
	args := map[string]string{
		"switch_output": `{"output":"springbok/relay","on":true,"for_seconds":60}`, "set_level": `{"output":"bontebok/level","value":50}`,
		"release_output": `{"output":"hartebeest/relay"}`, "read_history": `{"point":"okapi/temperature"}`,
	}
	add := func(method, name, args string) {
		const meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":%q,"arguments":%s,"uri":"agentsite:///okapi/temperature",`+
			`"ref":{"type":"ref/resource","uri":"agentsite:///{device}/{point}"},"argument":{"name":"device","value":""},`+
			`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["agentsite:///hartebeest/relay"]},"level":"debug",`+
			`"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}`+meta+`}}`, method, name, args)
		plain := strings.Replace(body, meta, "", 1)
		mirrored := name
		if method == "resources/read" {
			mirrored = "agentsite:///okapi/temperature"
		}
		modern := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", mirrored}
		inJSON := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
		older := append([]string{"Mcp-Protocol-Version", "2025-06-18"}, inJSON...)
		inSession := append([]string{"Mcp-Session-Id", p.session}, older...)
		for _, s := range []sent{
			{"", "JSON", body, append(modern, inJSON...)},
			{"", "CBOR", inCBOR(t, body), append(modern, "Content-Type", "application/cbor", "Accept", "application/cbor")},
			{"", "older", plain, older},
			{"", "in a session", plain, inSession},
			{"", "a batch", "[" + body + "," + body + "]", append(modern, inJSON...)},
			{"", "an older batch", "[" + plain + "]", append([]string{"Mcp-Protocol-Version", "2025-03-26"}, inJSON...)},
			{"", "a batch in a session", "[" + plain + "]", inSession},
		} {
			s.name = strings.Join([]string{method, name, s.form}, " ")
			all = append(all, s)
		}
	}
	for _, method := range slices.Concat(p.routes.Methods, []string{ // and those of older revisions
		"initialize", "ping", "logging/setLevel", "resources/subscribe", "notifications/initialized", "rpc.discover",
	}) {
		if method != "tools/call" {
			add(method, map[string]string{"prompts/get": "check_up"}[method], "{}")
			continue
		}
		for _, tool := range p.tools {
			add(method, tool, cmp.Or(args[tool], "{}"))
		}
	}
	return all
}

// ownersSocket: a user outside its group is refused.
func (p *probed) ownersSocket(t *testing.T, c acts.Carrier) {
	if info, err := os.Stat(c.Address); err != nil || info.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("%s: %v %v", c.Address, info.Mode(), err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := os.Chmod(p.Folder, 0o755); err != nil { // so that the socket alone decides
		t.Fatal(err)
	}
	for _, words := range [][]string{{"points"}, {"connect"}} {
		cmd := exec.CommandContext(t.Context(), harness.Program, append(words, "--data", p.Folder)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if p.probes++; err == nil || !strings.Contains(string(out), "not open to ") && !strings.Contains(string(out), "may not ") {
			t.Errorf("somebody else's %s: %v %s", words, err, out)
		}
		p.tellsNothing(t, words[0], strings.ReplaceAll(string(out), p.Folder, ""))
	}
}

// agentsSocket: owner's methods are refused there, in the newest revision and in a session of an
// older one.
func (p *probed) agentsSocket(t *testing.T, c acts.Carrier) {
	p.ownersSocket(t, c)
	for _, form := range []string{"JSON", "older"} {
		conn, err := net.Dial("unix", c.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		hear := bufio.NewScanner(conn)
		hear.Buffer(nil, 1<<20)
		ask := func(m sent) string {
			fmt.Fprintln(conn, m.body)
			if !hear.Scan() {
				t.Fatalf("%s has no answer: %v", m.name, hear.Err())
			}
			return hear.Text()
		}
		all := p.messages(t)
		named := func(name string) sent {
			return all[slices.IndexFunc(all, func(m sent) bool { return m.name == name+"  "+form })]
		}
		if form == "older" {
			ask(named("initialize"))
			fmt.Fprintln(conn, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
		if answer := ask(named("tools/list")); !strings.Contains(answer, "okapi") {
			t.Errorf("an agent is not heard, so that this shows nothing: %s", answer)
		}
		for _, m := range all {
			if m.form != form || !strings.HasPrefix(m.name, "owner/") {
				continue
			}
			p.probes++
			answer := ask(m)
			p.tellsNothing(t, m.name, answer)
			if !strings.Contains(answer, `"error":{`) {
				t.Errorf("%s is answered: %s", m.name, answer)
			}
		}
	}
}
