package mcp

import (
	"strings"
	"unicode"
)

const (
	zwnj      = '\u200c' // zero width non-joiner
	zwj       = '\u200d' // zero width joiner
	textStyle = '\ufe0e' // makes a text of a symbol
	emoji     = '\ufe0f' // makes an emoji of one
	keycap    = '\u20e3'
)

// flags are the emoji of England, Scotland and Wales, which are written with invisible tags.
var flags = strings.NewReplacer(
	"\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F", "",
	"\U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F", "",
	"\U0001F3F4\U000E0067\U000E0062\U000E0077\U000E006C\U000E0073\U000E007F", "",
)

// joining are the scripts that are written with zero width joiners (Unicode 15, UAX #31, 2.3).
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil,
	unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar,
}

// hidesText reports whether a text has characters that people do not see. A joiner between two letters
// of a script that is written with it is none, nor are those within an emoji.
func hidesText(text string) bool {
	all := []rune(flags.Replace(text))
	at := func(i int) rune {
		if i < 0 || i >= len(all) {
			return 0
		}
		return all[i]
	}
	for i, r := range all {
		before, after := at(i-1), at(i+1)
		visible := r != unicode.ReplacementChar && unicode.IsGraphic(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
		switch r {
		case textStyle, emoji:
			visible = isSymbol(before) || isKey(before) && after == keycap
		case zwnj, zwj:
			visible = isLetter(before) && isLetter(after) ||
				r == zwj && unicode.Is(unicode.So, after) && (unicode.Is(unicode.So, before) || before == emoji || before >= '\U0001F3FB' && before <= '\U0001F3FF')
		}
		if !visible {
			return true
		}
	}
	return false
}

// isSymbol reports whether a character is one that may be an emoji (emoji-variation-sequences.txt of
// Unicode 15).
func isSymbol(r rune) bool {
	return unicode.Is(unicode.So, r) || unicode.Is(unicode.Sm, r) && r > 0xff || strings.ContainsRune("‼⁉ℹ〰〽", r)
}

// isKey reports whether a character is on a key of an emoji.
func isKey(r rune) bool { return r >= '0' && r <= '9' || r == '#' || r == '*' }

// isLetter reports whether a character is a letter or a mark of a script that is written with joiners.
func isLetter(r rune) bool {
	return (unicode.IsLetter(r) || unicode.Is(unicode.M, r)) && unicode.IsOneOf(joining, r)
}
