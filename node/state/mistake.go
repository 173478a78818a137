package state

import (
	"fmt"
	"strings"
)

// Mistake marks an error for which a retry does not help: the caller has to change the command,
// the configuration or a file first. The command line ends with exit status 2.
type Mistake struct{ Err error }

// Mistakef returns a Mistake with the error of fmt.Errorf.
func Mistakef(format string, args ...any) error { return Mistake{fmt.Errorf(format, args...)} }

func (m Mistake) Error() string { return m.Err.Error() }
func (m Mistake) Unwrap() error { return m.Err }

// ShellQuote quotes word for a shell, for a command that a message suggests.
func ShellQuote(word string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/.:_-+,@%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
