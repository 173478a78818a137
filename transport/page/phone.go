package page

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/node/push"
	"agentsite/transport/web"
)

const (
	phoneTime     = 2 * time.Minute // for which a code for a phone counts
	shownTime     = 3 * time.Minute // for which a key that showed a code may wait for its permission
	waitTime      = 25 * time.Second
	challengeTime = 2 * time.Minute
	minCode       = 26 // letters and digits of a code, of 5 bits each
	maxCodes      = 4  // that owners wait for
	maxShown      = 16 // keys that wait for a permission
	maxUsed       = 16 // challenges of an account that are remembered

	challengePath = "/page/challenge"
	showPath      = "/page/phone"
	waitsPath     = "/page/phone/waits"
	keyPath       = "/page/key"
)

// The headers of a request that a key of a browser signed. Key and signature are in base64.
const (
	keyHeader       = "Agentsite-Key"
	challengeHeader = "Agentsite-Challenge"
	codeHeader      = "Agentsite-Code" // of showPath, answerPath, or the SHA-256 of a body, as unpadded base64url
	signatureHeader = "Agentsite-Signature"
)

// phones lets keys that live in browsers sign in at one site, and shows new ones to owners. A challenge is
// not stored until it was used by a key that has a permission, so that strangers use up nothing.
type phones struct {
	site      string // its did:key
	unclaimed func() bool
	pushes    *push.Store // nil without AddPushes
	seed      [32]byte    // of the challenges
	begun     time.Time

	mu    sync.Mutex
	codes []*phoneCode
	shown []shownKey      // the oldest first
	used  []usedChallenge // the oldest first
}

// phoneCode is a code that an owner waits for.
type phoneCode struct {
	sum   [sha256.Size]byte
	shown chan Phone
}

// Phone is a browser that showed a code.
type Phone struct {
	Key  string // its did:key
	Name string // a name for it, of what it says that it is
}

// shownKey is a key that showed a code, and waits until an owner grants it something.
type shownKey struct {
	did     string
	at      time.Time
	granted chan struct{} // closed then
}

type usedChallenge struct {
	account   string
	challenge string
	at        time.Time
}

// AddPhones has the page take keys that live in browsers, for a site with the key site. unclaimed reports
// whether nobody owns the site, which the page then says to everybody. It is called before Routes.
func (p *Page) AddPhones(site identity.ID, unclaimed func() bool) {
	p.phones = &phones{site: site.String(), unclaimed: unclaimed, begun: time.Now()}
	rand.Read(p.phones.seed[:])
}

// AwaitPhone waits for a browser that shows an owner's code. The code counts once, and no longer than the call.
func (p *Page) AwaitPhone(ctx context.Context, code string) (Phone, error) {
	return p.phones.await(ctx, code)
}

func (p *phones) await(ctx context.Context, code string) (none Phone, _ error) {
	if len(code) < minCode {
		return none, device.Faultf(device.Invalid, "a code for a phone has at least %d random letters and digits", minCode)
	}
	c := &phoneCode{sha256.Sum256([]byte(code)), make(chan Phone, 1)}
	p.mu.Lock()
	if len(p.codes) == maxCodes {
		p.mu.Unlock()
		return none, device.Faultf(device.Busy, "owners wait for %d phones already: try again in two minutes", maxCodes)
	}
	p.codes = append(p.codes, c)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.codes = slices.DeleteFunc(p.codes, func(o *phoneCode) bool { return o == c })
	}()
	ctx, cancel := context.WithTimeout(ctx, phoneTime)
	defer cancel()
	select {
	case shown := <-c.shown:
		return shown, nil
	case <-ctx.Done():
		return none, device.Faultf(device.Expired, "no phone showed the code within %v", phoneTime)
	}
}

// show gives a phone to the owner who waits for a code, which does not count again.
func (p *phones) show(code string, phone Phone) (ok bool) {
	got := sha256.Sum256([]byte(code))
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.codes, func(c *phoneCode) bool { return subtle.ConstantTimeCompare(c.sum[:], got[:]) == 1 })
	if i < 0 {
		return false
	}
	p.codes[i].shown <- phone
	p.codes = slices.Delete(p.codes, i, i+1)
	p.shown = append(p.shown, shownKey{phone.Key, time.Now(), make(chan struct{})})
	p.shown = p.shown[max(0, len(p.shown)-maxShown):]
	return true
}

