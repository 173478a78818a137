//go:build e2e

package home

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// told is the body of one message to a webhook.
type told struct {
	More  int `json:"more"`
	Items []struct {
		ID    string `json:"id"`
		Kind  string `json:"kind"`
		About string `json:"about"`
		Text  string `json:"text"`
		Count int    `json:"count"`
	} `json:"items"`
}

// receiver is a webhook.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	all []told
}

func newReceiver(t *testing.T) *receiver {
	r := new(receiver)
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		var m told
		if err := json.Unmarshal(body, &m); err != nil || len(body) > 64<<10 {
			t.Errorf("a message of %d bytes: %v", len(body), err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, m)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) messages() []told { r.mu.Lock(); defer r.mu.Unlock(); return slices.Clone(r.all) }

// TestAlarmStorm: twenty outputs whose leases break again and again, and agents that have much to say: more than a
// thousand alarms a minute become a few messages. The site is killed in the middle of it. What it promised to tell is
// told after the restart, in few messages, too.
func TestAlarmStorm(t *testing.T) {
	program := harness.Need(t, "the program", harness.Program)
	in, data := newReceiver(t), harness.TempDir(t)
	const relays = 20
	config := "site: { name: shed }\ndevices:\n"
	for i := range relays {
		config += fmt.Sprintf("  lamp%d: { driver: sim, model: relay, min_off: 0, max_on: 1s }\n", i)
	}
	config += fmt.Sprintf("notify: { to: { hook: { webhook: %q } } }\n", in.URL)
	site := harness.StartIn(t, data, config, nil, program)
	c := site.Client(t, true)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer func() { stop(); running.Wait() }()
	var moved atomic.Int32
	var refused atomic.Value
	refused.Store("")
	for i := range relays {
		running.Go(func() {
			seconds := 1.0
			for ctx.Err() == nil { // it is held on until its max_on ends that
				on := agents.MoveRequest{Output: fmt.Sprintf("lamp%d/relay", i), Value: device.Bool(true), For: &seconds}
				pause := 20 * time.Millisecond
				if _, err := c.Move(ctx, agents.Principal{}, on); err == nil {
					moved.Add(1)
					pause = 400 * time.Millisecond
				} else {
					refused.Store(err.Error())
				}
				if device.Sleep(ctx, pause) != nil {
					return
				}
			}
		})
	}
	var mu sync.Mutex
	var promised []string
	running.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			text := fmt.Sprintf("message-%d-", n)
			asked, err := c.Tasks().Ask(ctx, agents.Principal{}, task.Request{Agent: "notify", Text: text})
			for err == nil && !asked.State.Ended() {
				asked, err = c.Tasks().Task(ctx, agents.Principal{}, asked.ID)
			}
			if err == nil && asked.State == task.Completed {
				mu.Lock()
				promised = append(promised, text)
				mu.Unlock()
			} else if device.Sleep(ctx, 20*time.Millisecond) != nil {
				return
			}
		}
	})
	begun := time.Now()
	defer func() {
		if t.Failed() {
			t.Logf("%d moves; the last that was refused: %s", moved.Load(), refused.Load())
		}
	}()
	harness.WaitFor(t, 2*time.Minute, "some hundred leases have ended", func() bool { return moved.Load() >= 900 })
	took, before := time.Since(begun), len(in.messages())
	if most := 6 + int(took/time.Minute); before > most { // four at once, and then one in three minutes
		t.Errorf("%d messages in %v", before, took)
	}
	site.Kill(t)
	stop()
	running.Wait()
	site = harness.StartIn(t, data, config, nil, program)
	missing := func() (all []string) {
		var texts strings.Builder
		for _, m := range in.messages() {
			for _, i := range m.Items {
				texts.WriteString(i.Text)
			}
		}
		for _, text := range promised {
			if !strings.Contains(texts.String(), text) {
				all = append(all, text)
			}
		}
		return all
	}
	if len(promised) < 4 {
		t.Errorf("only %d messages were taken", len(promised))
	}
	defer func() {
		if t.Failed() {
			t.Logf("not told: %q; told: %+v\n%s", missing(), in.messages(), site.Log)
		}
	}()
	harness.WaitFor(t, time.Minute, "what was promised is told", func() bool { return len(missing()) == 0 })
	leases := 0
	for _, m := range in.messages() {
		leases += m.More
		for _, i := range m.Items {
			if i.Kind == "lease" {
				leases += i.Count
			}
		}
	}
	t.Logf("%d leases that broke in %v and %d promises are told by %d messages, and %d after a restart", leases, took.Round(time.Second),
		len(promised), before, len(in.messages())-before)
	if leases == 0 || len(in.messages())-before > 5 {
		t.Errorf("%d leases are told, by %d messages", leases, len(in.messages()))
	}
}
