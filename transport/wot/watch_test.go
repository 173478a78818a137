package wot_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/transport/adapter/adaptertest"
	"agentsite/transport/wot"
)

// follow begins a stream of events, and returns a function for its next line that is not empty;
// "end" at its end.
func follow(t *testing.T, s *adaptertest.Site, path, token string) (next func() string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %s %s", path, res.Status, res.Header)
	}
	lines := bufio.NewScanner(res.Body)
	return func() string {
		for lines.Scan() {
			if lines.Text() != "" {
				return lines.Text()
			}
		}
		return "end"
	}
}

// wants fails the test where the next line is another one.
func wants(t *testing.T, next func() string, want string) {
	t.Helper()
	if got := next(); got != want {
		t.Fatalf("the stream has %q, want %q", got, want)
	}
}

// TestObserve: a stream begins with the value, has each other one, and ends with the permission.
func TestObserve(t *testing.T) {
	s := serve(t, nil)
	token, revoke := s.Token(t, "part", "read greenhouse/vent")
	next := follow(t, s, house+"/properties/vent/observe", token)
	wants(t, next, "data: 0")
	for _, value := range []string{"30", "0", "30.5"} {
		if res, text := s.Ask(t, "PUT", house+"/properties/vent", all, value); res.StatusCode != 204 {
			t.Fatal(res.Status, text)
		}
		wants(t, next, "data: "+value)
	}
	revoke()
	wants(t, next, "event: error")
	if problem := next(); !strings.Contains(problem, `"denied"`) {
		t.Error(problem)
	}
	wants(t, next, "end")
}

// presses is a watcher that says that the button was pressed.
type presses chan bool

func (p presses) Watch(ctx context.Context, emit func(device.Reading)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case down := <-p:
			emit(device.Reading{Point: "greenhouse/button", Value: device.Bool(down), Quality: device.Good, At: time.Now()})
		}
	}
}

// TestEvents: a subscription has the events after its beginning, by either sub-protocol.
func TestEvents(t *testing.T) {
	s := serve(t, nil)
	button := make(presses)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Hub.Sample(ctx, nil, button); close(done) }()
	defer func() { cancel(); <-done }()
	button <- true
	const path = house + "/events/button"
	next := follow(t, s, path, all)
	wants(t, next, "event: subscribed")
	wants(t, next, "data: {}")
	for _, down := range []bool{false, true, true} { // the same again is an event
		button <- down
		wants(t, next, map[bool]string{true: "data: true", false: "data: false"}[down])
		time.Sleep(30 * time.Millisecond)
	}

	if res, _ := s.Ask(t, "HEAD", path, all, ""); res.StatusCode != 204 {
		t.Error(res.Status)
	}
	polled := make(chan string, 1)
	go func() {
		_, text := s.Ask(t, "GET", path, all, "")
		polled <- text
	}()
	for {
		button <- false
		select {
		case text := <-polled:
			if text != "false" {
				t.Errorf("polling has %q", text)
			}
			return
		case <-time.After(20 * time.Millisecond): // the request may not have begun
		}
	}
}

// TestPoll: long polling of a property is answered with the next value.
func TestPoll(t *testing.T) {
	s := serve(t, nil)
	polled := make(chan string, 1)
	go func() {
		_, text := s.Ask(t, "GET", house+"/properties/vent/observe", all, "")
		polled <- text
	}()
	for n := 0; ; n++ {
		value := []string{"10", "20"}[n%2]
		if res, text := s.Ask(t, "PUT", house+"/properties/vent", all, value); res.StatusCode != 204 {
			t.Fatal(res.Status, text)
		}
		select {
		case text := <-polled:
			if text != "10" && text != "20" {
				t.Errorf("polling has %q", text)
			}
			if res, _ := s.Ask(t, "GET", house+"/properties/nothing/observe", all, ""); res.StatusCode != 404 {
				t.Error(res.Status)
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestPollEnds: a client that leaves gives its place back, and the site's end answers those that
// wait.
func TestPollEnds(t *testing.T) {
	s := adaptertest.New(t, nil)
	ending, end := context.WithCancel(s.Ending)
	defer end()
	s.Ending = ending
	s.Serve(t, wot.Routes(&s.Site))
	poll := func(ctx context.Context) (int, error) {
		r, err := http.NewRequestWithContext(ctx, "GET", s.URL+house+"/events/button", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+all)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		res.Body.Close()
		return res.StatusCode, nil
	}
	for range 40 { // more than there are places
		ctx, leave := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if status, err := poll(ctx); err == nil {
			t.Fatalf("nothing happened, and the answer is %d", status)
		}
		leave()
	}
	for { // until the last ones have left
		if res, _ := s.Ask(t, "HEAD", house+"/events/button", all, ""); res.StatusCode != 204 {
			t.Fatal(res.Status)
		}
		waits := make(chan int, 1)
		go func() { status, _ := poll(t.Context()); waits <- status }()
		select {
		case status := <-waits:
			if status != http.StatusTooManyRequests {
				t.Fatal(status)
			}
		case <-time.After(200 * time.Millisecond):
			end()
			if status := <-waits; status != 204 {
				t.Errorf("at the site's end: %d", status)
			}
			return
		}
	}
}
