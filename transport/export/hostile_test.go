package export

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/agent"
)

// TestHostile: a receiver that hangs, answers without an end, redirects or breaks off is tried again, and is followed
// nowhere. Nothing is lost.
func TestHostile(t *testing.T) {
	for name, answer := range map[string]func(q *http.Request) (*http.Response, error){
		"hangs": func(q *http.Request) (*http.Response, error) {
			<-q.Context().Done()
			return nil, q.Context().Err()
		},
		"endless": func(*http.Request) (*http.Response, error) {
			res := status(http.StatusInternalServerError)
			res.Body = io.NopCloser(endless{})
			return res, nil
		},
		"redirects": func(*http.Request) (*http.Response, error) {
			res := status(http.StatusTemporaryRedirect)
			res.Header.Set("Location", "https://elsewhere.example.org/")
			return res, nil
		},
		"breaks off": func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
		"sign in":    func(*http.Request) (*http.Response, error) { return status(http.StatusUnauthorized), nil },
		"not there":  func(*http.Request) (*http.Response, error) { return status(http.StatusNotFound), nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "bed/temperature")
				r.say(func(q *http.Request, _ []got) (*http.Response, error) {
					if q.URL.Host != "metrics.example.org" || q.Header.Get("Authorization") != "Bearer secret" {
						t.Errorf("it asked %s", q.URL.Host)
					}
					return answer(q)
				})
				stop := r.run()
				r.sleep(20 * time.Minute)
				if n := len(r.asked); n < 3 || n > 20 {
					t.Errorf("%d tries", n)
				}
				if says := r.agent.Report(t.Context()); says.State != agent.Waiting || strings.Contains(says.Says, "secret") {
					t.Errorf("%+v", says)
				}
				r.say(nil)
				r.sleep(retryMax + time.Minute)
				r.check("bed/temperature", r.began.Add(-reach), time.Now().Add(-2*time.Minute), 0)
				stop()
			})
		})
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte("x"), len(b))), nil }

// TestAfar: points of another site are not sent, and not kept, whatever names it gives them.
func TestAfar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "bed/temperature", "shed/bed/temperature")
		stop := r.run()
		r.sleep(5 * time.Minute)
		if stop(); strings.Contains(string(r.file), "shed") || len(r.got) != 1 {
			t.Errorf("%s %d", r.file, len(r.got))
		}
	})
}

// TestRetryAfter: a receiver is not asked before the time that it names.
func TestRetryAfter(t *testing.T) {
	for text, wait := range map[string]time.Duration{
		"600": 10 * time.Minute, "Sat, 01 Jan 2000 00:30:00 GMT": 30 * time.Minute, "1000000": laterMax, "-5": 0, "soon": 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "bed/temperature")
			r.say(func(*http.Request, []got) (*http.Response, error) {
				res := status(http.StatusTooManyRequests)
				res.Header.Set("Retry-After", text)
				res.Header.Set("Date", "Sat, 01 Jan 2000 00:00:00 GMT")
				return res, nil
			})
			stop := r.run()
			r.sleep(2 * laterMax)
			stop()
			if got := r.when[1].Sub(r.when[0]); got < wait || got > wait+time.Minute {
				t.Errorf("%s: %v", text, got)
			}
		})
	}
}
