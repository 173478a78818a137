package page

import (
	"errors"
	"net/http"

	"agentsite/device"
	"agentsite/node/push"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

const pushPath = "/page/push"

// AddPushes has the page tell phones how their browsers subscribe, and give the store what they answer. It is called
// after AddPhones and before Routes.
func (p *Page) AddPushes(store *push.Store) { p.phones.pushes = store }

// pushRoutes are the routes of the subscription of a phone, for sessions of keys only.
func (p *Page) pushRoutes() []web.Route {
	if p.phones == nil || p.phones.pushes == nil {
		return nil
	}
	type handler = func(http.ResponseWriter, *http.Request, web.Caller)
	serve := func(do func(*session, http.ResponseWriter, *http.Request, web.Caller) error) handler {
		return func(w http.ResponseWriter, r *http.Request, c web.Caller) {
			own := p.sessions.use(web.Bearer(r))
			if own == nil || own.key == "" || own.key != c.Who.ID {
				web.RefuseRPC(w, http.StatusForbidden,
					"only a phone that an owner let in is told by its browser: agentsite grant phone")
				return
			}
			err := do(own, w, r, c)
			if errors.Is(err, errAnswered) {
				return
			}
			var state push.State
			if err == nil {
				state, err = p.phones.pushes.State(own.key)
			}
			if err != nil {
				web.RefuseRPC(w, statusOf(err), err.Error())
				return
			}
			text, err := json.Marshal(state)
			if err != nil {
				web.RefuseRPC(w, http.StatusInternalServerError, "the answer has no form in JSON")
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			w.Write(append(text, '\n'))
		}
	}
	look := func(*session, http.ResponseWriter, *http.Request, web.Caller) error { return nil }
	drop := func(own *session, _ http.ResponseWriter, _ *http.Request, _ web.Caller) error {
		return p.phones.pushes.Drop(own.key, "")
	}
	return []web.Route{
		{Pattern: "GET " + pushPath, Admission: web.Principals, Serve: serve(look)},
		{Pattern: "POST " + pushPath, Admission: web.Principals, Serve: serve(p.subscribe)},
		{Pattern: "DELETE " + pushPath, Admission: web.Principals, Serve: serve(drop)},
	}
}

var errAnswered = errors.New("answered")

// subscribe takes the subscription of a browser, as its toJSON writes it.
func (p *Page) subscribe(own *session, w http.ResponseWriter, r *http.Request, c web.Caller) error {
	body, done := c.ReadBody(w, r)
	if body == nil {
		return errAnswered
	}
	defer done()
	var sub push.Subscription
	if r.Header.Get("Content-Type") != "application/json" || json.Unmarshal(body.Bytes(), &sub) != nil {
		return device.Faultf(device.Invalid, "a subscription is application/json, as browsers write it")
	}
	return p.phones.pushes.Offer(own.key, own.account, sub)
}

// statusOf returns the status for a fault of the store.
func statusOf(err error) int {
	switch device.AsFault(err).Kind {
	case device.Invalid:
		return http.StatusBadRequest
	case device.Denied:
		return http.StatusForbidden
	case device.Busy:
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}