// Granted tells the browser with a key, did, that an owner granted it something.
func (p *Page) Granted(did string) {
	p.phones.mu.Lock()
	defer p.phones.mu.Unlock()
	p.phones.shown = slices.DeleteFunc(p.phones.shown, func(s shownKey) bool {
		if s.did == did {
			close(s.granted)
		}
		return s.did == did || time.Since(s.at) >= shownTime
	})
}

// wait answers a browser that showed a code once an owner granted its key something, or after waitTime that the key
// waits still. For a key that does not wait, as strangers know none that does, it answers at once.
func (p *phones) wait(w http.ResponseWriter, r *http.Request, _ web.Caller) {
	key, err := base64.StdEncoding.Strict().DecodeString(r.Header.Get(keyHeader))
	p.mu.Lock()
	i := slices.IndexFunc(p.shown, func(s shownKey) bool {
		return err == nil && len(key) == ed25519.PublicKeySize && s.did == identity.ID(key).String() &&
			time.Since(s.at) < shownTime
	})
	var granted chan struct{}
	if i >= 0 {
		granted = p.shown[i].granted
	}
	p.mu.Unlock()
	waits := granted != nil
	if waits {
		end := time.NewTimer(waitTime)
		defer end.Stop()
		select {
		case <-granted:
			waits = false
		case <-end.C:
		case <-r.Context().Done():
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintf(w, "{\"waits\":%t}\n", waits)
}

// challenge returns a new challenge: 16 random bytes, the time, and their MAC.
func (p *phones) challenge() string {
	b := make([]byte, 16, 16+8+sha256.Size)
	rand.Read(b)
	b = binary.BigEndian.AppendUint64(b, uint64(time.Since(p.begun)))
	return base64.RawURLEncoding.EncodeToString(append(b, p.mac(b)...))
}

func (p *phones) mac(b []byte) []byte {
	h := hmac.New(sha256.New, p.seed[:])
	h.Write(b)
	return h.Sum(nil)
}

// fresh reports whether a challenge is the site's and not too old.
func (p *phones) fresh(challenge string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(challenge)
	if err != nil || len(b) != 16+8+sha256.Size || !hmac.Equal(p.mac(b[:24]), b[24:]) {
		return false
	}
	return time.Since(p.begun)-time.Duration(binary.BigEndian.Uint64(b[16:])) < challengeTime
}

// statement returns what a key signs. No other protocol signs a text that begins so, and none of its lines
// is empty but the code.
func statement(path, site, host, challenge, code string) []byte {
	return []byte(strings.Join([]string{"agentsite page 1", path, site, host, challenge, code, ""}, "\n"))
}

var (
	errUnsigned = errors.New("the signature is not of this site, host, challenge and purpose, or came too late")
	errUsed     = errors.New("this challenge was used, or too many were: ask for another")
)

// Read returns the key that signed a request.
func (p *phones) Read(r *http.Request) (*web.Signed, error) {
	if len(r.Header.Values(signatureHeader)) == 0 {
		return nil, nil
	}
	for _, name := range []string{keyHeader, challengeHeader, codeHeader, signatureHeader} {
		if len(r.Header.Values(name)) > 1 {
			return nil, errUnsigned
		}
	}
	key, err := base64.StdEncoding.Strict().DecodeString(r.Header.Get(keyHeader))
	signature, err2 := base64.StdEncoding.Strict().DecodeString(r.Header.Get(signatureHeader))
	challenge, code := r.Header.Get(challengeHeader), r.Header.Get(codeHeader)
	if err != nil || err2 != nil || len(key) != ed25519.PublicKeySize || !identity.ID(key).Valid() ||
		!p.fresh(challenge) || !ed25519.Verify(key, statement(r.URL.Path, p.site, r.Host, challenge, code), signature) {
		return nil, errUnsigned
	}
	peer := identity.ID(key).String()
	return &web.Signed{
		Peer: peer,
		Use:  func(account string) error { return p.use(quota(peer, account), challenge) },
		CheckBody: func(body []byte) error {
			if sum := sha256.Sum256(body); code != base64.RawURLEncoding.EncodeToString(sum[:]) {
				return errUnsigned
			}
			return nil
		},
	}, nil
}

// quota returns what the limits of a key count under: those to whom the key of an account passed its permission on
// count together, and take nothing from it.
func quota(key, account string) string {
	if key != account {
		return "of " + account
	}
	return account
}

// use notes that an account used a challenge, and refuses it a second time.
func (p *phones) use(account, challenge string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = slices.DeleteFunc(p.used, func(u usedChallenge) bool { return time.Since(u.at) >= challengeTime })
	n := 0
	for _, u := range p.used {
		if u.challenge == challenge {
			return errUsed
		}
		if u.account == account {
			n++
		}
	}
	if n >= maxUsed {
		return errUsed
	}
	p.used = append(p.used, usedChallenge{account, challenge, time.Now()})
	return nil
}

// Challenge says nothing: a browser asks for a challenge before.
func (p *phones) Challenge(http.Header, error) {}

// phoneRoutes are the routes of keys that live in browsers.
func (p *Page) phoneRoutes() []web.Route {
	if p.phones == nil {
		return nil
	}
	all := []web.Route{
		{Pattern: "GET " + challengePath, Admission: web.Public, Serve: p.phones.ask},
		{Pattern: "POST " + showPath, Admission: web.Strangers, Signed: p.phones, Serve: p.phones.take},
		{Pattern: "GET " + waitsPath, Admission: web.Public, Serve: p.phones.wait},
		{Pattern: "POST " + keyPath, Admission: web.Principals, Signed: p.phones, Serve: p.beginKey},
	}
	if p.answers != nil {
		all = append(all, web.Route{Pattern: "GET " + callsPath, Admission: web.Principals, Serve: p.calls},
			web.Route{Pattern: "POST " + answerPath, Admission: web.Principals, Signed: p.phones, Serve: p.answer})
	}
	return all
}

// ask answers anybody with a new challenge, and says whether nobody owns the site.
func (p *phones) ask(w http.ResponseWriter, _ *http.Request, _ web.Caller) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintf(w, "{\"site\":%q,\"challenge\":%q,\"unclaimed\":%t}\n", p.site, p.challenge(), p.unclaimed())
}

// signs reports whether a caller was admitted by a signature, and not by TLS or a token.
func signs(r *http.Request) bool { return r.Header.Get(signatureHeader) != "" && web.Bearer(r) == "" }

// take shows the key that signed to the owner who made the code.
func (p *phones) take(w http.ResponseWriter, r *http.Request, c web.Caller) {
	if !signs(r) {
		web.RefuseRPC(w, http.StatusForbidden, "a key is shown by a signed request")
		return
	}
	if !p.show(r.Header.Get(codeHeader), Phone{c.Key, phoneName(r.UserAgent())}) {
		web.RefuseRPC(w, http.StatusGone, "this code was used, or is too old: agentsite grant phone shows a new one")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// The browsers and systems that a phone is named after, by a word of what it calls itself: the first that it has.
var (
	browsers = [][2]string{{"Edg", "edge"}, {"OPR/", "opera"}, {"SamsungBrowser", "samsung"}, {"Firefox", "firefox"},
		{"FxiOS", "firefox"}, {"CriOS", "chrome"}, {"Chrome", "chrome"}, {"Safari", "safari"}}
	systems = [][2]string{{"Android", "android"}, {"iPhone", "iphone"}, {"iPad", "ipad"}, {"Windows", "windows"},
		{"Mac OS", "mac"}, {"CrOS", "chromebook"}, {"Linux", "linux"}}
)

// phoneName returns a name such as chrome-on-android for a browser that calls itself agent. It has nothing else of
// that text.
func phoneName(agent string) string {
	agent = agent[:min(len(agent), maxAgent)]
	of := func(all [][2]string) string {
		i := slices.IndexFunc(all, func(of [2]string) bool { return strings.Contains(agent, of[0]) })
		if i < 0 {
			return ""
		}
		return all[i][1]
	}
	browser, system := of(browsers), of(systems)
	if browser != "" && system != "" {
		return browser + "-on-" + system
	}
	return cmp.Or(system, browser, "phone")
}

// beginKey begins a session of the key that signed. An owner's key has none: nothing in a browser acts as
// an owner.
func (p *Page) beginKey(w http.ResponseWriter, r *http.Request, c web.Caller) {
	if !signs(r) || c.Who.Owner {
		web.RefuseRPC(w, http.StatusForbidden, "a session is for a key that lives in a browser, and not an owner's")
		return
	}
	token := p.sessions.beginKey(c.Key, quota(c.Key, c.Who.Account), r.UserAgent())
	p.tell(w, c.Who, token, p.sessions.use(token))
}
