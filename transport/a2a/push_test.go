package a2a_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/agents/task"
	"agentsite/agents/task/tasktest"
	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/transport/a2a"
	"agentsite/transport/adapter"
	"agentsite/transport/adapter/adaptertest"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
)

// receiver is a receiver of push notifications on this machine.
type receiver struct {
	*httptest.Server
	got chan received
}

type received struct {
	path, body string
	header     http.Header
}

// receive starts a receiver. answer returns the status of each answer; nil for 200.
func receive(t *testing.T, answer func(received) int) *receiver {
	r := &receiver{got: make(chan received, 100)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		one := received{q.Method + " " + q.URL.Path, string(body), q.Header}
		if answer != nil {
			status := answer(one)
			if status == http.StatusFound {
				w.Header().Set("Location", "/elsewhere")
			}
			w.WriteHeader(status)
		}
		r.got <- one
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) host() string { return strings.TrimPrefix(r.URL, "http://") }

// next returns the next notification.
func (r *receiver) next(t *testing.T) received {
	t.Helper()
	select {
	case one := <-r.got:
		return one
	case <-time.After(20 * time.Second):
		t.Fatal("no notification came")
		return received{}
	}
}

// memory is a file in memory.
type memory struct {
	mu   sync.Mutex
	text []byte
}

func (m *memory) file() adapter.File {
	return adapter.File{
		Read: func() ([]byte, error) { m.mu.Lock(); defer m.mu.Unlock(); return m.text, nil },
		Write: func(b []byte) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.text = b
			return nil
		},
	}
}

func (m *memory) has(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Contains(string(m.text), text)
}

// newPushSite starts a site that sends push notifications to some hosts.
func newPushSite(t *testing.T, confirm []string, hosts ...string) (*adaptertest.Site, *memory) {
	t.Helper()
	s, m := adaptertest.New(t, nil, confirm...), new(memory)
	s.PushHosts, s.PushFile = hosts, m.file()
	s.Serve(t, a2a.Routes(&s.Site))
	return s, m
}

// waiting asks the helper for a task that waits, with a configuration in JSON or without, and returns its ID.
func waiting(t *testing.T, s *adaptertest.Site, token, key, config string) string {
	t.Helper()
	if config != "" {
		config = `,"taskPushNotificationConfig":` + config
	}
	_, text := s.Ask(t, "POST", "/a2a/agents/helper/message:send", token,
		`{"message":{"messageId":"`+key+`","role":"ROLE_USER","parts":[{"data":{"skill":"wait"}}]},"configuration":{"returnImmediately":true`+config+`}}`, "A2A-Version", "1.0")
	_, rest, _ := strings.Cut(text, `{"task":{"id":"`)
	id, _, ok := strings.Cut(rest, `"`)
	if !ok {
		t.Fatal(text)
	}
	return id
}

