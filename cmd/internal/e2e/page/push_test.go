//go:build e2e

package page

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"
)

// pushService is a push service, with the keys of the one browser that subscribed at it.
type pushService struct {
	*httptest.Server
	key  *ecdh.PrivateKey
	auth []byte
	file string // its certificate

	mu  sync.Mutex
	got []pushedTo
}

type pushedTo struct {
	header http.Header
	body   []byte
}

func newPushService(t *testing.T) *pushService {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &pushService{key: key, auth: make([]byte, 16), file: filepath.Join(t.TempDir(), "push.pem")}
	rand.Read(p.auth)
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.got = append(p.got, pushedTo{r.Header, body})
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(p.Close)
	if err := os.WriteFile(p.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// subscribing has a page subscribe at the service, as a browser does at that of its maker.
func (p *pushService) subscribing() string {
	b := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`(() => {
		const keys = { p256dh: %q, auth: %q };
		PushManager.prototype.getSubscription = async () => window.subscribed ?? null;
		PushManager.prototype.subscribe = async function (o) {
			if (!o.userVisibleOnly || !(await navigator.serviceWorker.getRegistration("/page/")).active) throw new Error("no worker");
			window.server = [...o.applicationServerKey].length;
			return window.subscribed = { toJSON: () => ({ endpoint: %q, expirationTime: null, keys }),
				unsubscribe: async () => { window.subscribed = undefined; return true; } };
		};
		return true;
	})()`, b(p.key.PublicKey().Bytes()), b(p.auth), p.URL+"/send/1")
}

// next waits for a message that says says, and returns it as http_ece decrypts it and jose verifies who sent it.
func (p *pushService) next(t *testing.T, says string) (text string, header http.Header) {
	t.Helper()
	done := 0
	harness.WaitFor(t, 30*time.Second, "a message that says "+says, func() bool {
		p.mu.Lock()
		all := p.got
		p.mu.Unlock()
		for ; done < len(all); done++ {
			if text = p.decrypt(t, all[done]); strings.Contains(text, says) {
				header = all[done].header
				return true
			}
		}
		return false
	})
	return text, header
}

const decrypts = `const ece = require(process.argv[1] + "/http_ece"), crypto = require("crypto"), jose = require(process.argv[1] + "/jose");
const [, , key, auth, body, permit, aud] = process.argv, ecdh = crypto.createECDH("prime256v1");
ecdh.setPrivateKey(Buffer.from(key, "base64url"));
const [, t, k] = /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(permit), raw = Buffer.from(k, "base64url");
jose.importJWK({ kty: "EC", crv: "P-256", x: raw.subarray(1, 33).toString("base64url"), y: raw.subarray(33).toString("base64url") }, "ES256")
	.then(public => jose.jwtVerify(t, public, { audience: aud, algorithms: ["ES256"], requiredClaims: ["exp", "sub"] }))
	.then(() => process.stdout.write(ece.decrypt(Buffer.from(body, "base64url"), { version: "aes128gcm", privateKey: ecdh, authSecret: auth })));`

func (p *pushService) decrypt(t *testing.T, m pushedTo) string {
	t.Helper()
	modules, node := harness.Need(t, "npm packages", os.Getenv("NPM_MODULES")), harness.Need(t, "Node",
		harness.NodeProgram)
	b := base64.RawURLEncoding.EncodeToString
	cmd := exec.Command(node, "-e", decrypts, "--", modules, b(p.key.Bytes()), b(p.auth), b(m.body),
		m.header.Get("Authorization"), p.URL)
	var why bytes.Buffer
	cmd.Stderr = &why
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &why)
	}
	return string(out)
}

