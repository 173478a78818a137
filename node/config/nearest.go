package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxListed bounds how many known words an error lists.
const maxListed = 12

// suggest ends an error about an unknown word: the nearest known ones, or all of
// them. kind is what they are: key, driver.
func suggest(word string, known []string, kind string) string {
	if near := nearest(word, known); len(near) > 0 {
		return fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
	}
	switch len(known) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; the only %s is %s", kind, known[0])
	}
	sorted := slices.Sorted(slices.Values(known))
	more := ""
	if len(sorted) > maxListed {
		sorted, more = sorted[:maxListed], ", …"
	}
	return fmt.Sprintf("; the %ss are %s%s", kind, strings.Join(sorted, ", "), more)
}

// nearest returns at most three known words, nearest first, that word could be a
// typo or a part of.
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
		far := distance(word, k)
		contained := len(word) >= 3 && strings.Contains(k, word)
		if contained || far <= (len(word)+2)/3 {
			near = append(near, candidate{k, far})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.word, b.word))
	})
	var words []string
	for _, c := range near[:min(3, len(near))] {
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
