package bundle

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// checkText refuses text that is too long, or that a terminal shows differently from what a parser
// reads: control characters, bidirectional marks, characters without a width. what names the text
// in errors.
func checkText(what, text string, limit int, lines bool) error {
	if len(text) > limit {
		return fmt.Errorf("%s has more than %d bytes", what, limit)
	}
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return fmt.Errorf("%s is not UTF-8", what)
			}
		}
		if r == '\n' && lines {
			continue
		}
		if !unicode.IsGraphic(r) || r != ' ' && unicode.IsSpace(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return fmt.Errorf("%s has the character %U, which is not seen as it is read", what, r)
		}
	}
	return nil
}

// Clip returns text that a need of a bundle may have, cut and without characters that Open refuses.
func Clip(text string) string {
	var kept []rune
	for _, r := range text {
		if len(kept) == maxFor {
			break
		}
		if checkText("", string(r), utf8.UTFMax, false) == nil {
			kept = append(kept, r)
		}
	}
	return string(kept)
}
