package llm

import "testing"

// TestKeyInTheClear: a key is sent by HTTPS, or to this machine.
func TestKeyInTheClear(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://api.example.com/v1": true, "http://203.0.113.9/v1": false, "http://laptop:11434/v1": false, "HTTP://laptop/v1": false,
		"http://127.0.0.1:11434/v1": true, "http://[::1]:1/v1": true, "http://localhost:11434/v1": true, "http://127.0.0.1.example.com/v1": false,
	} {
		for _, key := range []string{"", "model.key"} {
			a := New(&World{})
			a.Model = Model{URL: url, Name: "m", KeyFile: key}
			if _, err := a.Define(); (err == nil) != (ok || key == "") {
				t.Errorf("%s with the key %q: %v", url, key, err)
			}
		}
	}
}
