package config

import (
	"slices"
	"testing"
)

// TestJoinRealm: the realm and its relays are written, and nothing else is changed.
func TestJoinRealm(t *testing.T) {
	const (
		realm = "farm:aaaaaaaaaaaaaaaaaaaaaaaaaa"
		relay = "/ip6/::1/udp/8475/quic-v1/p2p/12D3KooWEHr6QBYgUoTxXvcs5U8kvvNmGVdSqbPRdYxXrf1YFAuo"
		set   = "realm: " + realm
		at    = `relays: ["` + relay + `"]`
		site  = "# mine\nsite: { name: a } # here\n"
	)
	for text, want := range map[string]string{
		site:                          site + "internet:\n  " + set + "\n  " + at + "\n",
		"site: { name: a }":           "site: { name: a }\ninternet:\n  " + set + "\n  " + at,
		"\ufeffsite: { name: a }\r\n": "\ufeffsite: { name: a }\r\ninternet:\r\n  " + set + "\r\n  " + at + "\r\n",
		"internet: { listen: ':1' } # why\n" + site: "internet: { listen: ':1', " + set + ", " + at + " } # why\n" + site,
		"internet: {}\n" + site:                     "internet: { " + set + ", " + at + " }\n" + site,
		"internet:\n  # old\n  realm: public # all\n  relays:\n  - /old\n  port_map: off\n" + site: "internet:\n  # old\n  " + set +
			" # all\n  " + at + "\n  port_map: off\n" + site,
		"internet:\n  " + set + "\n  " + at + "\n" + site:                 "internet:\n  " + set + "\n  " + at + "\n" + site,
		"internet: { " + set + ", relays: [ '" + relay + "' ] }\n" + site: "internet: { " + set + ", relays: [ '" + relay + "' ] }\n" + site,
		"internet:\n  relays:\n  - /a # mine\n  - /b\n" + site:            "", // a comment would be lost
		"internet: on\n" + site:                                           "",
		"internet: [":                                                     "",
		"{ site: { name: a } }\n":                                         "",
	} {
		got, err := JoinRealm("x.yaml", []byte(text), realm, []string{relay})
		if string(got) != want || (err != nil) != (want == "") {
			t.Errorf("%q: %v\n%q\nwant\n%q", text, err, got, want)
		}
		if want == "" {
			continue
		}
		if again, err := JoinRealm("x.yaml", got, realm, nil); err != nil || !slices.Equal(again, got) {
			t.Errorf("%q again: %v\n%q", text, err, again)
		}
		if c, err := Parse("x.yaml", got, nil); err != nil || c.Internet.Realm != realm ||
			!slices.Equal(c.Internet.Relays, []string{relay}) {
			t.Errorf("%q: %v", got, err)
		}
	}
}
