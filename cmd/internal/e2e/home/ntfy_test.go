//go:build e2e

package home

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/go-json-experiment/json"
)

// published is a message as ntfy gives it away (server/types.go, message).
type published struct {
	Event    string   `json:"event"`
	Topic    string   `json:"topic"`
	Title    string   `json:"title"`
	Message  string   `json:"message"`
	Priority int      `json:"priority,omitzero"`
	Tags     []string `json:"tags,omitzero"`
	Click    string   `json:"click,omitzero"`
	Actions  []struct {
		Action string `json:"action"`
		Label  string `json:"label"`
		URL    string `json:"url"`
	} `json:"actions,omitzero"`
}

const (
	ntfyAddress = "127.0.0.1:2586"
	ntfyToken   = "tk_0taz4gy6i2hnqi6m4nulw71purhaa"
)

// ntfyServer answers as the server of ntfy does (github.com/binwiederhier/ntfy, server/server.go and errors.go of
// July 2025), for a topic that the user site may write and the user phone may read.
type ntfyServer struct {
	mu       sync.Mutex
	password string // of phone
	all      []published
	limited  bool // it refuses messages for their rate
}

func (s *ntfyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := func(status, code int, why string) {
		w.Header().Set("Content-Type", "application/json") // and no Retry-After
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"code":%d,"http":%d,"error":%q}`+"\n", code, status, why)
	}
	user, password, basic := r.BasicAuth()
	bearer, token := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	reads, writes := basic && user == "phone" && password == s.password, token && bearer == ntfyToken
	switch {
	case (basic || token) && !reads && !writes:
		refuse(401, 40101, "unauthorized")
	case r.Method == "GET" && r.URL.Path == "/garden/json" && reads:
		for _, m := range s.all {
			json.MarshalWrite(w, m)
			w.Write([]byte("\n"))
		}
	case r.Method != "POST" || r.URL.Path != "/" || !writes:
		refuse(403, 40301, "forbidden")
	case s.limited:
		refuse(429, 42901, "limit reached: too many requests")
	default:
		var body bytes.Buffer
		body.ReadFrom(http.MaxBytesReader(nil, r.Body, 1<<20))
		m := published{Event: "message"}
		switch err := json.Unmarshal(body.Bytes(), &m); {
		case body.Len() > 2*4096:
			refuse(413, 41303, "JSON body too large")
		case err != nil:
			refuse(400, 40024, "invalid request: request body must be message JSON")
		case m.Topic != "garden":
			refuse(403, 40301, "forbidden")
		case len(m.Message) > 4096: // it would be an attachment, which has to be allowed
			refuse(400, 40014, "invalid request: attachments not allowed")
		case m.Priority < 0 || m.Priority > 5:
			refuse(400, 40007, "invalid priority parameter")
		default:
			s.all = append(s.all, m)
			json.MarshalWrite(w, m)
		}
	}
}

// TestNtfy follows the recipe for ntfy as it is written: a message, one that is urgent, one of many long texts, and what
// waits while the server is down or refuses for the rate. NTFY names the real program, which it then runs with as well.
func TestNtfy(t *testing.T) {
	if !onOwnMachine(t) {
		return
	}
	t.Run("transcribed", func(t *testing.T) {
		p := newPerson(t)
		p.program("ntfy", `[ "$1" != token ] || echo token `+ntfyToken+` created for user site, never expires >&2`)
		s := &ntfyServer{}
		followNtfy(p, func(limited bool) (end func()) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if text, err := os.ReadFile(filepath.Join(p.dir, "phone.password")); err == nil {
				s.password = strings.TrimSpace(string(text))
			}
			s.limited = limited
			ln, err := net.Listen("tcp", ntfyAddress)
			if err != nil {
				p.Fatal(err)
			}
			server := &http.Server{Handler: s}
			go server.Serve(ln)
			return func() { server.Close() }
		})
	})
	if real := os.Getenv("NTFY"); real != "" {
		t.Run("real", func(t *testing.T) {
			p := newPerson(t)
			p.program("ntfy", "export NTFY_AUTH_FILE="+p.dir+"/user.db NTFY_CACHE_FILE="+p.dir+"/cache.db; exec "+real+` "$@"`)
			p.write("server.yml", recipe(t, "ntfy")[0].text, 0o600)
			followNtfy(p, func(limited bool) (end func()) {
				args := []string{"serve", "--config", "server.yml", "--visitor-request-limit-exempt-hosts", "127.0.0.1"}
				if limited {
					args = append(args[:3], "--visitor-request-limit-burst", "1", "--visitor-request-limit-replenish", "1h")
				}
				_, end = p.start(filepath.Join(p.dir, "bin/ntfy"), args...)
				harness.WaitFor(p, time.Minute, "ntfy answers", func() bool {
					c, err := net.Dial("tcp", ntfyAddress)
					if err == nil {
						c.Close()
					}
					return err == nil
				})
				if limited { // all that this address may ask
					r := harness.NewRequest(p, "POST", "http://"+ntfyAddress+"/", `{"topic":"garden","message":"x"}`, "Authorization", "Bearer "+p.read("ntfy.token"))
					res, err := http.DefaultClient.Do(r)
					if err != nil {
						p.Fatal(err)
					}
					res.Body.Close()
				}
				return end
			})
		})
	}
}

// followNtfy does the steps. serve starts the server, with a small rate limit if it says so.
func followNtfy(p *person, serve func(limited bool) (end func())) {
	steps := recipe(p.T, "ntfy")
	p.site("site: { name: garden }\ndevices: { bare: { driver: sim, model: relay } }\n")
	end := serve(false)
	p.do(steps[1].text)
	end()
	end = serve(false) // it knows the accounts
	p.write("agentsite.yaml", steps[2].text, 0o600)
	if said := p.do(steps[3].text); !strings.Contains(said, "arrived") {
		p.Fatalf("the trial: %s", said)
	}
	p.got("the trial", func(m published) bool { return strings.HasPrefix(m.Title, "garden") && m.Message != "" })

	p.do("agentsite stop")
	p.got("the stop", func(m published) bool {
		return m.Priority == 5 && slices.Contains(m.Tags, "warning") && strings.HasPrefix(m.Click, "https://board.local:8474/#") &&
			len(m.Actions) == 1 && m.Actions[0].Action == "view" && m.Actions[0].URL == m.Click &&
			strings.Contains(m.Title, "stop")
	})
	p.do("agentsite reset")
	p.got("the reset", func(m published) bool { return strings.Contains(m.Title, "reset") })

	token := p.read("ntfy.token")
	p.write("ntfy.token", "tk_wrong\n", 0o600)
	if said := p.do("agentsite notify test || true"); !strings.Contains(said, "401") {
		p.Errorf("a wrong token: %s", said)
	}
	p.write("ntfy.token", token+"\n", 0o600)

	// Messages that agents send while the server is down are merged into one, whose JSON is not too long for it.
	end()
	p.do("(umask 077; agentsite token add other 'ask notify' >other.token)")
	for i := range 4 {
		for _, as := range []string{"", " --url http://127.0.0.1:8473 --token-file other.token"} {
			p.do(fmt.Sprintf("agentsite ask%s notify '%d%s'", as, i, strings.Repeat(`"`, 499)))
		}
	}
	p.says("has failed")
	end = serve(true)
	p.says("429")
	end()
	end = serve(false)
	p.got("what waited", func(m published) bool {
		return strings.Contains(m.Message, `0""`) && len(m.Message) > 3000 && strings.Count(m.Message, "•") > 4
	})
	end()
}

// says waits until the agent that notifies reports a text.
func (p *person) says(text string) {
	p.Helper()
	harness.WaitFor(p, time.Minute, "agents says "+text,
		func() bool { return strings.Contains(p.do("agentsite agents"), text) })
}

// got waits for a message on the phone.
func (p *person) got(what string, is func(published) bool) {
	p.Helper()
	var all []published
	defer func() {
		if p.Failed() {
			p.Logf("got %+v", all)
		}
	}()
	harness.WaitFor(p, 2*time.Minute, what, func() bool {
		r := harness.NewRequest(p, "GET", "http://"+ntfyAddress+"/garden/json?poll=1", "")
		r.SetBasicAuth("phone", p.read("phone.password"))
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		defer res.Body.Close()
		var body bytes.Buffer
		body.ReadFrom(res.Body)
		all = nil
		for line := range bytes.Lines(body.Bytes()) {
			var m published
			if err := json.Unmarshal(line, &m); err != nil {
				p.Fatalf("%v: %s", err, line)
			}
			if all = append(all, m); is(m) {
				return true
			}
		}
		return false
	})
}