// certify writes a certificate for a name and its key beside the configuration, and returns the digest by which Chromium
// is told to trust it.
func certify(t *testing.T, folder, name string) (spki string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"domain.pem": {Type: "CERTIFICATE", Bytes: cert}, "domain.key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(folder, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(public)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// worker is the service worker of a phone's page.
type worker struct {
	phone        *tab
	registration serviceworker.RegistrationID
	ctx          context.Context
}

// worker finds it.
func (b *tab) worker() *worker {
	b.t.Helper()
	found := make(chan serviceworker.RegistrationID, 64)
	if err := chromedp.Listen(b.ctx, func(e any) {
		if r, ok := e.(*serviceworker.EventWorkerRegistrationUpdated); ok {
			for _, one := range r.Registrations {
				if strings.HasSuffix(one.ScopeURL, "/page/") && !one.IsDeleted {
					select {
					case found <- one.RegistrationID:
					default:
					}
				}
			}
		}
	}); err != nil {
		b.t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, serviceworker.Enable, cdp.Empty{}); err != nil {
		b.t.Fatal(err)
	}
	select {
	case id := <-found:
		return &worker{phone: b, registration: id}
	case <-time.After(30 * time.Second):
		b.t.Fatal("the page has no service worker")
		return nil
	}
}

// push has the browser deliver a message, and waits until it shows something with that title.
func (w *worker) push(text, title string) {
	w.phone.t.Helper()
	_, err := chromedp.Call(w.phone.ctx, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{
		Origin: "https://" + w.phone.host, RegistrationID: w.registration, Data: text,
	})
	if err != nil {
		w.phone.t.Fatal(err)
	}
	w.shows(title, true)
}

// shows waits until it shows something with that title, or nothing.
func (w *worker) shows(title string, want bool) {
	w.phone.t.Helper()
	harness.WaitFor(w.phone.t, 20*time.Second, fmt.Sprintf("a notification %q: %t", title, want), func() bool {
		return want == run[bool](w.phone, `(async () => (await (await navigator.serviceWorker.getRegistration("/page/")).getNotifications())
			.some(n => n.title.includes(`+quote(title)+`)))()`)
	})
}

// click presses what it shows, as a person does: with no page open where alone is set. It returns what it opened.
func (w *worker) click(title string, alone bool) string {
	w.phone.t.Helper()
	harness.WaitFor(w.phone.t, 20*time.Second, "the worker runs", func() bool {
		if w.ctx != nil {
			return true
		}
		all, err := chromedp.Targets(w.phone.ctx)
		if err != nil {
			w.phone.t.Fatal(err)
		}
		for _, one := range all {
			if one.Type == "service_worker" && strings.HasSuffix(one.URL, "/page/worker.js") {
				ctx, cancel := chromedp.NewContext(w.phone.ctx, chromedp.WithTargetID(one.TargetID))
				w.phone.t.Cleanup(cancel)
				w.ctx = ctx
			}
		}
		return w.ctx != nil
	})
	opened, err := chromedp.Run(w.ctx, chromedp.Evaluate[string](fmt.Sprintf(`(async () => {
		const shown = (await registration.getNotifications()).find(n => n.title.includes(%q)), real = clients.matchAll;
		let opened = "", done;
		clients.openWindow = async at => { opened = at; };
		if (%t) clients.matchAll = async () => [];
		const e = new NotificationEvent("notificationclick", { notification: shown });
		e.waitUntil = until => { done = until; };
		dispatchEvent(e);
		await done;
		delete clients.matchAll;
		return opened;
	})()`, title, alone), chromedp.EvalAwaitPromise))
	if err != nil {
		w.phone.t.Fatal(err)
	}
	w.shows(title, false)
	return opened
}

// TestPhoneTold: a phone asks to be told, an owner allows it, and a call that waits is a message that leads to the call.
// The push service reads nothing, the message grants nothing, it is so after the site was killed, and it ends with the
// phone's permission. Where the browser does not trust the certificate, the page says so.
func TestPhoneTold(t *testing.T) {
	t.Parallel()
	service, ann, data := newPushService(t), harness.NewPerson(t), harness.TempDir(t)
	at := net.JoinHostPort("127.0.0.1", harness.FreePort(t))
	_, port, _ := net.SplitHostPort(at)
	name := net.JoinHostPort("garden.example.org", port)
	trusted := certify(t, data, "garden.example.org")
	config := fmt.Sprintf("site: { name: shed }\nhttp: { domain: %q, certificate: domain.pem, certificate_key: domain.key }\n"+
		"devices:\n  box: { driver: sim, model: relay, min_off: 0 }\n%s\nnotify: { page: \"https://%s\", push: %q }\n", name, pump, name, service.URL)
	start := func() *harness.Site {
		return harness.StartIn(t, data, config, nil, "env", "SSL_CERT_FILE="+service.file,
			harness.Need(t, "the program", harness.Program), "run", "--listen-https", at)
	}
	site := start()
	ann.MustCLI(t, "claim", site.Invitation(t).String(), "--name", "shed")
	add := func(b func(link string) *tab, more ...string) *tab {
		t.Helper()
		g := grantPhone(t, ann, more...)
		p := b(g.Link)
		g.letIn(t, p)
		p.show("access")
		p.is(20*time.Second, `document.querySelector("[data-push] [data-act=push-on]")`)
		allows := browser.SetPermissionParams{Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: "granted", Origin: "https://" + p.host}
		if _, err := chromedp.Call(p.ctx, browser.SetPermission, allows); err != nil {
			t.Fatal(err)
		}
		return p
	}

	wary := add(func(link string) *tab { return onPhone(t, link) })
	wary.expect("certificate")
	wary.press("[data-act=push-on]")
	wary.is(20*time.Second, `document.querySelector("[data-push=no] .note, [data-push=no] [class*=bad]")`)
	if text := run[string](wary, `document.querySelector("[data-push]").textContent`); !strings.Contains(text, "certificate") {
		t.Errorf("it says %s", text)
	}
	wary.open("about:blank")
	ann.MustCLI(t, "revoke", "chrome-on-linux", "--site", "shed")

	p := add(func(link string) *tab {
		b := newBrowser(t, chromedp.WindowSize(390, 844), chromedp.Flag("host-resolver-rules", "MAP garden.example.org 127.0.0.1"),
			chromedp.Flag("ignore-certificate-errors-spki-list", trusted))
		b.expect("Failed to load resource") // the browser notes what the site refuses, and that it was killed
		b.open(link)
		b.look(phone, "light")
		return b
	}, "--at", name)
	run[bool](p, service.subscribing())
	p.press("[data-act=push-on]")
	p.is(20*time.Second, `document.querySelector("[data-push=waits]")`)
	if n := run[int](p, "window.server"); n != 65 {
		t.Errorf("the key of the site has %d bytes", n)
	}
	p.axe("a phone that asks to be told", phone)
	run[bool](p, script)
	for _, method := range []string{"owner/tell", "owner/phones"} { // it is no owner
		if a := run[said](p, fmt.Sprintf(`call("/mcp", %q, {name: "chrome-on-linux"})`, method)); a.Error.Code != -32601 {
			t.Errorf("%s: %+v", method, a)
		}
	}
	list := func() string { return ann.MustCLI(t, "notify", "phones", "--site", "shed") }
	if all := list(); !strings.Contains(all, "chrome-on-linux") || !strings.Contains(all, "waits for you") {
		t.Errorf("the phones are\n%s", all)
	}
	o := openPage(t, ann, "")
	owner := newBrowser(t)
	owner.open(o.Link)
	owner.live()
	owner.show("access")
	owner.is(20*time.Second, `document.querySelector("[data-told] [data-act='owner/tell']")`)
	owner.axe("a phone asks to be told", laptop)
	owner.press("[data-told] [data-act='owner/tell']")
	o.asked(1)
	o.typed("\n")
	p.is(30*time.Second, `document.querySelector("[data-push=told]")`)
	p.axe("a phone that is told", phone)

	const on = `{name: "switch_output", arguments: {output: "pump/relay", on: true, for_seconds: 60}}`
	wait := func() (handle string) {
		t.Helper()
		a := run[said](p, `call("/mcp", "tools/call", `+on+`, "switch_output")`)
		if a.Result.Type != "input_required" {
			t.Fatalf("it is moved: %+v", a)
		}
		harness.WaitFor(t, 10*time.Second, "it waits", func() bool {
			var all struct{ Requests []struct{ Handle string } }
			if err := json.Unmarshal([]byte(ann.MustCLI(t, "approve", "--json", "--site", "shed")), &all); err != nil || len(all.Requests) == 0 {
				return false
			}
			handle = all.Requests[0].Handle
			return true
		})
		return handle
	}
	handle := wait()
	text, header := service.next(t, handle)
	if ttl := header.Get("Ttl"); header.Get("Urgency") != "high" || len(ttl) > 3 || header.Get("Topic") == "" {
		t.Errorf("%v", header)
	}
	w := p.worker()
	w.push(text, "asks you")
	link := "#waiting?s=shed&call=" + handle
	w.click("asks you", false)
	p.is(20*time.Second, "location.hash === "+quote(link))
	w.push(text, "asks you")
	if got := w.click("asks you", true); got != "/"+link {
		t.Errorf("with no page open it opens %q", got)
	}
	if says, err := site.CLI(t, "read", "pump/relay"); err != nil || !strings.Contains(says, " off") {
		t.Errorf("a message moved it: %s %v", says, err)
	}
	// What others could send leads nowhere else.
	w.push(`{"title":"hostile","link":"https://example.org/","text":7}`, "hostile")
	if got := w.click("hostile", true); got != "/" {
		t.Errorf("it opens %q", got)
	}
	w.push("no JSON", "agentsite")

	site.Kill(t)
	if info, err := os.Stat(filepath.Join(data, "phones.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	site = start()
	if says, err := site.CLI(t, "notify", "test"); err != nil || !strings.Contains(says, "chrome-on-linux") {
		t.Errorf("%s %v", says, err)
	}
	service.next(t, "a test")

	ann.MustCLI(t, "revoke", "chrome-on-linux", "--site", "shed")
	if all := list(); strings.Contains(all, "chrome") {
		t.Errorf("the phones are\n%s", all)
	}
	if stored, err := os.ReadFile(filepath.Join(data, "phones.json")); err != nil || bytes.Contains(stored, []byte("/send/1")) {
		t.Errorf("%s %v", stored, err)
	}
	if says, err := site.CLI(t, "agents"); err != nil || !strings.Contains(says, "tells nobody") {
		t.Errorf("%s %v", says, err)
	}
}
