package page

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/node/push"
)

// TestPushes: the key of a phone signs its subscription, and its session is told how it is with that alone. Nothing else
// subscribes: neither a session, nor a token, nor a key whose permission has ended.
func TestPushes(t *testing.T) {
	n := newNear(t)
	store, err := push.Open(push.Options{Write: func([]byte) error { return nil }, May: func(key string) bool { _, ok := n.keys[key]; return ok || key == "" }})
	if err != nil {
		t.Fatal(err)
	}
	n.page.AddPushes(store)
	n.serve()
	ann, bob := newPhone(), newPhone()
	n.keys.grant(ann)
	n.keys.grant(bob)
	anns, _ := n.signIn(ann)
	bobs, _ := n.signIn(bob)
	const sub = `{"endpoint":"https://push.example.net/send/1","expirationTime":null,"keys":` +
		`{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"}}`
	signedBy := func(p phone, says string) func(*http.Request) {
		sum, c := sha256.Sum256([]byte(says)), n.challenge()
		code := base64.RawURLEncoding.EncodeToString(sum[:])
		sign := p.sign(c, code, lines(pushPath, n.site, host, c, code))
		return func(r *http.Request) {
			sign(r)
			r.Header.Set("Content-Type", "application/json")
		}
	}
	offer := func(p phone, body string, status int, says string) {
		t.Helper()
		if got, text := n.ask("POST", pushPath, "", body, signedBy(p, body)); got != status || !strings.Contains(text, says) {
			t.Errorf("%d %s", got, text)
		}
	}
	expect := func(method, token, body string, status int, says string) {
		t.Helper()
		if got, text := n.ask(method, pushPath, token, body); got != status || !strings.Contains(text, says) {
			t.Errorf("%s: %d %s", method, got, text)
		}
	}
	expect("GET", anns, "", 200, "{}")
	end := store.Begin()
	expect("GET", "", "", 401, "")
	if link := n.page.Link("", time.Minute); link != "" {
		_, key, _ := strings.Cut(link, "#k=")
		token, ok := n.page.sessions.begin(key, "")
		if status, says := ask(n.http, "POST", pushPath, token, sub); !ok || status != 403 {
			t.Errorf("by a link: %d %s", status, says)
		}
	}
	expect("GET", anns, "", 200, `"server":"B`)
	offer(ann, "{}", 400, "endpoint")
	offer(ann, "x", 400, "subscription")
	expect("POST", anns, sub, 403, "") // it would outlive the session
	if got, _ := n.ask("POST", pushPath, "", sub, signedBy(ann, strings.Replace(sub, "send/1", "send/2", 1))); got != 401 {
		t.Errorf("another subscription than the key signed: %d", got)
	}
	if all := store.List(); len(all) != 0 {
		t.Error(all)
	}
	offer(ann, sub, 200, `"subscribed":true`)
	expect("GET", bobs, "", 200, `"server":"B`)
	if all := store.List(); len(all) != 1 || all[0].Key != ann.did() || all[0].Allowed {
		t.Error(all)
	}
	if err := store.Allow(ann.did()); err != nil {
		t.Fatal(err)
	}
	expect("GET", anns, "", 200, `"allowed":true`)
	if _, text := n.ask("GET", pushPath, bobs, ""); strings.Contains(text, "true") {
		t.Error(text)
	}
	expect("DELETE", bobs, "", 200, "")
	if len(store.Told()) != 1 {
		t.Error("another phone ends it")
	}
	expect("DELETE", anns, "", 200, `"allowed":true`)
	if len(store.Told()) != 0 {
		t.Error("it is told")
	}
	delete(n.keys, ann.did())
	offer(ann, sub, 403, "")
	end()
	offer(bob, sub, 503, "notify:")
}
