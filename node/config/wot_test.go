package config

import (
	"strings"
	"testing"
)

func TestWoT(t *testing.T) {
	for text, want := range map[string]WoT{
		"": {}, "wot: { directory: on }\n": {Directory: true},
		"wot: { register: https://directory.example.org/tdd, key_file: directory.token }\n": {Register: "https://directory.example.org/tdd", KeyFile: "directory.token"},
		"wot: { register: http://127.0.0.1:8081 }\n":                                        {Register: "http://127.0.0.1:8081"},
	} {
		site, err := Parse("x.yaml", []byte("site: { name: x }\n"+text), nil)
		if err != nil || site.WoT != want {
			t.Errorf("%q: %v %v", text, site, err)
		}
	}
	for text, want := range map[string]string{
		"wot: { register: http://directory.example.org }\n":                       "register takes",
		"wot: { register: http://192.168.1.2 }\n":                                 "register takes",
		"wot: { register: https://ann:secret@directory.example.org }\n":           "register takes",
		"wot: { register: directory }\n":                                          "register takes",
		"wot: { key_file: directory.token }\n":                                    "key_file takes",
		"wot: { register: https://directory.example.org, key_file: ../../key }\n": "key_file takes",
		"wot: { directory: maybe }\n":                                             "takes on or off",
		"protocols: [a2a]\nwot: { directory: on }\n":                              "under protocols:",
		"wot: on\n": "expects keys",
	} {
		_, err := Parse("x.yaml", []byte("site: { name: x }\n"+text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
