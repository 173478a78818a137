package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"agentsite/device/lan"
)

// TestFoundThingByNumber: the URL of a Thing that has its address as a number in its description is offered with that,
// if it was announced, so that the entry works.
func TestFoundThingByNumber(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"properties":{"on":{"type":"boolean","forms":[
			{"href":"http://[::1]:9/on"},{"href":"http://192.0.2.7`+r.Host[strings.LastIndex(r.Host, ":"):]+`/on"},
			{"href":"http://`+"127.0.0.1"+r.Host[strings.LastIndex(r.Host, ":"):]+`/on"}]}}}`)
	}))
	defer server.Close()
	at := netip.MustParseAddrPort(strings.TrimPrefix(server.URL, "http://"))
	instance := lan.Instance{Name: "Lamp", Host: "localhost", Port: at.Port(), Addresses: []netip.Addr{at.Addr()},
		Text: map[string]string{"td": "/td"}}
	found := lookAt(t.Context(), "http", instance)
	if want := `{ driver: thing, url: "` + server.URL + `/td", inputs: { on: { state: on } } }`; found.YAML != want {
		t.Errorf("%+v, want %s", found, want)
	}
}

// TestFoundThing: what a Thing says of itself is offered in the forms of this site, and nothing else of it.
func TestFoundThing(t *testing.T) {
	description := `{"base":"/","properties":{
		"temperature":{"type":"number","unit":"celsius","minimum":-20,"maximum":60,"readOnly":true,"forms":[]},
		"On":{"type":"boolean","forms":[]},
		"open } } evil: {":{"type":"boolean","forms":[]},
		"odd":{"type":"number","unit":"x\" } evil","minimum":0,"maximum":1},
		"unbounded":{"type":"number","unit":"celsius"},"boundless":{"type":"number","minimum":-1e300,"maximum":1e300}}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w,
			description)
	}))
	defer server.Close()
	at := netip.MustParseAddrPort(strings.TrimPrefix(server.URL, "http://"))
	instance := lan.Instance{Name: "Lamp", Host: at.Addr().String(), Port: at.Port(),
		Text: map[string]string{"td": "/td", "type": "Thing"}}
	found := lookAt(t.Context(), "http", instance)
	want := `{ driver: thing, url: "` + server.URL + `/td", inputs: { on: { property: "On", state: on }, temperature: { unit: "Cel", range: -20..60 } } }`
	if found.YAML != want || found.Name != "lamp" || strings.Contains(found.Says, "evil") {
		t.Errorf("%+v, want %s", found, want)
	}
	instance.Text["td"] = "/\"evil"
	if found := lookAt(t.Context(), "http", instance); found.YAML != "" {
		t.Error(found)
	}
	instance.Host, instance.Text["td"] = "example.org", "/td"
	if found := lookAt(t.Context(), "http", instance); found.YAML != "" {
		t.Error(found)
	}
}
