package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"agentsite/node/outbox"
	"agentsite/transport/web/outbound"
)

// checkAssistant checks the keys of Home Assistant.
func (r Receiver) checkAssistant() (key string, err error) {
	const example = "https://home.example.org:8123"
	if err := r.checkURL(r.Assistant, "Home Assistant", example); err != nil {
		return "home_assistant", err
	}
	u, err := url.Parse(r.Assistant)
	name, ok := strings.CutPrefix(r.Service, "notify.")
	switch {
	case err != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "":
		return "home_assistant", errors.New("takes the URL of Home Assistant without a path, such as " + example)
	case !ok || name == "" || len(name) > 80 || strings.Trim(name, letters) != "":
		return "service", errors.New("takes a service for notifications, such as notify.mobile_app_ann")
	case r.KeyFile == "":
		return "home_assistant", errors.New("needs key_file: the name of a file with a long-lived access token of Home Assistant")
	}
	return "", nil
}

// called is the data of a call of a notify service: NOTIFY_SERVICE_SCHEMA of homeassistant/components/notify/const.py.
// It is posted to /api/services/notify/NAME (developers.home-assistant.io, REST API).
type called struct {
	Title   string  `json:"title"`
	Message string  `json:"message"`
	Data    *mobile `json:"data,omitzero"`
}

// mobile has the fields that the companion apps take (companion.home-assistant.io, Notifications): the link under the
// name of iOS and that of Android, which wakes up for a high priority.
type mobile struct {
	URL      string `json:"url,omitzero"`
	Click    string `json:"clickAction,omitzero"`
	TTL      *int   `json:"ttl,omitzero"`
	Priority string `json:"priority,omitzero"`
}

// noTemplate keeps Home Assistant from rendering a text as a template, as its notify services do with a title and a
// message (homeassistant/components/notify/legacy.py): with others' texts in it, it would read states for them.
var noTemplate = strings.NewReplacer("{", "(", "}", ")")

// assistant calls the service.
func (s *sender) assistant(ctx context.Context, m outbox.Message, token string) (*http.Request, error) {
	c := called{Title: noTemplate.Replace(subject(s.site, m)), Message: noTemplate.Replace(cut(body(m, s.now()), maxNtfy))}
	name := strings.TrimPrefix(s.Service, "notify.")
	at := link(m)
	if !strings.HasPrefix(name, "mobile_app_") {
		if at != "" {
			c.Message += "\n" + at
		}
	} else {
		c.Data = &mobile{URL: at, Click: at}
		if urgent(m) {
			c.Data.TTL, c.Data.Priority = new(int), "high"
		}
	}
	r, _, err := post(ctx, s.url.JoinPath("api", "services", "notify", name), c)
	if err == nil {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r, err
}

// checkURL is outbound.CheckURL, but for an address of the owner's network, which plain lets be asked over HTTP. A name
// is none: the site connects to what it wrote, whatever a name stands for.
func (r Receiver) checkURL(text, what, example string) error {
	if rest, ok := strings.CutPrefix(text, "http://"); ok {
		u, err := url.Parse(text)
		if err != nil {
			return fmt.Errorf("%.80q is no URL of %s such as %s", text, what, example)
		}
		a, err := netip.ParseAddr(u.Hostname())
		switch own := err == nil && (a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsLoopback()); {
		case r.Plain && !own:
			return fmt.Errorf("%.80q: plain: on is for an address of your own network, such as http://192.168.1.20:8123; "+
				"write that, or the https URL", text)
		case r.Plain:
			text = "https://" + rest
		case own && !a.IsLoopback() && u.User == nil:
			return fmt.Errorf("%.80q would be asked over plain HTTP, which anyone on the way can read and change; "+
				"write its https URL, or plain: on beside it if that network is yours alone", text)
		}
	}
	return outbound.CheckURL(text, what, example)
}
