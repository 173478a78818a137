package fleet

import (
	"fmt"
	"strings"
	"testing"
)

// TestWaves: every site is in one wave, in the order of names, and the rest in the last one.
func TestWaves(t *testing.T) {
	for text, want := range map[string]string{
		"1,10%,50%": "1 5 25 19", "1": "1 49", "100%": "50", "60": "50", "3%,1": "2 1 47", " 1 , 50% ": "1 25 24",
		"": "", "0": "", "101%": "", "-1": "", "x": "", "1,": "", "1.5": "",
	} {
		w, err := ParseWaves(text)
		if (err != nil) != (want == "") {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil {
			continue
		}
		var sizes, names []string
		for _, sites := range w.Split(contacts(50)) {
			sizes = append(sizes, fmt.Sprint(len(sites)))
			for _, k := range sites {
				names = append(names, k.Name)
			}
		}
		if got := strings.Join(sizes, " "); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		for i, name := range names {
			if name != fmt.Sprintf("site-%02d", i) {
				t.Fatalf("%q: %v", text, names)
			}
		}
	}
	if w, _ := ParseWaves("1,10%"); w.Split(nil) != nil {
		t.Error("waves of nobody")
	}
}