// TestPush: the protocol's own client makes, reads, lists and deletes configurations, and the
// receiver is sent the task with what the client gave, in order.
func TestPush(t *testing.T) {
	r := receive(t, nil)
	s, m := newPushSite(t, nil, r.host())
	each(t, s, adaptertest.SiteToken, tasktest.Helper.Name, func(t *testing.T, c *a2aclient.Client) {
		id := sdk.TaskID(waiting(t, s, adaptertest.SiteToken, rand(t), ""))
		config := &sdk.PushConfig{TaskID: id, URL: r.URL + "/hook", Token: "t0ken", Auth: &sdk.PushAuthInfo{Scheme: "bearer", Credentials: "s3cret"}}
		made, err := c.CreateTaskPushConfig(t.Context(), config)
		if err != nil || made.ID == "" || made.TaskID != id || made.URL != config.URL || made.Token != "t0ken" || made.Auth.Scheme != "bearer" || made.Auth.Credentials != "" {
			t.Fatalf("%+v, %v", made, err)
		}
		one := r.next(t)
		if one.path != "POST /hook" || !strings.HasPrefix(one.body, `{"task":{"id":"`+string(id)+`"`) || one.header.Get("Content-Type") != "application/json" ||
			one.header.Get("Authorization") != "Bearer s3cret" || one.header.Get("X-A2A-Notification-Token") != "t0ken" || one.header.Get("A2A-Notification-Token") != "t0ken" {
			t.Errorf("%+v", one)
		}
		got, err := c.GetTaskPushConfig(t.Context(), &sdk.GetTaskPushConfigRequest{TaskID: id, ID: made.ID})
		if err != nil || got.ID != made.ID || got.Token != "t0ken" {
			t.Errorf("%+v, %v", got, err)
		}
		other, err := c.CreateTaskPushConfig(t.Context(), &sdk.PushConfig{TaskID: id, ID: "mine", URL: r.URL + "/other"})
		if err != nil || other.ID != "mine" {
			t.Fatalf("%+v, %v", other, err)
		}
		if r.next(t).path != "POST /other" {
			t.Error("another receiver was told")
		}
		all, err := c.ListTaskPushConfigs(t.Context(), &sdk.ListTaskPushConfigRequest{TaskID: id})
		if err != nil || len(all) != 2 {
			t.Errorf("%v, %v", all, err)
		}
		for range 2 {
			if err := c.DeleteTaskPushConfig(t.Context(), &sdk.DeleteTaskPushConfigRequest{TaskID: id, ID: "mine"}); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.GetTaskPushConfig(t.Context(), &sdk.GetTaskPushConfigRequest{TaskID: id, ID: "mine"}); !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Error(err)
		}
		if !m.has(made.ID) || m.has(`"mine"`) {
			t.Errorf("the file has %s", m.text)
		}
		if _, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: id}); err != nil {
			t.Fatal(err)
		}
		for {
			one := r.next(t)
			if one.path != "POST /hook" {
				t.Fatal("what was deleted is sent", one.body)
			}
			if strings.Contains(one.body, "TASK_STATE_CANCELED") {
				break
			}
		}
		if _, err := c.CreateTaskPushConfig(t.Context(), config); !errors.Is(err, sdk.ErrUnsupportedOperation) {
			t.Error(err)
		}
		eventually(t, "the configuration ends with its task", func() bool { return !m.has(string(id)) })
	})
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(what)
		}
	}
}

// TestPushLegacy: 0.3 has its own names, and sends the task itself.
func TestPushLegacy(t *testing.T) {
	r := receive(t, nil)
	s, _ := newPushSite(t, nil, r.host())
	ask := func(method, params string) string {
		t.Helper()
		_, text := s.Ask(t, "POST", "/a2a/agents/helper", adaptertest.SiteToken, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
		return text
	}
	made := ask("message/send", `{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"data","data":{"skill":"question"}}]},
		"configuration":{"pushNotificationConfig":{"id":"first","url":"`+r.URL+`","token":"t","authentication":{"schemes":["Basic"],"credentials":"YTpi"}}}}`)
	_, rest, _ := strings.Cut(made, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	for asked := false; !asked; {
		one := r.next(t)
		if !strings.Contains(one.body, `"kind":"task"`) || one.header.Get("Authorization") != "Basic YTpi" || one.header.Get("X-A2A-Notification-Token") != "t" {
			t.Fatalf("%+v", one)
		}
		asked = strings.Contains(one.body, `"state":"input-required"`)
	}
	wrapped := func(config string) string {
		return `{"taskId":"` + id + `","pushNotificationConfig":` + config + `}`
	}
	for _, c := range []struct{ method, params, want string }{
		{"tasks/pushNotificationConfig/get", `{"id":"` + id + `"}`, `"result":` + wrapped(`{"id":"first","url":"`+r.URL+`","token":"t","authentication":{"schemes":["Basic"]}}`)},
		{"tasks/pushNotificationConfig/set", wrapped(`{"id":"second","url":"` + r.URL + `/2"}`), `"result":` + wrapped(`{"id":"second","url":"`+r.URL+`/2"}`)},
		{"tasks/pushNotificationConfig/list", `{"id":"` + id + `"}`, `/2"}}]`},
		{"tasks/pushNotificationConfig/delete", `{"id":"` + id + `","pushNotificationConfigId":"first"}`, `"result":null`},
		{"tasks/pushNotificationConfig/get", `{"id":"` + id + `","pushNotificationConfigId":"first"}`, `"code":-32001`},
	} {
		if got := ask(c.method, c.params); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.method, got, c.want)
		}
	}
	ask("message/send", `{"message":{"kind":"message","messageId":"n","taskId":"`+id+`","role":"user","parts":[{"kind":"text","text":"red"}]}}`)
	for {
		one := r.next(t)
		if one.path != "POST /2" {
			t.Fatal("what was deleted is sent", one.body)
		}
		if strings.Contains(one.body, `"state":"completed"`) && strings.Contains(one.body, `"colour":"red"`) {
			break
		}
	}
}

