package wot_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/agents/task/tasktest"
	"agentsite/device"
	"agentsite/transport/adapter/adaptertest"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// socket is a client's end of a session.
type socket struct {
	*testing.T
	conn *websocket.Conn
	id   string // of things, without the name
	sent int
}

// said has the members of a message that the tests check.
type said struct {
	Thing       string         `json:"thingId"`
	ID          string         `json:"messageId"`
	Type        string         `json:"messageType"`
	Correlation string         `json:"correlationId"`
	Name        string         `json:"name"`
	Property    string         `json:"property"`
	Value       jsontext.Value `json:"value"`
	Data        jsontext.Value `json:"data"`
	Event       string         `json:"event"`
	Action      string         `json:"action"`
	Status      string         `json:"status"`
	Output      jsontext.Value `json:"output"`
	Detail      string         `json:"detail"`
	Kind        string         `json:"type"`
	Approval    string         `json:"agentsite/approval"`
	Timestamp   string         `json:"timestamp"`
}

func dial(t *testing.T, s *adaptertest.Site, token string) (*websocket.Conn, *http.Response, error) {
	return websocket.Dial(t.Context(), s.URL+"/lmosprotocol", &websocket.DialOptions{
		Subprotocols: []string{"lmosprotocol"}, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
	})
}

func open(t *testing.T, s *adaptertest.Site, token string) *socket {
	t.Helper()
	conn, _, err := dial(t, s, token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	return &socket{T: t, conn: conn, id: s.Key.ID().String() + "/things/"}
}

// say sends a message of a type about a thing, with more members, and returns its ID.
func (s *socket) say(thing, kind, more string) string {
	s.Helper()
	s.sent++
	id := fmt.Sprintf("m%d", s.sent)
	s.write(fmt.Sprintf(`{"thingId":%q,"messageId":%q,"messageType":%q%s}`, s.id+thing, id, kind, more))
	return id
}

func (s *socket) write(text string) {
	s.Helper()
	if err := s.conn.Write(s.Context(), websocket.MessageText, []byte(text)); err != nil {
		s.Fatal(err)
	}
}

// next returns the next message.
func (s *socket) next() (m said) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	defer cancel()
	_, text, err := s.conn.Read(ctx)
	if err != nil {
		s.Fatal(err)
	}
	if err := json.Unmarshal(text, &m); err != nil || m.ID == "" {
		s.Fatalf("%s: %v", text, err)
	}
	return m
}

// asked sends a message and returns the answer, which is to be of a type.
func (s *socket) asked(thing, kind, more, want string) said {
	s.Helper()
	id := s.say(thing, kind, more)
	m := s.next()
	if m.Type != want || m.Correlation != id {
		s.Fatalf("%s %s is answered with %+v, want %s", kind, more, m, want)
	}
	return m
}

