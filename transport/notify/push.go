package notify

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/node/outbox"
	"agentsite/transport/web/outbound"

	"github.com/go-json-experiment/json"
)

const (
	phoneName   = "phone " // before the key of a phone, in the name of its receiver
	pushedTime  = 24 * time.Hour
	vapidTime   = 12 * time.Hour // RFC 8292, section 2: at most a day
	maxPushed   = 1200           // bytes of a text, so that a message has one record
	maxHeadline = 200
)

var base64url = base64.RawURLEncoding

// pushed is a message as a phone shows it. It names no site: the link is a fragment of the page that it subscribed in.
type pushed struct {
	Title  string `json:"title"`
	Text   string `json:"text"`
	Link   string `json:"link,omitzero"`
	Tag    string `json:"tag,omitzero"` // replaces what was shown with the same
	Urgent bool   `json:"urgent,omitzero"`
}

// pusher tells one phone, by the push service of its browser.
type pusher struct {
	world *World
	key   string // of the phone
	page  string // is the contact that push services are told
	own   string // the origin of a push service that the owner named; "" for none
}

// pushers returns the phones that are told now.
func (a *Agent) pushers() (all []outbox.Receiver) {
	if a.Page == "" || a.world.Phones == nil {
		return nil
	}
	for _, key := range a.world.Phones.Told() {
		to := &pusher{&a.world, key, a.Page, strings.TrimSuffix(a.Push, "/")}
		all = append(all, outbox.Receiver{Name: phoneName + key, Spare: true, Sender: to})
	}
	return all
}

// client returns a client for an endpoint. A private address is dialled only at the origin that the owner named.
func (p *pusher) client(to *url.URL) *http.Client {
	var named []string
	if p.own != "" && strings.EqualFold(to.Scheme+"://"+to.Host, p.own) {
		named = []string{to.Hostname()}
	}
	c := outbound.Client(sendTimeout, named...)
	if p.world.roots != nil {
		c.Transport.(*http.Transport).TLSClientConfig.RootCAs = p.world.roots
	}
	return c
}

// Send implements outbox.Sender, by RFC 8030. A phone that is not told any more has got everything. It reads only the
// status of the answer: by 404 and 410 the subscription has ended, until the phone makes another.
func (p *pusher) Send(ctx context.Context, m outbox.Message) error {
	sub, server, ok := p.world.Phones.Find(p.key)
	if !ok {
		return nil
	}
	now, sure := p.world.Now()
	to, err := url.Parse(sub.Endpoint)
	if err != nil {
		return err
	}
	public, auth, err := sub.Keys.Decode()
	if err != nil {
		return err
	}
	topic := topic(auth, m)
	text, err := json.Marshal(pushed{
		Title: cut(subject(p.world.Site, m), maxHeadline), Text: cut(body(m, now), maxPushed),
		Link: anchor(link(m)), Tag: topic, Urgent: urgent(m),
	})
	if err != nil {
		return err
	}
	content, err := encrypt(public, auth, text)
	if err != nil {
		return err
	}
	permit, err := vapid(server, to, p.page, now)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, sub.Endpoint, bytes.NewReader(content))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", permit)
	r.Header.Set("Content-Encoding", "aes128gcm")
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set("Ttl", strconv.Itoa(int(lifetime(m)/time.Second)))
	r.Header.Set("Urgency", "normal")
	if urgent(m) {
		r.Header.Set("Urgency", "high")
	}
	if topic != "" {
		r.Header.Set("Topic", topic)
	}
	res, err := p.client(to).Do(r)
	if err != nil {
		return outbound.Quiet(err, to.Host)
	}
	res.Body.Close()
	switch code := res.StatusCode; {
	case code/100 == 2:
		return nil
	case code == http.StatusNotFound, code == http.StatusGone:
		if err := p.world.Phones.Drop(p.key, sub.Endpoint); err != nil {
			return err
		}
		return fmt.Errorf("its subscription at %s has ended: press Tell this phone on it again", to.Host)
	}
	err = &outbound.StatusError{Host: to.Host, Code: res.StatusCode}
	if !sure { // by which services decide about the site's permit
		err = fmt.Errorf("%w, and the site's clock is not set: agentsite clock --set", err)
	}
	if after, ok := outbound.RetryAfter(res.Header); ok {
		return &outbox.Later{Err: err, After: after}
	}
	return err
}

// anchor returns the fragment of a link, with its #.
func anchor(link string) string {
	_, of, ok := strings.Cut(link, "#")
	if !ok {
		return ""
	}
	return "#" + of
}

// topic has a push service and a phone replace an earlier message about the same (RFC 8030, section 5.4); "" for a
// list, which replaces nothing. The service learns nothing by it.
func topic(auth []byte, m outbox.Message) string {
	if len(m.Items) != 1 || m.More > 0 {
		return ""
	}
	mac := hmac.New(sha256.New, auth)
	mac.Write([]byte("topic " + m.Items[0].Key))
	return base64url.EncodeToString(mac.Sum(nil)[:24])
}

// lifetime returns the time for which a push service keeps a message for a phone that it does not reach.
func lifetime(m outbox.Message) time.Duration {
	var left time.Duration
	for _, i := range m.Items {
		if !i.Passing {
			return pushedTime
		}
		left = max(left, time.Until(i.Until))
	}
	if len(m.Items) == 0 {
		return pushedTime
	}
	return min(max(left, time.Second), pushedTime)
}

// encrypt returns a message for a browser: one record of aes128gcm (RFC 8188, RFC 8291).
func encrypt(to *ecdh.PublicKey, auth, text []byte) ([]byte, error) {
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, 16)
	rand.Read(salt)
	return encryptWith(own, salt, to, auth, text)
}

// recordSize bounds a record (RFC 8291, section 4: a message is one).
const recordSize = 4096

func encryptWith(own *ecdh.PrivateKey, salt []byte, to *ecdh.PublicKey, auth, text []byte) ([]byte, error) {
	if len(text) > recordSize-1-16 {
		return nil, device.Faultf(device.Invalid, "a message of %d bytes is too long", len(text))
	}
	shared, err := own.ECDH(to)
	if err != nil {
		return nil, err
	}
	sender := own.PublicKey().Bytes()
	secret, err := hkdf.Key(sha256.New, shared, auth, "WebPush: info\x00"+string(to.Bytes())+string(sender), 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	out := binary.BigEndian.AppendUint32(bytes.Clone(salt), recordSize)
	out = append(append(out, byte(len(sender))), sender...)
	return gcm.Seal(out, nonce, append(bytes.Clone(text), 2), nil), nil // 2 ends the last record
}

// vapid returns the header by which a push service knows the site (RFC 8292): a JWT for the origin of the endpoint,
// signed by ES256, and the public key.
func vapid(key *ecdsa.PrivateKey, to *url.URL, contact string, now time.Time) (string, error) {
	claims, err := json.Marshal(struct {
		Audience string `json:"aud"`
		Expires  int64  `json:"exp"`
		Contact  string `json:"sub"`
	}{to.Scheme + "://" + to.Host, now.Add(vapidTime).Unix(), contact})
	if err != nil {
		return "", err
	}
	text := base64url.EncodeToString([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + base64url.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", err
	}
	public, err := key.PublicKey.Bytes()
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	text += "." + base64url.EncodeToString(signature)
	return "vapid t=" + text + ", k=" + base64url.EncodeToString(public), nil
}
