package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// The names that the columns may have: this program's, and those of Home Assistant, its statistics,
// InfluxDB and loggers.
var importColumns = map[string][]string{
	"time":  {"time", "last_changed", "_time", "timestamp", "datetime", "start", "date"},
	"date":  {"date"},
	"point": {"point", "entity_id", "statistic_id", "_measurement"},
	"field": {"_field"},
	"value": {"value", "mean", "state", "_value"},
	"min":   {"min"}, "max": {"max"}, "last": {"last"},
}

// columnsOf returns the columns that a header names.
func columnsOf(head []string) map[string]int {
	columns := make(map[string]int)
	for what, names := range importColumns {
		columns[what] = -1
		for _, name := range slices.Backward(names) {
			if i := slices.IndexFunc(head, func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), name) }); i >= 0 {
				columns[what] = i
			}
		}
	}
	if at := columns["time"]; at < 0 || !strings.EqualFold(strings.TrimSpace(head[at]), "time") {
		columns["date"] = -1
	}
	return columns
}

// cells are the cells of a row by what they are. Missing ones are "".
type cells struct {
	columns map[string]int
	record  []string
}

func (c cells) of(what string) string {
	if i := c.columns[what]; i >= 0 && i < len(c.record) {
		return strings.TrimSpace(c.record[i])
	}
	return ""
}

// time returns the time, of which the day may be in a column of its own.
func (c cells) time() string { return strings.TrimSpace(c.of("date") + " " + c.of("time")) }

// name returns the name of the point. A field of InfluxDB that is not called value is a part of it.
func (c cells) name() string {
	name := c.of("point")
	if field := c.of("field"); field != "" && field != "value" {
		name += "." + field
	}
	return name
}

// newReader returns a reader of CSV behind a byte order mark, and the separator of its columns: a
// comma, a semicolon or a tab. Lines that begin with # are comments.
func newReader(f io.Reader) *csv.Reader {
	b := bufio.NewReaderSize(f, 64<<10)
	if mark, _ := b.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) { // of spreadsheets
		b.Discard(len(mark))
	}
	r := csv.NewReader(b)
	r.ReuseRecord, r.FieldsPerRecord, r.Comment = true, -1, '#'
	begin, _ := b.Peek(b.Size())
	for line := range bytes.Lines(begin) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		for _, separator := range ";\t" {
			if bytes.Count(line, []byte(string(separator))) > bytes.Count(line, []byte(string(r.Comma))) {
				r.Comma = separator
			}
		}
		break
	}
	return r
}

// read reads the file from its beginning.
func (im *importer) read(f io.Reader) error {
	err := im.eachRow(f, func(c cells) error {
		p, x, err := im.row(c)
		if err != nil {
			return usagef("%s:%d: %w", im.file, im.line, err)
		}
		if p == nil {
			return nil
		}
		return im.add(p, x)
	})
	if err != nil {
		return err
	}
	for _, p := range im.found() {
		if err := im.flush(p); err != nil {
			return err
		}
	}
	return nil
}

// maxRecord bounds one record of a file, in bytes.
const maxRecord = 128 << 10

// recordReader fails when more than left bytes are read, so that a file without line breaks does not fill the memory.
type recordReader struct {
	io.Reader
	left int // is set before each record
}

func (r *recordReader) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, errors.New("a line is longer than 128 kB, or a quote is not closed")
	}
	n, err := r.Reader.Read(b)
	r.left -= n
	return n, err
}

// eachRow calls do for each row of the file, from its beginning.
func (im *importer) eachRow(f io.Reader, do func(cells) error) error {
	im.left, im.unknown, im.unit, im.decimal, im.rows = nil, make(map[string]int), "", 0, 0
	for _, p := range im.points {
		p.progress = progress{}
	}
	bounded := &recordReader{f, maxRecord}
	r := newReader(bounded)
	im.comma = r.Comma
	head, err := r.Read()
	if errors.Is(err, io.EOF) {
		return usagef("%s is empty", im.file)
	}
	if err != nil {
		return im.unreadable(err)
	}
	c := cells{columns: columnsOf(head)}
	for _, what := range []string{"time", "value"} {
		if c.columns[what] < 0 {
			return usagef("%s has no column %s: its first line names the columns, such as time,point,value", im.file, what)
		}
	}
	if c.columns["point"] < 0 && im.as[""] == "" {
		return usagef("%s has no column point: say with --as POINT of which point its rows are", im.file)
	}
	for {
		bounded.left = maxRecord
		if c.record, err = r.Read(); errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return im.unreadable(err)
		}
		if at := c.time(); at == "" || strings.IndexByte("0123456789", at[0]) < 0 { // the head of another table
			if again := columnsOf(c.record); again["time"] >= 0 && again["value"] >= 0 {
				c.columns = again
				continue
			}
		}
		im.line, _ = r.FieldPos(0)
		if err := do(c); err != nil {
			return err
		}
	}
}

func (im *importer) unreadable(err error) error { return usagef("%s cannot be read: %w", im.file, err) }

var errNoNumber = errors.New("no number")

// number parses a number with a decimal point or a decimal comma. All numbers of a file have the same,
// because 1.234 with a comma elsewhere may be more than a thousand.
func (im *importer) number(text string) (n float64, err error) {
	with := text
	if whole, rest, found := strings.Cut(text, ","); found && strings.Trim(rest, "0123456789eE+-") == "" && strings.Trim(whole, "0123456789+-") == "" {
		with = whole + "." + rest
	}
	n, err = strconv.ParseFloat(with, 64)
	if err != nil || strings.ContainsAny(with, "xX_") {
		if strings.ContainsAny(text, "0123456789") && strings.Trim(text, "0123456789.,+-' ") == "" {
			return n, fmt.Errorf("%.60q is no number that can be read for sure: write it without separators of thousands", text)
		}
		return n, errNoNumber
	}
	mark := byte(0)
	if i := strings.IndexAny(text, ".,"); i >= 0 {
		mark = text[i]
		if whole, rest := strings.TrimLeft(text[:i], "+-"), text[i+1:]; mark == ',' && im.comma == ',' && len(rest) == 3 && len(whole) <= 3 && whole != "0" {
			return n, fmt.Errorf("%.60q may be %.60s or %.60s%.60s: write it with a decimal point", text, with, whole, rest)
		}
	}
	if mark != 0 && im.decimal != 0 && mark != im.decimal {
		return n, fmt.Errorf("%.60q has another decimal sign than the numbers before it: write all with a decimal point",
			text)
	}
	if mark != 0 {
		im.decimal = mark
	}
	return n, nil
}
