package config

import (
	"slices"
	"strings"
	"testing"
)

func TestProtocols(t *testing.T) {
	for _, name := range DefaultProtocols {
		if !slices.Contains(Protocols, name) {
			t.Errorf("%s is on and cannot be listed", name)
		}
	}
	for text, want := range map[string][]string{"": DefaultProtocols, "protocols: []\n": nil, "protocols: [openapi]\n": {"openapi"}} {
		site, err := Parse("x.yaml", []byte("site: { name: x }\n"+text), nil)
		if err != nil || !slices.Equal(site.Protocols, want) {
			t.Errorf("%q: %v %v", text, site, err)
		}
	}
	for text, want := range map[string]string{
		"protocols: openapi\n":                                      "x.yaml:2:12: protocols: ",
		"protocols: [openap]\n":                                     "did you mean openapi",
		"protocols: [openapi, openapi]\n":                           "openapi is listed twice",
		"protocols: [[openapi]]\n":                                  "there is no protocol",
		"protocols: { openapi: on }\n":                              "takes a list",
		"protocols:\n":                                              "takes a list",
		"http: { push_hosts: [\"https://hooks.example.com/x\"] }\n": "x.yaml:2:22: http: push_hosts takes hosts such as",
		"http: { push_hosts: [\"hooks.example.com:70000\"] }\n":     "push_hosts takes hosts such as",
		"http: { push_hosts: [\"[hooks.example.com]\"] }\n":         "push_hosts takes hosts such as",
	} {
		_, err := Parse("x.yaml", []byte("site: { name: x }\n"+text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
