package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/event"
	"agentsite/agents/event/eventtest"
	"agentsite/transport/rpc"
)

// TestHookHangs: a receiver that does not answer delays no other. Its event is given up within 15 minutes, and it is
// told that some are missing once it takes messages again.
func TestHookHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, eventtest.New(), nil)
		r.subscribe(t, caller, ask(hookURL, secretOf("a"), ""))
		r.next(t, "verification")
		const other = "https://other.example.com:8443/mcp"
		r.subscribe(t, caller, ask(other, secretOf("a"), ""))
		r.next(t, "verification")
		r.answer(func(q *http.Request, _ string) int {
			if q.URL.Host == "hooks.example.com" {
				return 0
			}
			return http.StatusNoContent
		})
		began := time.Now()
		r.source.Add("room/lamp")
		at := map[string]time.Duration{}
		tries := 0
		for tries < 5 {
			m := r.next(t, "e1")
			if _, known := at[m.url]; !known {
				at[m.url] = time.Since(began)
			}
			if m.url == hookURL {
				tries++
			}
		}
		if at[other] > time.Second {
			t.Errorf("%v", at)
		}
		time.Sleep(sendTimeout)
		if took := time.Since(began); took > 15*time.Minute {
			t.Errorf("it takes %v", took)
		}
		r.answer(nil)
		r.source.Add("room/lamp")
		told := ""
		for range 3 {
			if m := <-r.got; m.url == hookURL {
				told += m.body
			}
		}
		if !strings.HasPrefix(told, `{"type":"gap","cursor":"1"}`) || !strings.Contains(told, "e2") {
			t.Error(told)
		}
		synctest.Wait()
		if out := r.subscribe(
			t, caller, ask(hookURL, secretOf("a"), ""),
		); out.Truncated || out.Status.Error != "" || out.Status.Delivered == "" {
			t.Errorf("%+v %+v", out, out.Status)
		}
	})
}

// TestHookGivesUp: an answer that says so ends the tries, and the state of a subscription has a reason of the list.
func TestHookGivesUp(t *testing.T) {
	for _, code := range []int{http.StatusGone, http.StatusRequestEntityTooLarge} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, eventtest.New(), nil)
			r.subscribe(t, caller, ask(hookURL, secretOf("a"), ""))
			r.next(t, "verification")
			r.answer(func(*http.Request, string) int { return code })
			r.source.Add("room/lamp")
			r.next(t, "e1")
			time.Sleep(20 * time.Minute)
			if len(r.got) > 0 {
				t.Errorf("%d: it is sent again", code)
			}
			out := r.subscribe(t, caller, ask(hookURL, secretOf("a"), ""))
			if !out.Truncated || out.Status.Error != "http_4xx" || out.Status.FailedSince == "" || *out.Cursor != "1" {
				t.Errorf("%+v %+v", out, out.Status)
			}
		})
	}
}

// TestHookRevoked: with the permission the events end within a page, the receiver is told so, and the subscription is
// forgotten.
func TestHookRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, eventtest.New(), nil)
		r.subscribe(t, caller, ask(hookURL, secretOf("a"), ""))
		r.next(t, "verification")
		r.answer(func(_ *http.Request, body string) int {
			if strings.Contains(body, `"e1"`) {
				go r.source.Hide("room/lamp")
				return http.StatusServiceUnavailable // it would be tried again
			}
			return http.StatusNoContent
		})
		for range 3 {
			r.source.Add("room/lamp")
		}
		r.next(t, "e1")
		m := r.next(t, "terminated")
		var told struct{ Error struct{ Code int } }
		if err := json.Unmarshal(
			[]byte(m.body), &told,
		); err != nil || told.Error.Code != -32024 || !strings.HasPrefix(m.header.Get("Webhook-Id"), "msg_terminated_") {
			t.Errorf("%+v, %v", m, err)
		}
		synctest.Wait()
		if strings.Contains(r.stored(), "hooks.example.com") {
			t.Error(r.stored())
		}
		if _, err := r.hooks.Subscribe(
			t.Context(), caller, ask(hookURL, secretOf("a"), ""), true,
		); !errors.Is(err, event.ErrUnknown) {
			t.Error(err)
		}
	})
}

// TestHookKilled: what was not sent when the site was killed is sent after the next start, under the same ID; or the
// receiver is told that events are missing.
func TestHookKilled(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			source := eventtest.New()
			r := newRig(t, source, nil)
			id := r.subscribe(t, caller, ask(hookURL, secretOf("a"), "")).ID
			r.next(t, "verification")
			r.answer(func(*http.Request, string) int { return 0 })
			source.Add("room/lamp")
			r.next(t, "e1")
			file := []byte(r.stored()) // as a kill leaves it
			r.end()
			source.Add("room/lamp")
			if forgotten {
				source.Forget()
			}

			after := newRig(t, source, file)
			if forgotten {
				after.next(t, "gap")
				source.Add("room/lamp")
				after.next(t, "e3")
			} else {
				if m := after.next(t, "e1"); m.header.Get("X-Mcp-Subscription-Id") != id || !m.signedBy(secretOf("a")) {
					t.Errorf("%+v", m)
				}
				after.next(t, "e2")
			}
			synctest.Wait()
			after.end()
			if !strings.Contains(after.stored(), `"cursor":"`) || strings.Contains(after.stored(), `"cursor":"0"`) {
				t.Error(after.stored())
			}
		})
	}
}

