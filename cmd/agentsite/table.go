package main

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"agentsite/node/access"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// table prints rows under a head, in columns, cleaned. Empty columns are left out. On a terminal it fits
// the width.
func table(w io.Writer, head []string, rows [][]string) error { return painted(w, head, rows, nil) }

// painted is table with styles of the cells, by their row and column. Terminals show the head dim.
func painted(w io.Writer, head []string, rows [][]string, styles func(row, column int) style) error {
	out, _ := w.(*output)
	if out == nil || !out.colours() {
		return writeLines(w, layout(head, rows, widthOf(w), nil))
	}
	return writeLines(w, layout(head, rows, widthOf(w), func(row, column int, text string) string {
		switch {
		case row < 0:
			return out.paint(styleDim, text)
		case styles == nil:
			return text
		}
		return out.paint(styles(row, column), text)
	}))
}

// tableRow prints one row without its head, for tables that grow. The caller pads cells to align them.
func tableRow(w io.Writer, head []string, row ...string) error {
	return writeLines(w, layout(head, [][]string{row}, widthOf(w), nil)[1:])
}

// writeLines prints the lines of a table. A terminal begins none with what did not fit the line before; names
// and addresses stay whole, to be copied.
func writeLines(w io.Writer, lines []string) error {
	width := widthOf(w)
	var all strings.Builder
	for _, line := range lines {
		bare := unpainted(line)
		text := strings.TrimLeft(bare, " ")
		whole := width == 0 || cellsOf(bare) <= width || access.ShellSafe(strings.TrimRight(text, ","))
		if indent := len(bare) - len(text); !whole {
			line = bare[:indent] + withBreaks(text, indent+1, width)
		}
		all.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, all.String())
	return err
}

// widthOf returns the width that a table has to fit, 0 for any.
func widthOf(w io.Writer) int {
	if out, ok := w.(*output); ok && out.terminal() {
		return out.width()
	}
	return 0
}

// width returns the width for tables on the terminal: COLUMNS, or its own.
func (o *output) width() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return o.columns()
}

// columns returns the width of the terminal; 80 where it is not known.
func (o *output) columns() int {
	if f, ok := o.Writer.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 80
}

// gap is the space between two columns.
const gap = 2

// proseWidth is as narrow as a column of sentences becomes.
const proseWidth = 16

// column is one of a table.
type column struct {
	head         string
	index        int
	cells        []string
	width, least int // in columns of a terminal: as it is, and with its cells in several lines
	below        bool
}

// layout returns the lines of a table. What is wider than width, 0 for no limit, is broken between words.
// No word is broken: where they do not stand side by side, the column with the longest one is below each
// row, and its lines begin with its head. paint, if not nil, returns a text of a cell in its style; the head is row -1.
func layout(
	head []string, rows [][]string, width int, paint func(row, column int, text string) string,
) (lines []string) {
	if paint == nil {
		paint = func(_, _ int, text string) string { return text }
	}
	var all []*column
	for i := range head {
		c := &column{head: head[i], index: i}
		for _, row := range rows {
			cell := ""
			if i < len(row) {
				cell = clean(row[i])
			}
			c.cells = append(c.cells, cell)
			for word := range strings.FieldsSeq(cell) {
				c.least = max(c.least, textWidth(word))
			}
			c.width = max(c.width, textWidth(cell))
		}
		if c.width == 0 {
			continue
		}
		c.least = max(c.least, min(c.width, proseWidth), textWidth(c.head))
		c.width = max(c.width, c.least)
		all = append(all, c)
	}
	beside := slices.Clone(all)
	if width > 0 {
		beside = narrow(beside, width)
	}
	heads := func(c *column) []string { return []string{paint(-1, c.index, c.head)} }
	if len(beside) > 0 {
		lines = append(lines, sideBySide(beside, heads)...)
	}
	for i := range rows {
		lines = append(lines, sideBySide(beside, func(c *column) []string {
			text := []string{c.cells[i]}
			if textWidth(c.cells[i]) > c.width {
				text = wrap(c.cells[i], c.width)
			}
			for n := range text {
				text[n] = paint(i, c.index, text[n])
			}
			return text
		})...)
		for _, c := range all {
			if !c.below || c.cells[i] == "" {
				continue
			}
			for n, l := range wrap(strings.ToLower(c.head)+": "+c.cells[i], width-2*gap) {
				lines = append(lines, strings.Repeat(" ", gap*min(n+1, 2))+paint(i, c.index, l))
			}
		}
	}
	return lines
}

// narrow narrows columns until they fit a width side by side, and returns those that do.
func narrow(beside []*column, width int) []*column {
	sum := func(of func(*column) int) (n int) {
		for _, c := range beside {
			n += of(c) + gap
		}
		return n - gap
	}
	for len(beside) > 1 && sum(func(c *column) int { return c.least }) > width {
		wide := 1 // the first column names the row
		for i, c := range beside[1:] {
			if c.least > beside[wide].least {
				wide = i + 1
			}
		}
		beside[wide].below = true
		beside = slices.Delete(beside, wide, wide+1)
	}
	for over := sum(func(c *column) int { return c.width }) - width; over > 0; over-- {
		var wide *column
		for _, c := range beside {
			if c.width > c.least && (wide == nil || c.width > wide.width) {
				wide = c
			}
		}
		if wide == nil {
			beside[0].width = max(beside[0].width-over, 1) // one column is left, with a word that is too long
			break
		}
		wide.width--
	}
	return beside
}

// sideBySide returns the lines of a row.
func sideBySide(all []*column, cell func(*column) []string) (lines []string) {
	at := 0
	for _, c := range all {
		for n, text := range cell(c) {
			if n == len(lines) {
				lines = append(lines, "")
			}
			lines[n] = pad(lines[n], at) + text
		}
		at += c.width + gap
	}
	if lines == nil {
		lines = []string{""}
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// pad pads a text with spaces to a width.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-textWidth(text), 0))
}

// textWidth returns how many columns a cleaned text takes at most terminals, whatever its style; see cellsOf for the
// most that any needs.
func textWidth(text string) (n int) {
	for _, r := range unpainted(text) {
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.In(r, unicode.Mn, unicode.Me): // on the letter before
		case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}
