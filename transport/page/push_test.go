package page

import (
	"strings"
	"testing"
	"time"

	"agentsite/node/push"
)

// TestPushes: the phone of a session subscribes for its own key, and is told how it is with that alone. Nobody else
// subscribes: neither a session of a link, nor a token, nor a key whose permission has ended.
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
	expect("POST", anns, "{}", 400, "endpoint")
	expect("POST", anns, "x", 400, "subscription")
	expect("POST", anns, sub, 200, `"subscribed":true`)
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
	expect("POST", anns, sub, 401, "")
	end()
	expect("POST", bobs, sub, 503, "notify:")
}
