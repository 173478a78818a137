package discovery

import "testing"

// TestRealms: realms differ from each other, and survive encoding and parsing.
func TestRealms(t *testing.T) {
	made, err := NewRealm("home")
	if err != nil {
		t.Fatal(err)
	}
	all := []Realm{PublicRealm(), made}
	for _, text := range []string{"home:aaaaaaaaaaaaaaaaaaaaaaaaaa", "home:aaaaaaaaaaaaaaaaaaaaaaaaae", "shed:aaaaaaaaaaaaaaaaaaaaaaaaaa"} {
		r, err := ParseRealm(text)
		if err != nil || r.String() != text || r.Public() || !r.Exists() {
			t.Errorf("%s is read as %s, %v", text, r, err)
		}
		all = append(all, r)
	}
	seen := make(map[[32]byte]string)
	for _, r := range all {
		for _, words := range [][]string{nil, {""}, {"a"}, {"a", "b"}, {"ab"}, {"a,1:b"}} {
			h := r.Hash("x", words...)
			if seen[h] != "" {
				t.Errorf("%#v %q has the name of %s", r, words, seen[h])
			}
			seen[h] = r.String()
		}
		if again, err := ParseRealm(r.String()); err != nil || again != r {
			t.Errorf("%#v comes back as %#v, %v", r, again, err)
		}
	}
	for _, text := range []string{"", "home", "home:", ":aaaaaaaaaaaaaaaaaaaaaaaaaa", "public:aaaaaaaaaaaaaaaaaaaaaaaaaa", "Home:aaaaaaaaaaaaaaaaaaaaaaaaaa",
		"home:aaaaaaaaaaaaaaaaaaaaaaaaa", "home:aaaaaaaaaaaaaaaaaaaaaaaaab", "home:AAAAAAAAAAAAAAAAAAAAAAAAAA", "home:aaaaaaaaaaaaaaaaaaaaaaaaa\n"} {
		if r, err := ParseRealm(text); err == nil {
			t.Errorf("%q is read as %#v", text, r)
		}
	}
	if _, err := NewRealm("public"); err == nil {
		t.Error("a realm of one's own is called as everybody's")
	}
}
