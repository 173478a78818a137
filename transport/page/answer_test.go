package page

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/transport/web"
)

func (n *near) takeAnswers() Answers {
	return Answers{
		May:     func(p principal.Principal) bool { return p.ID == n.mayAnswer },
		Waiting: func(p principal.Principal) (any, error) { return []string{"H"}, n.answer(p, "") },
		Answer: func(p principal.Principal, handle string, ok bool) error {
			return n.answer(p, fmt.Sprint(handle, " ", ok))
		},
	}
}

// answer takes an answer of who may answer.
func (n *near) answer(p principal.Principal, says string) error {
	switch {
	case p.ID != n.mayAnswer:
		return device.Faultf(device.Denied, "no")
	case slices.Contains(n.answers, says):
		return device.Faultf(device.Invalid, "it does not wait any more")
	case says != "":
		n.answers = append(n.answers, says)
	}
	return nil
}

// TestAnswers: a key answers a call by a request that it signed for exactly that answer; neither a session nor any other
// signature does.
func TestAnswers(t *testing.T) {
	n := newNear(t)
	p, other := newPhone(), newPhone()
	n.keys.grant(p)
	n.keys.grant(other)
	n.mayAnswer = p.did()
	send := func(by phone, code, signs, path string) int {
		challenge := n.challenge()
		status, _ := n.ask("POST", answerPath, "", "", by.sign(challenge, code, lines(path, n.site, host, challenge, signs)))
		return status
	}
	session := func(by phone) (token, body string) {
		challenge := n.challenge()
		status, body := n.ask("POST", keyPath, "", "", by.sign(challenge, "", lines(keyPath, n.site, host, challenge, "")))
		_, token, _ = strings.Cut(body, `"token":"`)
		if token, _, _ = strings.Cut(token, `"`); status != 200 || token == "" {
			t.Fatal(status, body)
		}
		return token, body
	}
	token, body := session(p)
	if !strings.Contains(body, `"answers":true`) {
		t.Error(body)
	}
	if status, body := n.ask("GET", callsPath, token, ""); status != 200 || body != "{\"requests\":[\"H\"]}\n" {
		t.Error(status, body)
	}
	foreign, body := session(other)
	if status, _ := n.ask("GET", callsPath, foreign, ""); status != 403 || strings.Contains(body, "answers") {
		t.Error(status, body)
	}
	for what, status := range map[string]int{
		"for another call":      send(p, "approve H", "approve I", answerPath),
		"for the other answer":  send(p, "approve H", "deny H", answerPath),
		"to sign in":            send(p, "approve H", "approve H", keyPath),
		"of another key":        send(other, "approve H", "approve H", answerPath),
		"of a key with nothing": send(newPhone(), "approve H", "approve H", answerPath),
		"of no answer":          send(p, "H", "H", answerPath),
		"of another word":       send(p, "grant H", "grant H", answerPath),
	} {
		if status/100 != 4 {
			t.Errorf("a signature %s: %d", what, status)
		}
	}
	if status, _ := n.ask("POST", answerPath, token, ""); status != 403 || len(n.answers) > 0 {
		t.Errorf("a session: %d; %q", status, n.answers)
	}
	for _, tt := range []struct {
		code string
		want int
	}{{"approve H", 204}, {"approve H", 410}, {"deny I", 204}} {
		if status := send(p, tt.code, tt.code, answerPath); status != tt.want {
			t.Errorf("%s: %d", tt.code, status)
		}
	}
	if got := fmt.Sprint(n.answers); got != "[H true I false]" {
		t.Error(got)
	}
	// A key that TLS proved has signed no answer.
	r, w := httptest.NewRequest("POST", answerPath, nil), httptest.NewRecorder()
	r.Header.Set(codeHeader, "approve J")
	var c web.Caller
	c.Who, c.Key = principal.Principal{ID: n.mayAnswer}, n.mayAnswer
	n.page.answer(w, r, c)
	if w.Code != 403 || len(n.answers) > 2 {
		t.Errorf("a request without a signature: %d, %q", w.Code, n.answers)
	}
}