// TestSocket: the same operations as over HTTP, in the messages of LMOS.
func TestSocket(t *testing.T) {
	s := serve(t, nil, "pump")
	w := open(t, s, all)
	if m := w.asked("greenhouse", "readProperty", `,"name":"vent"`, "propertyReading"); string(m.Value) != "0" || string(m.Data) != "0" || m.Name != "vent" || m.Property != "vent" || m.Timestamp == "" {
		t.Errorf("%+v", m)
	}
	if m := w.asked("greenhouse", "readProperty", `,"property":"heater"`, "propertyReading"); string(m.Value) != "false" {
		t.Errorf("%+v", m)
	}
	if m := w.asked("greenhouse", "readAllProperties", "", "propertyReadings"); !strings.Contains(string(m.Data), `"vent":0`) {
		t.Errorf("%+v", m)
	}
	if m := w.asked("greenhouse", "readMultipleProperties", `,"properties":["vent","lamp"]`, "propertyReadings"); string(m.Data) != `{"lamp":false,"vent":0}` {
		t.Errorf("%+v", m)
	}
	if m := w.asked("greenhouse", "readMultipleProperties", `,"names":["lamp"]`, "propertyReadings"); string(m.Data) != `{"lamp":false}` {
		t.Errorf("%+v", m)
	}
	w.asked("greenhouse", "readMultipleProperties", `,"nmaes":["lamp"]`, "error")
	if m := w.asked("greenhouse", "invokeAction", `,"name":"release.vent"`, "actionStatus"); m.Status != "completed" {
		t.Errorf("%+v", m)
	}
	if m := w.asked("greenhouse", "writeProperty", `,"name":"vent","data":40,"for":30`, "propertyReading"); string(m.Value) != "40" {
		t.Errorf("%+v", m)
	}
	told(s)
	// The other spellings, and the URL of the description.
	w.write(`{"thingID":"` + s.URL + `/things/greenhouse","messageID":"x","messageType":"readproperty","correlationID":"c7","name":"vent","traceparent":"00"}`)
	if m := w.next(); m.Correlation != "c7" || string(m.Value) != "40" {
		t.Errorf("%+v", m)
	}
	// A message that comes twice acts once.
	for range 2 {
		w.write(`{"thingId":"` + w.id + `greenhouse","messageId":"twice","messageType":"writeProperty","name":"vent","data":55}`)
		if m := w.next(); m.Type != "propertyReading" {
			t.Errorf("%+v", m)
		}
	}
	if lines := s.Journal.Lines(); len(lines) != 2 {
		t.Errorf("%q", lines)
	}
	// In another session its ID is another message's.
	other := open(t, s, adaptertest.SiteToken)
	other.write(`{"thingId":"` + w.id + `greenhouse","messageId":"twice","messageType":"writeProperty","name":"vent","data":60}`)
	if m := other.next(); m.Type != "propertyReading" || string(m.Value) != "60" {
		t.Errorf("%+v", m)
	}
	other.conn.CloseNow()
	if m := w.asked("greenhouse", "invokeAction", `,"action":"release.vent"`, "actionStatus"); m.Status != "completed" || m.Action != "release.vent" || m.Output != nil {
		t.Errorf("%+v", m)
	}
	if m := w.asked("greenhouse", "writeProperty", `,"name":"pump","data":true`, "error"); m.Status != "403" || m.Approval == "" {
		t.Errorf("%+v", m)
	}
	for _, c := range [][5]string{
		{"greenhouse", "writeProperty", `,"name":"vent","data":400`, "400", "0..100"},
		{"greenhouse", "writeProperty", `,"name":"vent"`, "400", "missing"},
		{"greenhouse", "writeMultipleProperties", `,"data":{"vent":1}`, "400", "writeProperty"},
		{"greenhouse", "readProperty", `,"name":"nothing"`, "404", ""},
		{"nowhere", "readProperty", `,"name":"vent"`, "404", ""},
		{"nowhere", "subscribeAllEvents", ``, "404", ""},
		{"greenhouse", "explode", ``, "400", "explode"},
		{"agent:helper", "queryAction", `,"action":"echo"`, "400", ""},
		{"greenhouse", "cancelAction", `,"action":"echo"`, "404", ""},
	} {
		if m := w.asked(c[0], c[1], c[2], "error"); m.Status != c[3] || !strings.Contains(m.Detail, c[4]) || !strings.HasPrefix(m.Kind, "urn:agentsite:fault:") {
			t.Errorf("%s: %+v", c, m)
		}
	}
	for _, text := range []string{"", "{", "7", `{"thingId":7}`, `{"messageType":"readProperty","messageType":"stop"}`, strings.Repeat("[", 9999)} {
		w.write(text)
		if m := w.next(); m.Type != "error" || m.Status != "400" && m.Status != "404" {
			t.Errorf("%s: %+v", text, m)
		}
	}
	if m := w.asked("site:zorilla", "invokeAction", `,"action":"stop"`, "actionStatus"); !strings.Contains(string(m.Output), `"emergency_stop":true`) {
		t.Errorf("%+v", m)
	}
	if m := w.asked("greenhouse", "writeProperty", `,"name":"vent","data":40`, "error"); m.Status != "409" {
		t.Errorf("%+v", m)
	}
}

// TestSocketWatches: properties and events are told as they change, until that is left.
func TestSocketWatches(t *testing.T) {
	s := serve(t, nil)
	button := make(presses)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Hub.Sample(ctx, nil, button); close(done) }()
	defer func() { cancel(); <-done }()
	w := open(t, s, all)
	observing := w.say("greenhouse", "observeProperty", `,"name":"vent"`)
	if m := w.next(); string(m.Value) != "0" || m.Correlation != observing {
		t.Errorf("%+v", m)
	}
	if m := w.asked("greenhouse", "observeProperty", `,"name":"vent"`, "error"); m.Status != "400" {
		t.Errorf("%+v", m)
	}
	s.Ask(t, "PUT", house+"/properties/vent", all, "30")
	if m := w.next(); string(m.Value) != "30" || m.Correlation != observing {
		t.Errorf("%+v", m)
	}
	w.asked("greenhouse", "unobserveProperty", `,"name":"vent"`, "acknowledgement")
	subscribed := w.say("greenhouse", "subscribeevent", `,"event":"button"`)
	if m := w.next(); m.Type != "acknowledgement" {
		t.Errorf("%+v", m)
	}
	button <- true
	if m := w.next(); m.Type != "event" || m.Event != "button" || string(m.Data) != "true" || m.Correlation != subscribed {
		t.Errorf("%+v", m)
	}
	w.asked("greenhouse", "unsubscribeAllEvents", "", "acknowledgement")
	again := w.say("greenhouse", "subscribeAllEvents", "")
	if m := w.next(); m.Type != "acknowledgement" || m.Correlation != again {
		t.Errorf("%+v", m)
	}
	button <- false
	if m := w.next(); m.Type != "event" || string(m.Data) != "false" {
		t.Errorf("%+v", m)
	}
	w.asked("greenhouse", "unsubscribeEvent", `,"event":"button"`, "acknowledgement")
	if m := w.asked("greenhouse", "observeProperty", `,"name":"nothing"`, "error"); m.Status != "404" {
		t.Errorf("%+v", m)
	}
	// Several are watched at a time.
	for _, name := range []string{"temperature", "humidity", "light"} {
		id := w.say("greenhouse", "observeProperty", `,"name":"`+name+`"`)
		for m := w.next(); m.Correlation != id; m = w.next() {
			if m.Type != "propertyReading" || m.Name == name {
				t.Errorf("%+v", m)
			}
		}
	}
}