// TestPushHosts: nothing is sent but to what the owner named, and no configuration for another
// host is taken, however its URL is written. Without names the protocol's error is answered.
func TestPushHosts(t *testing.T) {
	r := receive(t, nil)
	s, m := newPushSite(t, nil, r.host(), "localhost:"+strings.Split(r.host(), ":")[1], "hooks.example.com", "[fd00::20]:8443")
	_, port, _ := strings.Cut(r.host(), ":")
	id := waiting(t, s, adaptertest.SiteToken, "m", "")
	for _, u := range []string{
		"", "hooks.example.com", "/path", "ftp://hooks.example.com/", "file:///etc/passwd", "http://hooks.example.com/", "http://hooks.example.com:443/",
		"https://hooks.example.com:8443/", "https://hooks.example.com.evil.example/", "https://hooks.example.com@evil.example/", "https://evil.example/hooks.example.com",
		"https://ann:secret@hooks.example.com/", "https://hooks.example.com./", "https://hooks.example.com/#x", "https://evil.example?hooks.example.com", `https://evil.example\@hooks.example.com/`,
		"https://169.254.169.254/latest/meta-data", "https://127.0.0.1/", "http://127.0.0.1/", "http://127.0.0.1:1/", "http://[::1]:" + port + "/", "http://[::ffff:127.0.0.1]:" + port + "/",
		"http://2130706433:" + port + "/", "http://0x7f000001:" + port + "/", "http://127.1:" + port + "/", "http://localhost:" + port + "/", "http://0.0.0.0:" + port + "/",
		"https://[fd00::20]/", "https://[fd00::21]:8443/", "https://[fd00:0::20]:8443/", "https://192.168.1.1/", "https://metadata.google.internal/", "http://127.0.0.1:" + port + "\r\nX-Evil: 1/",
		"https://hooks.example.com/" + strings.Repeat("x", 600),
	} {
		res, text := s.Ask(t, "POST", "/a2a/agents/helper/tasks/"+id+"/pushNotificationConfigs", adaptertest.SiteToken, fmt.Sprintf(`{"url":%q}`, u), "A2A-Version", "1.0")
		if res.StatusCode != http.StatusBadRequest || !strings.Contains(text, `"INVALID_PARAMS"`) {
			t.Errorf("%s: %d %s", u, res.StatusCode, text)
		}
	}
	for field, config := range map[string]string{
		"token":       `{"url":"https://hooks.example.com/","token":"a\r\nX-Evil: 1"}`,
		"long token":  `{"url":"https://hooks.example.com/","token":"` + strings.Repeat("x", 2000) + `"}`,
		"id":          `{"url":"https://hooks.example.com/","id":"` + strings.Repeat("x", 200) + `"}`,
		"scheme":      `{"url":"https://hooks.example.com/","authentication":{"scheme":"Digest","credentials":"x"}}`,
		"credentials": `{"url":"https://hooks.example.com/","authentication":{"scheme":"Bearer"}}`,
		"two lines":   `{"url":"https://hooks.example.com/","authentication":{"scheme":"Bearer","credentials":"a\nb"}}`,
	} {
		res, text := s.Ask(t, "POST", "/a2a/agents/helper/tasks/"+id+"/pushNotificationConfigs", adaptertest.SiteToken, config, "A2A-Version", "1.0")
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", field, res.StatusCode, text)
		}
	}
	// A bad configuration beside a message is refused before anything is done.
	res, _ := s.Ask(t, "POST", "/a2a/agents/helper/message:send", adaptertest.SiteToken,
		`{"message":{"messageId":"n","contextId":"refused","role":"ROLE_USER","parts":[{"data":{"skill":"wait"}}]},"configuration":{"taskPushNotificationConfig":{"url":"https://evil.example/"}}}`, "A2A-Version", "1.0")
	if _, text := s.Ask(t, "GET", "/a2a/agents/helper/tasks?contextId=refused", adaptertest.SiteToken, "", "A2A-Version", "1.0"); res.StatusCode != http.StatusBadRequest || !strings.Contains(text, `"totalSize":0`) {
		t.Error(res.Status, text)
	}
	if len(r.got) > 0 || m.has("url") {
		t.Error("something was stored or sent")
	}
	for _, of := range []struct {
		site *adaptertest.Site
		want string
	}{{s, `"pushNotifications":true`}, {newSite(t), `"pushNotifications":false`}} {
		if _, text := of.site.Ask(t, "GET", "/a2a/agents/helper/.well-known/agent-card.json", adaptertest.SiteToken, ""); !strings.Contains(text, of.want) {
			t.Error(text)
		}
	}
}

