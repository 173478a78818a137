package page

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPhoneWaits: a browser that showed a code is told once its key is granted something, without asking who it is
// meanwhile; one that nobody answers is told to ask again, and whoever showed none does not wait.
func TestPhoneWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNear(t)
		ann, eve := newPhone(), newPhone()
		const yes, no = `{"waits":true}`, `{"waits":false}`
		answers := make(chan string)
		wait := func(p phone) {
			_, body := n.ask("GET", waitsPath, "", "", func(r *http.Request) {
				r.Header.Set(keyHeader, base64.StdEncoding.EncodeToString(p.Public().(ed25519.PublicKey)))
			})
			answers <- strings.TrimSpace(body)
		}
		show := func(p phone) {
			t.Helper()
			code, came := rand.Text(), make(chan error)
			go func() { _, err := n.page.AwaitPhone(t.Context(), code); came <- err }()
			synctest.Wait()
			if status := n.shows(p, code); status != 204 {
				t.Fatal(status)
			}
			if err := <-came; err != nil {
				t.Fatal(err)
			}
		}
		go wait(eve)
		if body := <-answers; body != no {
			t.Errorf("who showed no code: %s", body)
		}
		show(ann)
		begun := time.Now()
		go wait(ann)
		if body := <-answers; body != yes || time.Since(begun) != waitTime {
			t.Errorf("before it is granted anything: %s after %v", body, time.Since(begun))
		}
		go wait(ann)
		synctest.Wait()
		n.page.Granted(eve.did())
		synctest.Wait()
		n.page.Granted(ann.did())
		if body := <-answers; body != no || time.Since(begun) != waitTime {
			t.Errorf("once it is granted something: %s after %v", body, time.Since(begun))
		}
		for range 2 * maxShown {
			show(newPhone())
		}
		show(eve)
		if len(n.page.phones.shown) != maxShown {
			t.Errorf("%d keys wait", len(n.page.phones.shown))
		}
		time.Sleep(shownTime)
		go wait(eve)
		if body := <-answers; body != no {
			t.Errorf("too late: %s", body)
		}
	})
}
