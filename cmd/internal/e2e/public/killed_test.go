//go:build e2e && linux

package public

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/state"
)

// delayed configures a proxy that forwards requests, and keeps an answer back while the file has the prefix
// of the path of its POST.
type delayed struct{ Listen, To, Certificate, Key, File string }

func delay(parameters string) {
	var d delayed
	if err := json.Unmarshal([]byte(parameters), &d); err != nil {
		panic(err)
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "https", Host: d.To})
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	panic(http.ListenAndServeTLS(d.Listen, d.Certificate, d.Key, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keeps := func() bool {
			keep, _ := os.ReadFile(d.File)
			return len(keep) > 0 && r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, string(keep))
		}
		if !keeps() {
			proxy.ServeHTTP(w, r)
			return
		}
		done := httptest.NewRecorder()
		proxy.ServeHTTP(done, r)
		if done.Code/100 == 2 { // pebble refuses some nonces by intention
			fmt.Println("kept", r.URL.Path)
			for keeps() && r.Context().Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
		}
		maps.Copy(w.Header(), done.Header())
		w.WriteHeader(done.Code)
		w.Write(done.Body.Bytes())
	})))
}

// delays has the authority's answers come through a proxy. keep says which of them is kept back from now on, and
// waits until it is.
func (w *world) delays() (keep func(prefix string) (kept func())) {
	w.t.Helper()
	a, file := &w.authority, filepath.Join(w.dir, "keep")
	parameters, _ := json.Marshal(delayed{Listen: a.ip + ":14001", To: a.ip + ":14000", Certificate: a.ca, Key: a.key, File: file})
	log := w.plays(a.host, "delay", string(parameters))
	a.directory = "https://" + a.ip + ":14001/dir"
	return func(prefix string) func() {
		w.t.Helper()
		if err := state.WriteAtomic(file, []byte(prefix), 0o600); err != nil {
			w.t.Fatal(err)
		}
		before := strings.Count(log.String(), "kept "+prefix)
		return func() {
			w.t.Helper()
			harness.WaitFor(w.t, 60*time.Second, "the answer to "+prefix+" is kept back", func() bool {
				return strings.Count(log.String(), "kept "+prefix) > before
			})
		}
	}
}

// orders returns when the site's orders were, by its file, and lets a time pass for them.
func (s *site) orders(t *testing.T, pass time.Duration) (all []time.Time) {
	t.Helper()
	file := filepath.Join(s.data, "public.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var stored map[string]any
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	orders, _ := stored["orders"].([]any)
	for _, o := range orders {
		one := o.(map[string]any)
		at, err := time.Parse(time.RFC3339Nano, one["at"].(string))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, at.Add(-pass))
		one["at"] = at.Add(-pass).Format(time.RFC3339Nano)
	}
	if text, err = json.Marshal(stored); err == nil && pass > 0 {
		err = state.WriteAtomic(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestKilled: a site that is killed at each step of an order, when the authority has done what it was asked for and its
// answer is not there yet, goes on with this order, and gets one certificate by it.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keep := w.delays()
	s := w.newSite(w.home())
	w.permit(s.key.ID())
	r := w.relay(zone)
	for _, step := range []string{"/sign-me-up", "/authZ/", "/chalZ/", "/finalize-order/", "/certZ/"} {
		kept := keep(step)
		w.run(s, "on", r.Addresses)
		kept()
		if step == "/chalZ/" {
			harness.WaitFor(t, 60*time.Second, "the authority has looked", func() bool {
				return strings.Contains(w.authority.log.String(), "by completed challenge")
			})
		}
		s.Kill(t)
	}
	keep("")
	w.run(s, "on", r.Addresses)
	s.certified(t, s.label(t)+"."+zone)
	if made, counted := w.authority.orders(), len(s.orders(t, 0)); made != 1 || counted != 1 {
		t.Errorf("%d orders, of which the site counts %d", made, counted)
	}
}

// TestKilledInOrders: a site that is killed five times after an order, whose number it does not know then, has counted
// each, and orders one a day.
func TestKilledInOrders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keep := w.delays()
	s := w.newSite(w.home())
	w.permit(s.key.ID())
	r := w.relay(zone)
	for n := range 5 {
		kept := keep("/order-plz")
		w.run(s, "on", r.Addresses)
		kept()
		s.Kill(t)
		if made, counted := w.authority.orders(), len(s.orders(t, 7*time.Hour)); made != n+1 || counted != made {
			t.Fatalf("%d orders, of which the site counts %d", made, counted)
		}
	}
	all := s.orders(t, 0)
	w.run(s, "on", r.Addresses)
	harness.WaitFor(t, 60*time.Second, "it says when it orders again", func() bool { return !s.state(t).Next.IsZero() })
	if p := s.state(t); p.Next.Sub(all[4]) < 24*time.Hour || p.Orders != 5 || w.authority.orders() != 5 {
		t.Errorf("after five orders, the last at %v: %+v; %d orders", all[4], p, w.authority.orders())
	}
}