// TestPushNames: a name that leads to an address of a private network is not dialled, and neither is
// where a receiver redirects to.
func TestPushNames(t *testing.T) {
	var paths sync.Map
	r := receive(t, func(one received) int { paths.Store(one.path, true); return http.StatusFound })
	s, m := newPushSite(t, nil, r.host())
	id := waiting(t, s, adaptertest.SiteToken, "m", `{"id":"c","url":"`+r.URL+`"}`)
	for range 2 {
		r.next(t) // tried again
	}
	if _, found := paths.Load("POST /elsewhere"); found {
		t.Error("a redirect is followed")
	}
	if _, found := paths.Load("GET /elsewhere"); found || !m.has(id) {
		t.Error("a redirect is followed")
	}
}

// TestPushBound: configurations are their principal's, are bounded, and end with its permission.
func TestPushBound(t *testing.T) {
	r := receive(t, nil)
	s, m := newPushSite(t, nil, r.host())
	ann, revoke := s.Token(t, "ann", "ask helper")
	bob, _ := s.Token(t, "bob", "ask helper")
	id := waiting(t, s, ann, "m", `{"id":"0","url":"`+r.URL+`/0"}`)
	r.next(t)
	path := "/a2a/agents/helper/tasks/" + id + "/pushNotificationConfigs"
	for _, q := range []struct{ verb, path, body string }{{"GET", path, ""}, {"GET", path + "/0", ""}, {"DELETE", path + "/0", ""}, {"POST", path, `{"url":"` + r.URL + `"}`}} {
		if res, text := s.Ask(t, q.verb, q.path, bob, q.body, "A2A-Version", "1.0"); res.StatusCode != http.StatusNotFound || !strings.Contains(text, "TASK_NOT_FOUND") {
			t.Errorf("%s %s: %d %s", q.verb, q.path, res.StatusCode, text)
		}
	}
	for i, want := range []int{200, 200, 200, 429, 429} {
		if res, text := s.Ask(t, "POST", path, ann, fmt.Sprintf(`{"id":"%d","url":"%s/%[1]d"}`, i+1, r.URL), "A2A-Version", "1.0"); res.StatusCode != want {
			t.Errorf("%d: %d %s", i, res.StatusCode, text)
		}
	}
	for range 3 {
		r.next(t)
	}
	// The same ID once more replaces.
	if res, text := s.Ask(t, "POST", path, ann, `{"id":"3","url":"`+r.URL+`/new"}`, "A2A-Version", "1.0"); res.StatusCode != http.StatusOK {
		t.Error(text)
	}
	if got := r.next(t).path; got != "POST /new" {
		t.Error(got)
	}
	if _, text := s.Ask(t, "GET", path, ann, "", "A2A-Version", "1.0"); strings.Count(text, `"url"`) != 4 || strings.Contains(text, "/3\"") {
		t.Error(text)
	}
	revoke()
	eventually(t, "the configurations end with the permission", func() bool { return !m.has(id) })
	for len(r.got) > 0 { // of the task before
		<-r.got
	}
	if _, err := s.Tasks.Cancel(t.Context(), agents.Principal{Kind: principal.Local, ID: "local", Owner: true}, id); err != nil {
		t.Fatal(err)
	}
	other := waiting(t, s, bob, "m", `{"url":"`+r.URL+`/bob"}`)
	for one := r.next(t); !strings.Contains(one.body, other); one = r.next(t) {
		t.Error("a permission that ended is told", one.body)
	}
}

