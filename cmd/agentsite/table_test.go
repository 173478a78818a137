package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestLayout: a table fits its width but for single words, and has every word of every cell, whole and in
// order.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns, width := rapid.IntRange(1, 8).Draw(t, "columns"), rapid.IntRange(30, 120).Draw(t, "width")
		word := rapid.StringMatching(`[a-z°:/]{1,24}|did:key:z6Mk[a-z]{44}`)
		head := rapid.SliceOfN(rapid.SampledFrom([]string{"SITE", "YOU MAY", "KEY", "A LONG HEAD"}), columns, columns).Draw(t, "head")
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.SliceOfN(word, 0, 12), columns, columns), 1, 4).Draw(t, "rows")
		var cells [][]string
		words := make(map[string]int)
		for _, row := range rows {
			var line []string
			for _, cell := range row {
				line = append(line, strings.Join(cell, " "))
				for _, w := range cell {
					words[w]++
				}
			}
			cells = append(cells, line)
		}
		text := ""
		for _, line := range layout(head, cells, width, nil) {
			text += " " + line
			if n := utf8.RuneCountInString(line); n > width && len(strings.Fields(line)) > 2 {
				t.Fatalf("%d columns of %d: %q", n, width, line)
			}
		}
		for _, w := range strings.Fields(text) {
			words[w]--
		}
		for w, n := range words {
			if n > 0 {
				t.Fatalf("%q is missing in %s", w, text)
			}
		}
	})
}

// TestLayoutForms: what fits stays as it is, sentences are broken between words, and a key stands whole
// below its row.
func TestLayoutForms(t *testing.T) {
	key := "did:key:z6Mk" + strings.Repeat("x", 44)
	for _, tt := range []struct {
		head, row []string
		want      string
	}{
		{[]string{"A", "B"}, []string{"x", "y"}, "A  B\nx  y"},
		{[]string{"NAME", "B"}, []string{"漢字かな", "y"}, "NAME      B\n漢字かな  y"},
		{[]string{"NAME", "B"}, []string{"Lu\u0308fter", "y"}, "NAME    B\nLu\u0308fter  y"},
		{[]string{"NAME", "B"}, []string{"🌱🌱🌱", "y"}, "NAME    B\n🌱🌱🌱  y"},
		{[]string{"POINT", "NOTE"}, []string{strings.Repeat("p", 49), "held by a rule that is called frost"}, "POINT" + strings.Repeat(" ", 46) + "NOTE\n" + strings.Repeat("p", 49) + "  held by a rule that is called\n" + strings.Repeat(" ", 51) + "frost"},
		{[]string{"SITE", "YOU MAY", "KEY"}, []string{"greenhouse", "all: you own it", key}, "SITE        YOU MAY\ngreenhouse  all: you own it\n  key: " + key},
		{[]string{"WHO", "UNTIL"}, []string{key, "2026-12-24 18:00"}, "WHO" + strings.Repeat(" ", 55) + "UNTIL\n" + key + "  2026-12-24 18:00"},
	} {
		if got := strings.Join(layout(tt.head, [][]string{tt.row}, 80, nil), "\n"); got != tt.want {
			t.Errorf("%s\nwant\n%s", got, tt.want)
		}
	}
}
