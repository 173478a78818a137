package a2a_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/agents/task/tasktest"
	"agentsite/device"
	"agentsite/transport/a2a"
	"agentsite/transport/adapter/adaptertest"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newSite starts a site that speaks A2A.
func newSite(t testing.TB, confirm ...string) *adaptertest.Site {
	t.Helper()
	s := adaptertest.New(t, nil, confirm...)
	s.Serve(t, a2a.Routes(&s.Site))
	return s
}

// bindings are the bindings of the protocol's own Go client.
var bindings = []sdk.TransportProtocol{sdk.TransportProtocolJSONRPC, sdk.TransportProtocolHTTPJSON}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// client is the protocol's own Go client, of the agent with that name; "" for the things.
func client(t testing.TB, s *adaptertest.Site, binding sdk.TransportProtocol, token, agent string) *a2aclient.Client {
	t.Helper()
	with := &http.Client{Transport: bearer(token)}
	base := s.URL
	if agent != "" {
		base += "/a2a/agents/" + agent
	}
	card, err := agentcard.NewResolver(with).Resolve(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a2aclient.NewFromCard(t.Context(), card, a2aclient.WithJSONRPCTransport(with), a2aclient.WithRESTTransport(with),
		a2aclient.WithConfig(a2aclient.Config{PreferredTransports: []sdk.TransportProtocol{binding}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Destroy() })
	return c
}

func say(parts ...*sdk.Part) *sdk.SendMessageRequest {
	return &sdk.SendMessageRequest{Message: sdk.NewMessage(sdk.MessageRoleUser, parts...)}
}

func data(v map[string]any) *sdk.Part { return sdk.NewDataPart(v) }

// each runs a test over both bindings.
func each(t *testing.T, s *adaptertest.Site, token, agent string, do func(*testing.T, *a2aclient.Client)) {
	for _, binding := range bindings {
		t.Run(string(binding), func(t *testing.T) { do(t, client(t, s, binding, token, agent)) })
	}
}

// TestThings asks the operations as structured data.
func TestThings(t *testing.T) {
	s := newSite(t)
	each(t, s, adaptertest.SiteToken, "", func(t *testing.T, c *a2aclient.Client) {
		ask := func(v map[string]any) map[string]any {
			t.Helper()
			got, err := c.SendMessage(t.Context(), say(data(v)))
			if err != nil {
				t.Fatal(err)
			}
			m, ok := got.(*sdk.Message)
			if !ok || m.Role != sdk.MessageRoleAgent || m.Parts[0].Data() == nil {
				t.Fatalf("%#v", got)
			}
			return m.Parts[0].Data().(map[string]any)
		}
		readings := ask(map[string]any{"operation": "read", "points": []string{"greenhouse/temperature"}})["readings"].([]any)
		if r := readings[0].(map[string]any); r["unit"] != "Cel" {
			t.Error(r)
		}
		if got := ask(map[string]any{"operation": "move", "output": "greenhouse/vent", "value": 30, "for": 60}); got["output"] != "greenhouse/vent" {
			t.Error(got)
		}
		if v := s.Value("greenhouse/vent"); v != device.Number(30) {
			t.Error(v)
		}
		ask(map[string]any{"operation": "move", "output": "greenhouse/vent"})
		for _, v := range []map[string]any{
			{"operation": "points"}, {"operation": "status"}, {"operation": "history", "point": "greenhouse/temperature", "hours": 1},
			{"operation": "why", "point": "greenhouse/vent"},
		} {
			if got := ask(v); len(got) == 0 {
				t.Error(v, got)
			}
		}
		got, err := c.SendMessage(t.Context(), say(sdk.NewTextPart("how warm is it?")))
		if err != nil {
			t.Fatal(err)
		}
		if m := got.(*sdk.Message); !strings.Contains(m.Parts[0].Text(), `{"operation":"read"`) {
			t.Error(m.Parts[0].Text())
		}
		var events []sdk.Event
		for e, err := range c.SendStreamingMessage(t.Context(), say(data(map[string]any{"operation": "points"}))) {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		if _, ok := events[0].(*sdk.Message); !ok || len(events) != 1 {
			t.Errorf("%#v", events)
		}
	})
}

// TestErrors: each error is the specification's, in both bindings.
func TestErrors(t *testing.T) {
	s := newSite(t)
	reader, _ := s.Token(t, "reader", "read greenhouse, ask helper")
	each(t, s, reader, "", func(t *testing.T, c *a2aclient.Client) {
		send := func(parts ...*sdk.Part) error {
			_, err := c.SendMessage(t.Context(), say(parts...))
			return err
		}
		move := data(map[string]any{"operation": "move", "output": "greenhouse/vent", "value": 30})
		for name, try := range map[string]struct {
			err  error
			want error
		}{
			"no such operation": {send(data(map[string]any{"operation": "dance"})), sdk.ErrInvalidParams},
			"no such field":     {send(data(map[string]any{"operation": "read", "point": "x"})), sdk.ErrInvalidParams},
			"two data parts":    {send(move, move), sdk.ErrInvalidParams},
			"a file":            {send(sdk.NewRawPart([]byte("x"))), sdk.ErrUnsupportedContentType},
			"a URL":             {send(sdk.NewFileURLPart("https://example.com", "text/plain")), sdk.ErrUnsupportedContentType},
		} {
			if !errors.Is(try.err, try.want) {
				t.Errorf("%s: %v, want %v", name, try.err, try.want)
			}
		}
		if err := send(move); err == nil || s.Value("greenhouse/vent") != device.Number(0) {
			t.Error("a reader moved an output", err)
		}
		_, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: "nothing"})
		if !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Error(err)
		}
		_, err = c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: "nothing"})
		if !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Error(err)
		}
		for _, err := range c.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: "nothing"}) {
			if !errors.Is(err, sdk.ErrTaskNotFound) {
				t.Error(err)
			}
		}
	})
}