// TestPushHangs: a receiver that never answers delays neither the caller, nor other receivers, nor
// the end of the site.
func TestPushHangs(t *testing.T) {
	hold := make(chan struct{})
	slow := receive(t, func(received) int { <-hold; return http.StatusOK })
	defer close(hold)
	r := receive(t, nil)
	s, _ := newPushSite(t, nil, slow.host(), r.host())
	id := waiting(t, s, adaptertest.SiteToken, "m", `{"id":"slow","url":"`+slow.URL+`"}`)
	path := "/a2a/agents/helper/tasks/" + id
	if res, text := s.Ask(t, "POST", path+"/pushNotificationConfigs", adaptertest.SiteToken, `{"id":"good","url":"`+r.URL+`"}`, "A2A-Version", "1.0"); res.StatusCode != http.StatusOK {
		t.Fatal(text)
	}
	r.next(t)
	s.Ask(t, "POST", path+":cancel", adaptertest.SiteToken, "", "A2A-Version", "1.0")
	for !strings.Contains(r.next(t).body, "TASK_STATE_CANCELED") {
	}
	began := time.Now()
	if res, text := s.Ask(t, "DELETE", path+"/pushNotificationConfigs/slow", adaptertest.SiteToken, "", "A2A-Version", "1.0"); res.StatusCode != http.StatusOK || time.Since(began) > 5*time.Second {
		t.Error(res.Status, text, time.Since(began))
	}
}

// TestPushRestart: configurations outlive a restart as tasks do, and their receivers are told how
// the task is. A host that is not named any more is sent nothing.
func TestPushRestart(t *testing.T) {
	r, gone := receive(t, nil), receive(t, nil)
	s, m := adaptertest.New(t, nil), new(memory)
	before := s.Site
	ending, end := context.WithCancel(s.Ending)
	var running sync.WaitGroup
	before.Ending, before.Go = ending, running.Go
	before.PushHosts, before.PushFile = []string{r.host(), gone.host()}, m.file()
	s.Serve(t, a2a.Routes(&before))
	token, _ := s.Token(t, "ann", "ask helper")
	id := waiting(t, s, token, "m", `{"id":"c","url":"`+r.URL+`","token":"t","authentication":{"scheme":"Bearer","credentials":"s3cret"}}`)
	other := waiting(t, s, token, "n", `{"id":"d","url":"`+gone.URL+`"}`)
	r.next(t)
	gone.next(t)
	end()
	running.Wait()
	for len(r.got) > 0 {
		<-r.got
	}

	s.PushHosts, s.PushFile = []string{r.host()}, m.file()
	s.Serve(t, a2a.Routes(&s.Site))
	if one := r.next(t); !strings.Contains(one.body, id) || one.header.Get("Authorization") != "Bearer s3cret" || one.header.Get("X-A2A-Notification-Token") != "t" {
		t.Errorf("%+v", one)
	}
	if !m.has(id) || m.has(other) {
		t.Errorf("%s", m.text)
	}
	if _, text := s.Ask(t, "GET", "/a2a/agents/helper/tasks/"+id+"/pushNotificationConfigs/c", token, "", "A2A-Version", "1.0"); !strings.Contains(text, r.URL) {
		t.Error(text)
	}
	s.Ask(t, "POST", "/a2a/agents/helper/tasks/"+id+":cancel", token, "", "A2A-Version", "1.0")
	for !strings.Contains(r.next(t).body, "TASK_STATE_CANCELED") {
	}
	eventually(t, "the configuration ends with its task", func() bool { return !m.has(id) })
}

