package device

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// FormatDuration writes a length of time as people write it in a configuration: 10m, 1h30m,
// 500ms; not 10m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// formatted returns the arguments of a message with durations as people write them.
func formatted(args []any) []any {
	args = slices.Clone(args) // they may be the caller's slice
	for i, a := range args {
		if d, ok := a.(time.Duration); ok {
			args[i] = FormatDuration(d)
		}
	}
	return args
}

// maxListed bounds how many known words an error lists.
const maxListed = 12

// Clip returns text as UTF-8 of at most max bytes, at least 3, with an ellipsis in place of the
// rest. Invalid bytes become U+FFFD.
func Clip(text string, max int) string {
	if len(text) <= max && utf8.ValidString(text) {
		return text
	}
	const ellipsis = "…"
	var clipped []byte
	cut := 0 // where the ellipsis fits
	for _, r := range text {
		if len(clipped)+utf8.RuneLen(r) > max {
			return string(clipped[:cut]) + ellipsis
		}
		if clipped = utf8.AppendRune(clipped, r); len(clipped) <= max-len(ellipsis) {
			cut = len(clipped)
		}
	}
	return string(clipped)
}

// Suggest ends an error about an unknown word: it names the nearest known words, or lists all of
// them. kind is their name in the singular: key, driver, point; for "" it does not list all.
func Suggest(word string, known []string, kind string) string {
	if near := nearest(word, known); len(near) > 0 {
		return fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
	}
	switch {
	case len(known) == 0 || kind == "":
		return ""
	case len(known) == 1:
		return fmt.Sprintf("; the only %s is %s", kind, known[0])
	}
	sorted := slices.Sorted(slices.Values(known))
	more := ""
	if len(sorted) > maxListed {
		sorted, more = sorted[:maxListed], ", …"
	}
	return fmt.Sprintf("; the %ss are %s%s", kind, strings.Join(sorted, ", "), more)
}

// nearest returns at most three known words, nearest first, of which word may be a
// misspelling or a part.
func nearest(word string, known []string) []string {
	type candidate struct {
		word string
		far  int
	}
	word = strings.ToLower(word)
	if len(word) > 64 {
		return nil
	}
	var near []candidate
	for _, k := range known {
		a, b := word, strings.ToLower(k)
		if same := strings.LastIndexByte(a, '/') + 1; same > 0 && strings.HasPrefix(b, a[:same]) {
			a, b = a[same:], b[same:] // of the same device only the rest can be misspelt
		}
		far := distance(a, b)
		switch {
		case len(a) >= 3 && strings.Contains(b, a):
			near = append(near, candidate{k, 0})
		case far <= (len(a)+2)/3:
			near = append(near, candidate{k, far})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.word, b.word))
	})
	near = slices.Compact(near) // a key may be known from two places
	var words []string
	for _, c := range near[:min(3, len(near))] {
		if c.far > 0 && near[0].far == 0 {
			break // it is a part of another
		}
		words = append(words, c.word)
	}
	return words
}

// distance is the number of letters to insert, drop or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