// TestOnce: a message that is sent twice acts once.
func TestOnce(t *testing.T) {
	s := newSite(t)
	each(t, s, adaptertest.SiteToken, "", func(t *testing.T, c *a2aclient.Client) {
		before := len(s.Journal.Lines())
		m := say(data(map[string]any{"operation": "move", "output": "greenhouse/vent", "value": 30, "for": 60}))
		for range 2 {
			if _, err := c.SendMessage(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		if lines := s.Journal.Lines()[before:]; len(lines) != 1 {
			t.Errorf("%q", lines)
		}
		m.Message.Parts[0] = data(map[string]any{"operation": "move", "output": "greenhouse/vent", "value": 40, "for": 60})
		if _, err := c.SendMessage(t.Context(), m); !errors.Is(err, sdk.ErrInvalidParams) {
			t.Error(err)
		}
	})
}

// TestTasks asks a hosted agent for tasks that end in each way.
func TestTasks(t *testing.T) {
	s := newSite(t)
	each(t, s, adaptertest.SiteToken, tasktest.Helper.Name, func(t *testing.T, c *a2aclient.Client) {
		send := func(r *sdk.SendMessageRequest) *sdk.Task {
			t.Helper()
			got, err := c.SendMessage(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			return got.(*sdk.Task)
		}
		done := send(say(data(map[string]any{"skill": "echo", "arguments": map[string]any{"a": 1}})))
		if done.Status.State != sdk.TaskStateCompleted || done.Artifacts[0].Parts[0].Data().(map[string]any)["a"] != 1.0 {
			t.Errorf("%#v", done)
		}
		for skill, want := range map[string]sdk.TaskState{"fail": sdk.TaskStateFailed, "reject": sdk.TaskStateRejected, "crash": sdk.TaskStateFailed} {
			if got := send(say(data(map[string]any{"skill": skill}))); got.Status.State != want {
				t.Errorf("%s: %s", skill, got.Status.State)
			}
		}

		m := say(data(map[string]any{"skill": "question"}))
		m.Message.ContextID = "talk-" + rand(t)
		asks := send(m)
		if asks.Status.State != sdk.TaskStateInputRequired || asks.ContextID != m.Message.ContextID || asks.Status.Message.Parts[0].Text() == "" {
			t.Fatalf("%#v", asks)
		}
		answer := say(sdk.NewTextPart("red"))
		answer.Message.TaskID, answer.Message.ContextID = asks.ID, "another"
		if _, err := c.SendMessage(t.Context(), answer); !errors.Is(err, sdk.ErrInvalidParams) {
			t.Error(err)
		}
		answer.Message.ContextID = asks.ContextID
		if got := send(answer); got.Status.State != sdk.TaskStateCompleted || got.ID != asks.ID {
			t.Errorf("%#v", got)
		}
		whole, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: asks.ID})
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, m := range whole.History {
			said = append(said, string(m.Role)+" "+m.Parts[0].Text())
		}
		if len(whole.History) != 3 || whole.History[0].ID != m.Message.ID || whole.History[1].ID != asks.Status.Message.ID || said[1] != "ROLE_AGENT "+asks.Status.Message.Parts[0].Text() || said[2] != "ROLE_USER red" {
			t.Errorf("its history is %q", said)
		}
		if last, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: asks.ID, HistoryLength: new(1)}); err != nil || len(last.History) != 1 || last.History[0].ID != whole.History[2].ID {
			t.Errorf("%#v, %v", last, err)
		}
		again := say(sdk.NewTextPart("red"))
		again.Message.TaskID = asks.ID
		if _, err := c.SendMessage(t.Context(), again); !errors.Is(err, sdk.ErrUnsupportedOperation) {
			t.Error(err)
		}

		waits := say(data(map[string]any{"skill": "wait"}))
		waits.Config = &sdk.SendMessageConfig{ReturnImmediately: true}
		running := send(waits)
		if running.Status.State.Terminal() {
			t.Fatalf("%#v", running)
		}
		if got := send(waits); got.ID != running.ID {
			t.Error("the same message made another task")
		}
		canceled, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: running.ID})
		if err != nil || canceled.Status.State != sdk.TaskStateCanceled {
			t.Error(canceled, err)
		}
		if _, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: running.ID}); !errors.Is(err, sdk.ErrTaskNotCancelable) {
			t.Error(err)
		}
		for _, err := range c.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: running.ID}) {
			if !errors.Is(err, sdk.ErrUnsupportedOperation) {
				t.Error(err)
			}
		}
		list, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{ContextID: asks.ContextID, IncludeArtifacts: true})
		if err != nil || len(list.Tasks) != 1 || list.Tasks[0].ID != asks.ID || len(list.Tasks[0].Artifacts) != 1 {
			t.Errorf("%#v, %v", list, err)
		}
		seen := make(map[sdk.TaskID]bool)
		for token := ""; ; {
			page, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{PageSize: 2, PageToken: token})
			if err != nil {
				t.Fatal(err)
			}
			for _, of := range page.Tasks {
				if seen[of.ID] || of.Artifacts != nil || of.History != nil {
					t.Errorf("%#v", of)
				}
				seen[of.ID] = true
			}
			if token = page.NextPageToken; token == "" {
				if len(seen) != page.TotalSize {
					t.Error(len(seen), page.TotalSize)
				}
				break
			}
		}
	})
}