// TestSocketTask: a task's status is told as it changes.
func TestSocketTask(t *testing.T) {
	s := serve(t, nil)
	w := open(t, s, all)
	last := func(kind, more, want string) said {
		t.Helper()
		id := w.say("agent:helper", kind, more)
		for {
			m := w.next()
			if m.Type != "actionStatus" || m.Correlation != id {
				t.Fatalf("%s: %+v", more, m)
			}
			if m.Status == want && (want != "pending" || strings.Contains(string(m.Output), "input_required")) {
				return m
			}
		}
	}
	if m := last("invokeAction", `,"action":"echo","input":{"a":1}`, "completed"); !strings.Contains(string(m.Output), `"result":{"a":1}`) {
		t.Errorf("%+v", m)
	}
	last("invokeAction", `,"action":"fail"`, "failed")
	m := last("invokeAction", `,"action":"question"`, "pending")
	var asked struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(m.Output, &asked); err != nil {
		t.Fatal(err)
	}
	invoked := m.Correlation
	answered := w.say("agent:helper", "invokeAction", fmt.Sprintf(`,"action":"answerTask","input":{"task":%q,"answer":"red"}`, asked.ID))
	for completed, heard := false, false; !completed || !heard; {
		m := w.next()
		completed = completed || m.Correlation == invoked && m.Status == "completed"
		heard = heard || m.Correlation == answered
	}
	if m := w.asked("agent:helper", "queryAction", `,"action":"question"`, "actionStatus"); m.Status != "completed" {
		t.Errorf("%+v", m)
	}
	if m := w.asked("agent:helper", "queryAction", `,"action":"echo","task":"`+asked.ID+`"`, "error"); m.Status != "404" {
		t.Errorf("%+v", m)
	}
}

// TestSocketStop: a stop is served behind a move that waits for the disk, and behind all later
// requests, which are refused beyond the limit.
func TestSocketStop(t *testing.T) {
	s := serve(t, nil)
	w := open(t, s, all)
	w.asked("greenhouse", "writeProperty", `,"name":"vent","data":40,"for":30`, "propertyReading")
	defer s.Journal.Hold()()
	w.say("greenhouse", "writeProperty", `,"name":"vent","data":50,"for":30`)
	for range 100 {
		w.say("greenhouse", "readProperty", `,"name":"vent"`)
	}
	if m := w.next(); m.Type != "error" || m.Status != "429" {
		t.Errorf("%+v", m)
	}
	w.say("site:"+s.Name, "invokeAction", `,"action":"stop"`)
	for deadline := time.Now().Add(20 * time.Second); s.Value("greenhouse/vent") != device.Number(0); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not stopped")
		}
	}
}

// TestSocketSkillStop: a skill that is called stop waits for its turn, as any other one.
func TestSocketSkillStop(t *testing.T) {
	s := serve(t, nil)
	host := s.Tasks.(*tasktest.Host)
	host.Agent.Skills = append(slices.Clone(host.Agent.Skills), task.Skill{ID: "stop"})
	host.Work = func(context.Context, task.Work) (jsontext.Value, error) { return nil, nil }
	w := open(t, s, all)
	release := s.Journal.Hold()
	moved := w.say("greenhouse", "writeProperty", `,"name":"vent","data":50,"for":30`)
	asked := w.say("agent:helper", "invokeAction", `,"action":"stop"`)
	w.write("{")
	m := w.next()
	release()
	if m.Type != "error" || m.Correlation != "" {
		t.Errorf("answered first: %+v", m)
	}
	if m := w.next(); m.Correlation != moved {
		t.Errorf("%+v", m)
	}
	if m := w.next(); m.Type != "actionStatus" || m.Correlation != asked {
		t.Errorf("%+v", m)
	}
}

