//go:build e2e

// Package events is a client of MCP events for tests, and a receiver of them by webhook.
package events

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
)

// Occurrence is an event as the MCP extension for events has it, by poll, stream or webhook.
type Occurrence struct {
	EventID   string `json:"eventId"`
	Name      string `json:"name"`
	Timestamp string `json:"timestamp"`
	Cursor    string `json:"cursor"`
	Data      struct {
		Point   string          `json:"point"`
		Output  string          `json:"output"`
		Value   json.RawMessage `json:"value"`
		Because string          `json:"because"`
	} `json:"data"`
}

// Delivery is a message to a Receiver: an Occurrence, or of the Type gap or terminated.
type Delivery struct {
	Occurrence
	Type  string `json:"type"`
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	ID           string `json:"-"` // the header webhook-id
	Subscription string `json:"-"` // the header X-MCP-Subscription-Id
}

// Receiver is a receiver of events over HTTPS. It answers challenges, and fails the test where a message is not signed
// by its Secret (Standard Webhooks, v1).
type Receiver struct {
	URL, Secret string
	Host        string // for push_hosts
	Certificate string // the file that a site has to trust

	t    testing.TB
	key  []byte
	hang chan struct{} // closed when the test ends

	mu         sync.Mutex
	all        []Delivery
	challenges int
	hanging    int // messages that wait for an answer
	hangs      bool
}

// NewReceiver starts a receiver, which ends with the test.
func NewReceiver(t testing.TB) *Receiver {
	t.Helper()
	w := &Receiver{t: t, key: make([]byte, 32), hang: make(chan struct{})}
	rand.Read(w.key)
	w.Secret = "whsec_" + base64.StdEncoding.EncodeToString(w.key)
	s := httptest.NewUnstartedServer(w)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(w.hang) }) // before
	w.URL, w.Host = s.URL+"/hook", strings.TrimPrefix(s.URL, "https://")
	w.Certificate = filepath.Join(harness.TempDir(t), "receiver.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(w.Certificate, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// Program returns the arguments for a site that trusts the receiver's certificate, which all receivers have.
func (w *Receiver) Program(more ...string) []string {
	return append(
		[]string{"env", "SSL_CERT_FILE=" + w.Certificate, harness.Need(w.t, "the program", harness.Program), "run"}, more...,
	)
}

// Hang has the receiver leave messages unanswered, except challenges.
func (w *Receiver) Hang() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hangs = true
}

// Hanging returns how many messages wait for an answer.
func (w *Receiver) Hanging() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hanging
}

// Challenges returns how many challenges were answered.
func (w *Receiver) Challenges() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.challenges
}

// Deliveries returns what has come, without challenges, in this order.
func (w *Receiver) Deliveries() []Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

func (w *Receiver) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return // the site was killed
	}
	if !w.signed(r.Header, body) || r.Method != http.MethodPost || r.URL.Path != "/hook" || len(body) > 256<<10 {
		w.t.Errorf("the receiver is sent %s %s %v %.300s", r.Method, r.URL, r.Header, body)
	}
	var asks struct{ Type, Challenge string }
	d := Delivery{ID: r.Header.Get("webhook-id"), Subscription: r.Header.Get("X-MCP-Subscription-Id")}
	if json.Unmarshal(body, &asks) != nil || json.Unmarshal(body, &d) != nil {
		w.t.Errorf("the receiver is sent %.300s", body)
	}
	if asks.Type == "verification" {
		w.mu.Lock()
		w.challenges++
		w.mu.Unlock()
		rw.Header().Set("Content-Type", "application/json")
		json.NewEncoder(rw).Encode(map[string]string{"challenge": asks.Challenge})
		return
	}
	w.mu.Lock()
	hangs := w.hangs
	w.all = append(w.all, d)
	w.mu.Unlock()
	if hangs {
		w.wait(r)
		return
	}
	rw.WriteHeader(http.StatusNoContent)
}

// wait waits until the sender gives up, or the test ends.
func (w *Receiver) wait(r *http.Request) {
	w.mu.Lock()
	w.hanging++
	w.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-w.hang:
	}
	w.mu.Lock()
	w.hanging--
	w.mu.Unlock()
}

// signed reports whether one of the message's signatures is by the secret.
func (w *Receiver) signed(h http.Header, body []byte) bool {
	sum := hmac.New(sha256.New, w.key)
	io.WriteString(sum, h.Get("webhook-id")+"."+h.Get("webhook-timestamp")+".")
	sum.Write(body)
	want := "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	return h.Get("webhook-id") != "" && slices.Contains(strings.Fields(h.Get("webhook-signature")), want)
}