// TestStream: a stream begins with the task, sends each change once, and ends with the task. Missed
// changes are in the first event of the next stream.
func TestStream(t *testing.T) {
	s := newSite(t)
	each(t, s, adaptertest.SiteToken, tasktest.Helper.Name, func(t *testing.T, c *a2aclient.Client) {
		var kinds []string
		for e, err := range c.SendStreamingMessage(t.Context(), say(data(map[string]any{"skill": "echo", "arguments": map[string]any{"a": 1}}))) {
			if err != nil {
				t.Fatal(err)
			}
			switch e := e.(type) {
			case *sdk.Task:
				kinds = append(kinds, "task")
			case *sdk.TaskArtifactUpdateEvent:
				kinds = append(kinds, "artifact")
			case *sdk.TaskStatusUpdateEvent:
				kinds = append(kinds, string(e.Status.State))
			}
		}
		if kinds[0] != "task" || len(kinds) > 1 && kinds[len(kinds)-1] != string(sdk.TaskStateCompleted) || slices.Contains(kinds[1:], "task") {
			t.Error(kinds)
		}

		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		var id sdk.TaskID
		for e, err := range c.SendStreamingMessage(ctx, say(data(map[string]any{"skill": "wait"}))) {
			if err != nil {
				t.Fatal(err)
			}
			id = e.TaskInfo().TaskID
			break // the caller is gone, and the task goes on
		}
		last := sdk.TaskStateUnspecified
		for e, err := range c.SubscribeToTask(ctx, &sdk.SubscribeToTaskRequest{ID: id}) {
			if err != nil {
				t.Fatal(err)
			}
			switch e := e.(type) {
			case *sdk.Task:
				if last != sdk.TaskStateUnspecified || e.Status.State.Terminal() {
					t.Errorf("%#v", e)
				}
				last = e.Status.State
				go client(t, s, sdk.TransportProtocolJSONRPC, adaptertest.SiteToken, tasktest.Helper.Name).CancelTask(ctx, &sdk.CancelTaskRequest{ID: id})
			case *sdk.TaskStatusUpdateEvent:
				last = e.Status.State
			}
		}
		if last != sdk.TaskStateCanceled {
			t.Error(last)
		}
	})
}

