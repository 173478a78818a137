package page

import (
	"net/http"
	"strings"

	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/transport/web"
)

const (
	callsPath  = "/page/calls"
	answerPath = "/page/answer"
)

// The first word of what a key signs as an answer. The handle of the call follows.
const (
	approveWord = "approve"
	denyWord    = "deny"
)

// Answers lets keys that live in browsers answer calls that wait for an owner. Who may is decided by the functions.
type Answers struct {
	May     func(principal.Principal) bool
	Waiting func(principal.Principal) (any, error) // a list that can be written as JSON
	Answer  func(p principal.Principal, handle string, ok bool) error
}

// AddAnswers has the page take answers of keys. It is called after AddPhones, before Routes.
func (p *Page) AddAnswers(a Answers) { p.answers = &a }

// calls lists the calls that a session's key may answer.
func (p *Page) calls(w http.ResponseWriter, _ *http.Request, c web.Caller) {
	all, err := p.answers.Waiting(c.Who)
	if err != nil {
		refuse(w, err)
		return
	}
	writeJSON(w, map[string]any{"requests": all})
}

// answer takes the answer that a key signed: the code of its statement names the answer and the call, so that
// neither a session nor a signature for something else answers one.
func (p *Page) answer(w http.ResponseWriter, r *http.Request, c web.Caller) {
	word, handle, ok := strings.Cut(r.Header.Get(codeHeader), " ")
	switch {
	case !signs(r) || c.Who.Owner || c.Who.ID != c.Key:
		web.RefuseRPC(w, http.StatusForbidden, "a call is answered by a request that a key signed which lives in a browser")
	case !ok || word != approveWord && word != denyWord:
		web.RefuseRPC(w, http.StatusBadRequest, `what is signed is "approve" or "deny" with the handle of a call`)
	default:
		if err := p.answers.Answer(c.Who, handle, word == approveWord); err != nil {
			refuse(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// refuse answers with a fault. An answer to a call that does not wait any more is Gone.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusGone
	switch device.AsFault(err).Kind {
	case device.Denied:
		status = http.StatusForbidden
	case device.Busy:
		status = http.StatusTooManyRequests
	case device.Unavailable:
		status = http.StatusServiceUnavailable
	}
	web.RefuseRPC(w, status, err.Error())
}
