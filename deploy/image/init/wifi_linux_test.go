package main

import "testing"

func TestWiFi(t *testing.T) {
	for text, want := range map[string]network{
		"":                            {},
		"# nobody\ncountry:\nname:\n": {},
		"country: de\r\nname: My Home: 5 GHz\r\npassword: a b:c d e\r\n": {"DE", "My Home: 5 GHz", "a b:c d e"},
		"\ufeffname: open": {"", "open", ""},
	} {
		if got, err := parseWiFi(text); got != want || err != nil {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"ssid: x", "name x", "name: x\npassword: short", "name: x\ncountry: Germany", "name: 012345678901234567890123456789012"} {
		if _, err := parseWiFi(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