func rand(t *testing.T) string { return strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")) }

// TestApproval: a call that an owner has to approve is a task, and is made once that has happened.
func TestApproval(t *testing.T) {
	s := newSite(t, "vent")
	token, _ := s.Token(t, "mover", "set greenhouse")
	value := 20.0
	each(t, s, token, "", func(t *testing.T, c *a2aclient.Client) {
		send := func() *sdk.Task {
			t.Helper()
			value++
			got, err := c.SendMessage(t.Context(), say(data(map[string]any{"operation": "move", "output": "greenhouse/vent", "value": value, "for": 60})))
			if err != nil {
				t.Fatal(err)
			}
			w := got.(*sdk.Task)
			if w.Status.State != sdk.TaskStateAuthRequired || !strings.Contains(w.Status.Message.Parts[0].Text(), "agentsite approve") || s.Value("greenhouse/vent") == device.Number(value) {
				t.Fatalf("%#v", w)
			}
			return w
		}
		get := func(id sdk.TaskID) *sdk.Task {
			t.Helper()
			got, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		owner := agents.Principal{Kind: principal.Local, ID: "local", Owner: true}

		w := send()
		if got := get(w.ID); got.Status.State != sdk.TaskStateAuthRequired {
			t.Error(got.Status.State)
		}
		if err := s.Node.Approve(owner, string(w.ID), true); err != nil {
			t.Fatal(err)
		}
		if got := get(w.ID); got.Status.State != sdk.TaskStateCompleted || len(got.Artifacts) != 1 || s.Value("greenhouse/vent") != device.Number(value) {
			t.Errorf("%#v", got)
		}

		w = send()
		if err := s.Node.Approve(owner, string(w.ID), false); err != nil {
			t.Fatal(err)
		}
		m := say(sdk.NewTextPart("and?"))
		m.Message.TaskID = w.ID
		if got, err := c.SendMessage(t.Context(), m); err != nil || got.(*sdk.Task).Status.State != sdk.TaskStateRejected {
			t.Error(got, err)
		}
		if _, err := c.SendMessage(t.Context(), m); !errors.Is(err, sdk.ErrUnsupportedOperation) {
			t.Error(err)
		}

		w = send()
		if got, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: w.ID}); err != nil || got.Status.State != sdk.TaskStateCanceled {
			t.Error(got, err)
		}
		if err := s.Node.Approve(owner, string(w.ID), true); err != nil {
			t.Fatal(err)
		}
		if got := get(w.ID); got.Status.State != sdk.TaskStateCanceled || s.Value("greenhouse/vent") == device.Number(value) {
			t.Errorf("%#v", got)
		}

		value++
		last := sdk.TaskStateUnspecified
		for e, err := range c.SendStreamingMessage(t.Context(), say(data(map[string]any{"operation": "move", "output": "greenhouse/vent", "value": value, "for": 60}))) {
			if err != nil {
				t.Fatal(err)
			}
			switch e := e.(type) {
			case *sdk.Task:
				go s.Node.Approve(owner, string(e.ID), true)
			case *sdk.TaskStatusUpdateEvent:
				last = e.Status.State
			}
		}
		if last != sdk.TaskStateCompleted || s.Value("greenhouse/vent") != device.Number(value) {
			t.Error(last)
		}
		list, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{})
		if err != nil || len(list.Tasks) < 4 {
			t.Error(list, err)
		}
	})
	other, _ := s.Token(t, "other", "set greenhouse")
	if list, err := client(t, s, sdk.TransportProtocolJSONRPC, other, "").ListTasks(t.Context(), &sdk.ListTasksRequest{}); err != nil || len(list.Tasks) != 0 {
		t.Error("somebody else sees them", list, err)
	}
}

// TestIDs: the events of a stream keep the id of their request while others are answered.
func TestIDs(t *testing.T) {
	s := newSite(t)
	const stream = `{"jsonrpc":"2.0","id":7,"method":"SendStreamingMessage","params":{"message":{"messageId":"w","role":"ROLE_USER","parts":[{"data":{"skill":"wait"}}]}}}`
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/a2a/agents/helper", strings.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+adaptertest.SiteToken)
	r.Header.Set("A2A-Version", "1.0")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for asked := false; lines.Scan(); {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if !strings.Contains(text, `"id":7,`) {
			t.Error(text)
		}
		if asked {
			continue
		}
		asked = true
		_, list := s.Ask(t, "POST", "/a2a/agents/helper", adaptertest.SiteToken, `{"jsonrpc":"2.0","id":"another","method":"ListTasks"}`, "A2A-Version", "1.0")
		if !strings.HasPrefix(list, `{"jsonrpc":"2.0","id":"another","result":`) {
			t.Error(list)
		}
		var page struct {
			Result struct {
				Tasks []struct {
					ID string `json:"id"`
				} `json:"tasks"`
			} `json:"result"`
		}
		if err := json.Unmarshal([]byte(list), &page); err != nil || len(page.Result.Tasks) != 1 {
			t.Fatal(list, err)
		}
		s.Ask(t, "POST", "/a2a/agents/helper", adaptertest.SiteToken, `{"jsonrpc":"2.0","id":8,"method":"CancelTask","params":{"id":"`+page.Result.Tasks[0].ID+`"}}`, "A2A-Version", "1.0")
	}
}
