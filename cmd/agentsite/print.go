package main

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"agentsite/node/access"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// say prints one line for people, which a terminal may get in several, and cleans texts of a site. Its
// error needs no check: app.execute returns the first error of the output.
func (a *app) say(format string, args ...any) error {
	_, err := fmt.Fprintln(a.out, fitting(a.out, clean(fmt.Sprintf(format, args...))))
	return err
}

// sayIn is say in a style.
func (a *app) sayIn(s style, format string, args ...any) error {
	_, err := fmt.Fprintln(a.out, a.out.paint(s, fitting(a.out, clean(fmt.Sprintf(format, args...)))))
	return err
}

// sayOthers is say for a line with words of others, none of which a terminal shows at the beginning of a line
// without a mark.
func (a *app) sayOthers(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	n := min(1, len(text))
	return sayAfter(a.out, text[:n], text[n:])
}

// tell is say for sentences: on a terminal they are broken between words.
func (a *app) tell(format string, args ...any) error {
	text := clean(fmt.Sprintf(format, args...))
	if a.out.terminal() {
		text = strings.Join(fill(unbroken(text), a.out.width()), "\n")
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}

// note prints a remark that a script does not need to standard error.
func (a *app) note(format string, args ...any) {
	a.remark("agentsite: " + clean(fmt.Sprintf(format, args...)))
}

// remark prints lines of this program to standard error.
func (a *app) remark(text string) {
	a.out.above(func() {
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintln(a.errs, fitting(a.errs, line))
		}
	})
}

// fitting returns a line, for a terminal that it does not fit in several, with a mark before the further ones. A
// line that begins with a space is of a file, and stays as it is.
func fitting(w io.Writer, line string) string {
	width := lineWidth(w)
	if width == 0 || cellsOf(line) <= width || line[0] == ' ' {
		return line
	}
	return strings.Join(fill(unbroken(line), width-len(continuedMark)), "\n"+continuedMark)
}

// closers has what ends a text that is not broken, to be copied.
var closers = map[byte]byte{'{': '}', '[': ']', '"': '"', '\'': '\''}

// programs begin commands in sentences, which end with a punctuation mark.
var programs = []string{"agentsite", "sudo", "chmod", "journalctl", "systemctl", "curl"}

// unbroken returns the parts of a sentence between which a line may end: words, and whole what is to be copied, such
// as commands, and what stands in quotes or brackets.
func unbroken(text string) (parts []string) {
	var open []byte // what closes each text that is open
	command := false
	for more := true; more; {
		var word string
		word, text, more = strings.Cut(text, " ")
		if command || len(open) > 0 {
			parts[len(parts)-1] += " " + word
		} else {
			parts = append(parts, word)
		}
		command = (command || slices.Contains(programs, path.Base(word))) && strings.TrimRight(word, ",;:.)") == word
		for i := range len(word) {
			c, last := word[i], byte(0)
			if len(open) > 0 {
				last = open[len(open)-1]
			}
			closer, opens := closers[c]
			quotes := closer == c
			switch {
			case c == last:
				open = open[:len(open)-1]
			case !opens || last == '"' || last == '\'' || quotes && i > 0 && !strings.Contains("([{", word[i-1:i]):
			case strings.IndexByte(word[i+1:]+text, closer) >= 0:
				open = append(open, closer)
			}
		}
	}
	return parts
}

// safeWord returns a text that came from a site, as a word of a command that people paste into a shell: a
// name, an ID or an address. Any other text is replaced by the placeholder.
func safeWord(text, placeholder string) string {
	if text == "" || len(text) > 128 || text[0] == '-' || !access.ShellSafe(text) {
		return placeholder
	}
	return text
}

// print prints v with --json, and else the line that say prints.
func (a *app) print(v any, format string, args ...any) error {
	if a.json {
		return a.printJSON(v)
	}
	return a.say(format, args...)
}

// printJSON prints a value as one line of JSON.
func (a *app) printJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", escape(text))
	return err
}

// printLine prints JSON text as one line.
func (a *app) printLine(text []byte) error {
	line := jsontext.Value(text).Clone()
	if err := line.Compact(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "%s\n", escape(line))
	return err
}

// printList prints a table with a row for each of all, or the sentence none where there are
// none. With --json it prints a line for each.
func printList[T any](a *app, all []T, none string, head []string, row func(T) []string) error {
	var rows [][]string
	for _, v := range all {
		if !a.json {
			rows = append(rows, row(v))
			continue
		}
		if err := a.printJSON(v); err != nil {
			return err
		}
	}
	switch {
	case a.json:
		return nil
	case len(rows) == 0:
		return a.say("%s", none)
	}
	return table(a.out, head, rows)
}

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