// TestPushDamage: a file of another version, or damaged, is kept as it is, and no configuration is taken.
func TestPushDamage(t *testing.T) {
	r := receive(t, nil)
	for _, text := range []string{`{"version":2}`, `{`, `{"version":1,"pushes":7}`, `{"version":1,"pushes":[null]}`} {
		s, m := adaptertest.New(t, nil), &memory{text: []byte(text)}
		s.PushHosts, s.PushFile = []string{r.host()}, m.file()
		s.Serve(t, a2a.Routes(&s.Site))
		id := waiting(t, s, adaptertest.SiteToken, "m", "")
		res, answer := s.Ask(t, "POST", "/a2a/agents/helper/tasks/"+id+"/pushNotificationConfigs", adaptertest.SiteToken, `{"url":"`+r.URL+`"}`, "A2A-Version", "1.0")
		if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(answer, "push.json") || string(m.text) != text {
			t.Errorf("%s: %d %s, %s", text, res.StatusCode, answer, m.text)
		}
	}
}

// TestPushApproval: a call that waits for an owner tells its caller when it was made. It is not kept
// over a restart, as its task is not.
func TestPushApproval(t *testing.T) {
	r := receive(t, nil)
	s, m := newPushSite(t, []string{"vent"}, r.host())
	token, _ := s.Token(t, "mover", "set greenhouse")
	c := client(t, s, sdk.TransportProtocolJSONRPC, token, "")
	ask := say(data(map[string]any{"operation": "move", "output": "greenhouse/vent", "value": 30, "for": 60}))
	ask.Config = &sdk.SendMessageConfig{PushConfig: &sdk.PushConfig{URL: r.URL}}
	got, err := c.SendMessage(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	id := string(got.(*sdk.Task).ID)
	if one := r.next(t); !strings.Contains(one.body, "TASK_STATE_AUTH_REQUIRED") || m.has(url.PathEscape(r.URL)) || m.has(id) {
		t.Errorf("%+v %s", one, m.text)
	}
	if err := s.Node.Approve(agents.Principal{Kind: principal.Local, ID: "local", Owner: true}, id, true); err != nil {
		t.Fatal(err)
	}
	if one := r.next(t); !strings.Contains(one.body, "TASK_STATE_COMPLETED") || s.Value("greenhouse/vent") != device.Number(30) {
		t.Errorf("%+v", one)
	}
}

// TestPushUnseen: after a restart a configuration waits for its principal's permission, such as
// one with an end while the clock is not set.
func TestPushUnseen(t *testing.T) {
	r := receive(t, nil)
	s, key := adaptertest.New(t, nil), identity.New()
	host := s.Tasks.(*tasktest.Host)
	who := agents.Principal{ID: key.ID().String()}
	may := host.May
	host.May = func(agents.Principal) bool { return true }
	made, err := host.Ask(t.Context(), who, task.Request{Agent: tasktest.Helper.Name, Skill: "wait"})
	if err != nil {
		t.Fatal(err)
	}
	host.May = may
	m := &memory{text: fmt.Appendf(nil, `{"version":1,"pushes":[{"who":%q,"agent":"helper","config":{"id":"c","taskId":%q,"url":%q}}]}`, who.ID, made.ID, r.URL)}
	s.PushHosts, s.PushFile = []string{r.host()}, m.file()
	s.Serve(t, a2a.Routes(&s.Site))
	time.AfterFunc(1500*time.Millisecond, func() {
		if len(r.got) > 0 || !m.has(made.ID) {
			t.Error("it did not wait")
		}
		s.Grant(t, key.ID(), "ask helper")
	})
	if one := r.next(t); !strings.Contains(one.body, made.ID) {
		t.Errorf("%+v", one)
	}
}