// TestHookStored: the file has the cursor after an event at once, and that after the next ones within a time.
func TestHookStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, eventtest.New(), nil)
		r.subscribe(t, caller, ask(hookURL, secretOf("a"), ""))
		r.next(t, "verification")
		stored := func(cursor string) {
			t.Helper()
			synctest.Wait()
			if !strings.Contains(r.stored(), `"cursor":"`+cursor+`"`) {
				t.Errorf("not %s in %s", cursor, r.stored())
			}
		}
		stored("0")
		for n, first := range []string{"1", "3"} {
			r.source.Add("room/lamp")
			r.next(t, fmt.Sprint("e", 2*n+1))
			time.Sleep(time.Millisecond)
			stored(first)
			r.source.Add("room/lamp")
			r.next(t, fmt.Sprint("e", 2*n+2))
			time.Sleep(time.Millisecond)
			stored(first)
			time.Sleep(2 * saveAfter)
			stored(fmt.Sprint(2*n + 2))
		}
	})
}

// TestHookUnseen: after a start a missing permission is waited for, and then the subscription ends.
func TestHookUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := eventtest.New()
		r := newRig(t, source, nil)
		r.subscribe(t, caller, ask(hookURL, secretOf("a"), `,"ttlMs":null`))
		r.end()
		source.Fail(event.ErrForbidden)
		after := newRig(t, source, []byte(r.stored()))
		time.Sleep(50 * time.Minute)
		if len(after.got) > 0 {
			t.Errorf("%+v", <-after.got)
		}
		source.Fail(nil)
		time.Sleep(2 * time.Minute)
		source.Add("room/lamp")
		after.next(t, "e1")
		source.Fail(event.ErrForbidden)
		after.next(t, "terminated")
	})
}

// TestHookUnsubscribeUnseen: a subscription can be ended without the permission for it.
func TestHookUnsubscribeUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, eventtest.New(), nil)
		r.subscribe(t, caller, ask(hookURL, secretOf("a"), ""))
		r.end()
		r.source.Fail(event.ErrForbidden)
		after := newRig(t, r.source, []byte(r.stored()))
		a := ask(hookURL, "", "")
		a.Arguments = rpc.RawJSON([]byte(`{"point":"room/lamp", "every":1}`))
		err := after.hooks.Unsubscribe(t.Context(), caller, a, true)
		if err != nil || strings.Contains(after.stored(), "hooks.example.com") {
			t.Errorf("%v %s", err, after.stored())
		}
	})
}

// TestHookProofs: a receiver is asked only so often to prove itself, whatever the path.
func TestHookProofs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, eventtest.New(), nil)
		r.answer(func(*http.Request, string) int { return http.StatusNotFound })
		for i := range 40 {
			url := fmt.Sprint(hookURL, "/", i)
			if _, err := r.hooks.Subscribe(t.Context(), caller, ask(url, secretOf("a"), ""), true); err == nil {
				t.Error("it did not prove itself")
			}
		}
		if n := len(r.got); n != int(verifyRate.Burst) {
			t.Errorf("it is asked %d times at once", n)
		}
	})
}

// TestHookWear: many events cause few writes of the file, and none of its secrets is logged.
func TestHookWear(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, eventtest.New(), nil)
		r.subscribe(t, caller, ask(hookURL+"/secret-path", secretOf("a"), ""))
		r.next(t, "verification")
		for i := range 600 {
			r.source.Add("room/lamp")
			r.next(t, fmt.Sprint("e", i+1))
			time.Sleep(time.Second)
		}
		r.mu.Lock()
		writes := r.writes
		r.mu.Unlock()
		if writes > 12 {
			t.Errorf("%d writes in 10 minutes", writes)
		}
		r.answer(func(*http.Request, string) int { return http.StatusInternalServerError })
		r.source.Add("room/lamp")
		time.Sleep(20 * time.Minute)
		r.source.Fail(event.ErrForbidden)
		synctest.Wait()
		r.end()
	})
	if text := log.String(); !strings.Contains(text, "not taken") || strings.Contains(text, "secret-path") ||
		strings.Contains(text, strings.TrimPrefix(secretOf("a"), secretPrefix)) {
		t.Error(text)
	}
}

// TestHookEnds: the end of the site does not wait for a receiver that does not answer, neither to a challenge nor to an
// event. What the file could not take before is stored then.
func TestHookEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, eventtest.New(), nil)
		r.subscribe(t, caller, ask(hookURL, secretOf("a"), ""))
		r.next(t, "verification")
		r.answer(func(*http.Request, string) int { return 0 })
		r.source.Add("room/lamp")
		r.next(t, "e1")
		began, answered := time.Now(), make(chan error, 1)
		go func() {
			const other = "https://other.example.com:8443/mcp"
			_, err := r.hooks.Subscribe(t.Context(), caller, ask(other, secretOf("a"), ""), true)
			answered <- err
		}()
		r.next(t, "verification")
		r.full(true)
		if err := r.hooks.Unsubscribe(t.Context(), caller, ask(hookURL, "", ""), true); err == nil {
			t.Error("stored on a full disk")
		}
		r.full(false)
		r.end()
		if err := <-answered; err == nil || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if strings.Contains(r.stored(), hookURL) {
			t.Error("a subscription that was ended is back after a restart")
		}
	})
}
