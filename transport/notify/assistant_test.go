package notify

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/node/occurrence"
	"agentsite/node/outbox"

	"github.com/go-json-experiment/json"
)

// TestAssistant: a message calls the service as Home Assistant takes it. It renders titles and messages as templates:
// nothing that others wrote is one.
func TestAssistant(t *testing.T) {
	server, all := receive(t, func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("[]")) })
	a := newAgent(map[string]Receiver{
		"phone": {Assistant: server.URL, Service: "notify.mobile_app_ann", KeyFile: "ha.token"},
		"other": {Assistant: server.URL, Service: "notify.family", KeyFile: "ha.token"},
	})
	if d, err := a.Define(); err != nil || len(d.Secrets) != 2 {
		t.Fatal(d, err)
	}
	const link = "https://greenhouse.local:8474/#waiting?s=greenhouse&call=HANDLE"
	for _, name := range []string{"phone", "other"} {
		if err := a.send(t, name, approval); err != nil {
			t.Fatal(err)
		}
	}
	var of called
	one := all()[0]
	if err := json.Unmarshal([]byte(one.body), &of); err != nil || one.path != "/api/services/notify/mobile_app_ann" ||
		!strings.HasPrefix(one.header.Get("Authorization"), "Bearer whsec_") || of.Data.URL != link || of.Data.Click != link ||
		of.Data.Priority != "high" || of.Data.TTL == nil || *of.Data.TTL != 0 || !strings.Contains(of.Message, "set valve/open to on for 2m") {
		t.Errorf("%v %+v", err, one)
	}
	of = called{}
	if err := json.Unmarshal([]byte(all()[1].body), &of); err != nil || all()[1].path != "/api/services/notify/family" || of.Data != nil ||
		!strings.HasSuffix(of.Message, link) {
		t.Errorf("%v %+v", err, all()[1])
	}
	m := outbox.Message{ID: "1", Items: []outbox.Item{{Title: "greenhouse: a message of {{ 1 }}", Text: "“{{ states('lock.door') }}{% x %}{# y #}”", Count: 1}}}
	if err := a.sender(a.To["phone"]).Send(t.Context(), m); err != nil || strings.Contains(all()[2].body, "{{") ||
		strings.Contains(all()[2].body, "{%") || strings.Contains(all()[2].body, "{#") {
		t.Errorf("%v %s", err, all()[2].body)
	}
	for _, o := range []occurrence.Occurrence{{Kind: occurrence.SignIn, State: occurrence.Once}, {Kind: occurrence.Wish, Of: "HANDLE", Who: "token:claude"}} {
		if i := a.item(o); !i.Passing || i.Urgent || strings.Contains(i.Link+i.Title+i.Text, "HANDLE") || !strings.Contains(i.Link, "#waiting") {
			t.Errorf("%+v", i)
		}
	}
}

// TestPlain: a receiver at an address of the owner's network is asked over HTTP where that is written, and a mistake
// names what would be accepted.
func TestPlain(t *testing.T) {
	for url, ok := range map[string]bool{
		"http://192.168.1.20:8123": true, "http://10.0.0.2": true, "http://[fd00::1]:8123": true, "http://127.0.0.1:1": true,
		"http://1.1.1.1": false, "http://localhost:1": false, "http://ha.example": false, "http://ann@192.168.1.20": false,
	} {
		r := Receiver{Assistant: url, Service: "notify.x", KeyFile: "x", Plain: true}
		if _, err := r.check(); (err == nil) != ok {
			t.Errorf("%s: %v", url, err)
		}
		r.Plain = false
		if _, err := r.check(); err != nil && strings.Contains(err.Error(), "plain: on") != ok {
			t.Errorf("%s: %v", url, err)
		}
	}
}