// broken is a host of tasks that panics.
type broken struct {
	task.Host
	asks    atomic.Bool
	watches atomic.Int32 // until it does
}

func (b *broken) Ask(ctx context.Context, p agents.Principal, r task.Request) (task.Task, error) {
	if b.asks.Load() {
		panic("ask")
	}
	return b.Host.Ask(ctx, p, r)
}

func (b *broken) Watch(ctx context.Context, p agents.Principal, id string, emit func(task.Task) error) error {
	if b.watches.Add(-1) == 0 {
		panic("watch")
	}
	return b.Host.Watch(ctx, p, id, emit)
}

// TestSocketPanic: a panic ends the message that it comes from, and neither the session nor the
// program.
func TestSocketPanic(t *testing.T) {
	s := serve(t, nil)
	b := &broken{Host: s.Tasks}
	b.asks.Store(true)
	s.Tasks = b
	w := open(t, s, all)
	ask := func() {
		t.Helper()
		if m := w.asked("agent:helper", "invokeAction", `,"action":"question"`, "error"); m.Status != "500" || strings.Contains(m.Detail, "panic") {
			t.Errorf("%+v", m)
		}
		w.asked("greenhouse", "readProperty", `,"name":"vent"`, "propertyReading")
	}
	ask()
	b.asks.Store(false)
	b.watches.Store(2) // the watch that follows
	ask()
}

// TestSocketEnds: a session needs evidence, and ends with the permission and with what it cannot
// read.
func TestSocketEnds(t *testing.T) {
	s := serve(t, nil)
	if _, res, err := dial(t, s, "wrong"); err == nil || res.StatusCode != 401 {
		t.Errorf("a stranger: %v", err)
	}
	if res, text := s.Ask(t, "GET", "/lmosprotocol", all, ""); res.StatusCode != 400 {
		t.Error(res.Status, text)
	}
	if res, text := s.Ask(t, "GET", "/lmosprotocol", all, "", "Sec-WebSocket-Protocol", "lmosprotocol"); res.StatusCode != 426 {
		t.Error(res.Status, text)
	}
	if _, res, err := websocket.Dial(t.Context(), s.URL+"/lmosprotocol", &websocket.DialOptions{HTTPHeader: http.Header{
		"Authorization": {"Bearer " + all}, "Origin": {"http://elsewhere.example"},
	}}); err == nil || res.StatusCode != 403 {
		t.Errorf("a page of another site: %v", err)
	}
	token, revoke := s.Token(t, "part", "read greenhouse/vent")
	w := open(t, s, token)
	if m := w.asked("greenhouse", "writeProperty", `,"name":"vent","data":40`, "error"); m.Status != "403" {
		t.Errorf("%+v", m)
	}
	w.asked("greenhouse", "observeProperty", `,"name":"vent"`, "propertyReading")
	revoke()
	for {
		_, text, err := w.conn.Read(t.Context())
		if err != nil {
			break
		}
		if !strings.Contains(string(text), "denied") {
			t.Errorf("after the permission's end: %s", text)
		}
	}
	for _, send := range []func(*websocket.Conn) error{
		func(c *websocket.Conn) error { return c.Write(t.Context(), websocket.MessageBinary, []byte("{}")) },
		func(c *websocket.Conn) error {
			return c.Write(t.Context(), websocket.MessageText, []byte(strings.Repeat(" ", 65<<10)))
		},
	} {
		w := open(t, s, all)
		if err := send(w.conn); err != nil {
			t.Fatal(err)
		}
		if _, text, err := w.conn.Read(t.Context()); err == nil {
			t.Errorf("it goes on with %s", text)
		}
	}
	if v := s.Value("greenhouse/vent"); v != device.Number(0) {
		t.Errorf("the vent is at %v", v)
	}
	open(t, s, all) // ends with the site
}

// TestSocketsBounded: sessions and their watches are bounded, and a session that ended gives its
// place back.
func TestSocketsBounded(t *testing.T) {
	s := serve(t, nil)
	token, _ := s.Token(t, "part", "read greenhouse/vent")
	var open []*websocket.Conn
	var refused *http.Response
	for len(open) < 100 {
		conn, res, err := dial(t, s, token)
		if err != nil {
			refused = res
			break
		}
		defer conn.CloseNow()
		open = append(open, conn)
	}
	if refused == nil || refused.StatusCode != 429 || len(open) < 4 {
		t.Fatalf("%d sessions, and then %v", len(open), refused)
	}
	if conn, _, err := dial(t, s, all); err != nil {
		t.Errorf("another caller: %v", err)
	} else {
		conn.CloseNow()
	}
	open[0].CloseNow()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if conn, _, err := dial(t, s, token); err == nil {
			conn.CloseNow()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the place is not given back")
		}
	}
}
