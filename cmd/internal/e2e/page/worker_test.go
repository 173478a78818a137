//go:build e2e

package page

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestWorkerLeft: a program that had the page's port left a service worker in the browser, which answers for
// all that it serves, and reads the key of a link. The page opens past it, with its port chosen or not, and at a
// chosen port it has the same address each time.
func TestWorkerLeft(t *testing.T) {
	t.Parallel()
	ann, port := harness.NewPerson(t), harness.FreePort(t)
	claimed(t, ann, harness.TempDir(t), "shed", "127.0.0.1:0")
	ln, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	other := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/worker.js" {
			fmt.Fprint(w, "another program")
			return
		}
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, `oninstall = () => skipWaiting(); onfetch = e => { if (e.request.mode === "navigate")
			e.respondWith(new Response("<title>worker</title>" + e.request.url,
				{ headers: { "Content-Type": "text/html" } })); };`)
	})}
	go other.Serve(ln)
	b := newBrowser(t)
	names := []string{"agentsite.localhost", "localhost", "127.0.0.1"}
	for _, name := range names {
		b := b.another()
		b.open("http://" + net.JoinHostPort(name, port) + "/")
		run[bool](b, `navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready)
			.then(() => true)`)
	}
	other.Close()
	for _, name := range names { // the attack works
		b := b.another()
		b.expect("ERR_CONNECTION_REFUSED")
		link := "http://" + net.JoinHostPort(name, port) + "/x#k=KEY"
		b.open(link)
		got := run[string](b, "document.title + document.body.textContent + location.hash")
		if got != "worker"+link+"#k=KEY" {
			t.Fatalf("at %s: %s", name, got)
		}
	}
	last := ""
	for range 2 {
		t.Run("open", func(t *testing.T) {
			link, b := openPage(t, ann, "", "--port", port).Link, b.another()
			b.open(link)
			b.is(20*time.Second, `document.querySelector("[data-net=live]") && !navigator.serviceWorker.controller`)
			at, err := url.Parse(link)
			if err != nil || last != "" && at.Host != last {
				t.Fatalf("%s, and before %s, %v", link, last, err)
			}
			last = at.Host
			b.open("about:blank")
		})
	}
	one, err := url.Parse(openPage(t, ann, "").Link)
	two, err2 := url.Parse(openPage(t, ann, "").Link)
	if err != nil || err2 != nil || one.Hostname() == two.Hostname() {
		t.Errorf("without a port: %v, %v", one, two)
	}
}
