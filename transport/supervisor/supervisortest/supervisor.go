// Package supervisortest is Home Assistant's Supervisor for tests, as far as an app meets it: its API, and the ingress
// by which users of Home Assistant reach the app's page. What it answers is transcribed from home-assistant/supervisor
// at 090ef31e (2026-08-21): api/discovery.py, api/services.py, api/middleware/security.py, api/utils.py and
// api/ingress.py, and from home-assistant/core, components/hassio/ingress.py.
package supervisortest

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Supervisor serves the API. The zero value refuses everybody. It is safe for concurrent use.
type Supervisor struct {
	Token     string   // of the one app
	Discovery []string // what its config.yaml lists under discovery

	mu       sync.Mutex
	broker   map[string]any // of the service mqtt, nil while no app provides it
	messages map[string]Message
	pushed   []Pushed
	fails    int // the status of every answer; 0 for the right one
}

// Message is an announcement that Home Assistant is told of.
type Message struct {
	Service string         `json:"service"`
	Config  map[string]any `json:"config"`
}

// Pushed is one message of the Supervisor to Home Assistant.
type Pushed struct {
	Verb, UUID string // post or delete
	Message
}

// SetBroker has an app provide the service mqtt, or none with nil.
func (s *Supervisor) SetBroker(data map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broker = data
}

// SetFailing has every answer have a status, 0 for the right one.
func (s *Supervisor) SetFailing(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = status
}

// Pushed returns what Home Assistant was told until now.
func (s *Supervisor) Pushed() []Pushed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Pushed(nil), s.pushed...)
}

func (s *Supervisor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := r.Header.Get("X-Supervisor-Token")
	if token == "" {
		token = r.Header.Get("Authorization")
		token = token[strings.LastIndex(token, " ")+1:]
	}
	switch {
	case s.fails != 0:
		http.Error(w, "", s.fails)
	case token == "":
		http.Error(w, "401: Unauthorized", http.StatusUnauthorized)
	case token != s.Token:
		http.Error(w, "403: Forbidden", http.StatusForbidden)
	case r.Method == "GET" && r.URL.Path == "/info":
		ok(w, map[string]any{"supervisor": "2026.08.3", "homeassistant": "2026.10.0", "hostname": "homeassistant", "arch": "aarch64"})
	case r.Method == "GET" && r.URL.Path == "/services/mqtt":
		if s.broker == nil {
			refuse(w, 400, "Service not enabled")
			return
		}
		ok(w, s.broker)
	case r.Method == "POST" && r.URL.Path == "/discovery":
		s.announce(w, r)
	case r.Method == "DELETE" && strings.HasPrefix(r.URL.Path, "/discovery/"):
		uuid := strings.TrimPrefix(r.URL.Path, "/discovery/")
		m, there := s.messages[uuid]
		if !there {
			refuse(w, 404, "Discovery message not found")
			return
		}
		delete(s.messages, uuid)
		s.pushed = append(s.pushed, Pushed{"delete", uuid, m})
		ok(w, nil)
	case r.URL.Path == "/discovery": // for Home Assistant alone
		http.Error(w, "401: Unauthorized", http.StatusUnauthorized)
	default:
		http.Error(w, "404: Not Found", http.StatusNotFound)
	}
}

func (s *Supervisor) announce(w http.ResponseWriter, r *http.Request) {
	var m Message
	text, _ := io.ReadAll(r.Body)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if d.Decode(&m) != nil || m.Service == "" || m.Config == nil {
		refuse(w, 400, "Invalid json")
		return
	}
	listed := false
	for _, name := range s.Discovery {
		listed = listed || name == m.Service
	}
	if !listed {
		refuse(w, 403, "Apps must list services they provide via discovery in their config!")
		return
	}
	now, _ := json.Marshal(m.Config)
	for uuid, before := range s.messages {
		if before.Service != m.Service {
			continue
		}
		if was, _ := json.Marshal(before.Config); !bytes.Equal(was, now) {
			s.messages[uuid] = m
			s.pushed = append(s.pushed, Pushed{"post", uuid, m})
		}
		ok(w, map[string]any{"uuid": uuid})
		return
	}
	b := make([]byte, 16)
	rand.Read(b)
	uuid := hex.EncodeToString(b)
	if s.messages == nil {
		s.messages = make(map[string]Message)
	}
	s.messages[uuid] = m
	s.pushed = append(s.pushed, Pushed{"post", uuid, m})
	ok(w, map[string]any{"uuid": uuid})
}

func ok(w http.ResponseWriter, data map[string]any) {
	if data == nil {
		data = map[string]any{}
	}
	answer(w, 200, map[string]any{"result": "ok", "data": data})
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"result": "error", "message": message})
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}
