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

// pushRoutes are the routes of the subscription of a phone. Its key signs a new one, which outlives the session.
func (p *Page) pushRoutes() []web.Route {
	if p.phones == nil || p.phones.pushes == nil {
		return nil
	}
	type handler = func(http.ResponseWriter, *http.Request, web.Caller)
	serve := func(do func(string, http.ResponseWriter, *http.Request, web.Caller) error) handler {
		return func(w http.ResponseWriter, r *http.Request, c web.Caller) {
			key := p.phoneOf(r, c)
			if key == "" {
				web.RefuseRPC(w, http.StatusForbidden,
					"only a phone that an owner let in is told by its browser: agentsite grant phone")
				return
			}
			err := do(key, w, r, c)
			if errors.Is(err, errAnswered) {
				return
			}
			var state push.State
			if err == nil {
				state, err = p.phones.pushes.State(key)
			}
			if err != nil {
				web.RefuseRPC(w, statusOf(err), err.Error())
				return
			}
			writeJSON(w, state)
		}
	}
	look := func(string, http.ResponseWriter, *http.Request, web.Caller) error { return nil }
	drop := func(key string, _ http.ResponseWriter, _ *http.Request, _ web.Caller) error {
		return p.phones.pushes.Drop(key, "")
	}
	return []web.Route{
		{Pattern: "GET " + pushPath, Admission: web.Principals, Serve: serve(look)},
		{Pattern: "POST " + pushPath, Admission: web.Principals, Signed: p.phones, Serve: serve(p.subscribe)},
		{Pattern: "DELETE " + pushPath, Admission: web.Principals, Serve: serve(drop)},
	}
}

// phoneOf returns the key of the phone that sent a request, which it signed or sent in a session of the key; "" for any
// other sender.
func (p *Page) phoneOf(r *http.Request, c web.Caller) string {
	if signs(r) && !c.Who.Owner {
		return c.Key
	}
	if own := p.sessions.use(web.Bearer(r)); own != nil && own.key == c.Who.ID {
		return own.key
	}
	return ""
}

var errAnswered = errors.New("answered")

// subscribe takes the subscription of a browser, as its toJSON writes it.
func (p *Page) subscribe(key string, w http.ResponseWriter, r *http.Request, c web.Caller) error {
	if !signs(r) {
		return device.Faultf(device.Denied, "a subscription is taken by a request that the phone's key signed")
	}
	body, done := c.ReadBody(w, r)
	if body == nil {
		return errAnswered
	}
	defer done()
	var sub push.Subscription
	if r.Header.Get("Content-Type") != "application/json" || json.Unmarshal(body.Bytes(), &sub) != nil {
		return device.Faultf(device.Invalid, "a subscription is application/json, as browsers write it")
	}
	return p.phones.pushes.Offer(key, quota(key, c.Who.Account), sub)
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
