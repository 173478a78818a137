package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/transport/owner"

	"github.com/spf13/cobra"
)

func (a *app) historyImportCommand() *cobra.Command {
	var as []string
	cmd := &cobra.Command{
		Use: "import FILE", Args: exactly("FILE"),
		Short: "Import past readings from a CSV file",
		Long: `Import past readings of measurements from a CSV file: one of "history --step 1m --csv", one that
Home Assistant exported, or any whose first line names the columns time, point and value. With
columns min, max and last, a row is a summary. Times are RFC 3339, a date and a time here, or
Unix seconds; the values of a point are in increasing order of time and in the site's unit.

The whole file is checked before anything is imported. Hours of which the site has readings
stay as they are, so that an import that was interrupted can be repeated. Rows without a number,
and those of anything but the site's measurements, are left out and counted. The site keeps
minutes, and only hours from the time when it keeps no minutes any more.`,
		Example: "  agentsite history import greenhouse.csv\n  agentsite history import history.csv --as sensor.outdoor=outside/temperature",
		RunE: a.asOwner(func(ctx context.Context, s *session, args []string) error {
			return a.importHistory(ctx, s, args[0], as)
		}),
		ValidArgsFunction: oneFile,
	}
	cmd.Flags().StringArrayVar(&as, "as", nil, "NAME=POINT: the rows of NAME are readings of POINT; POINT alone: all rows\nare; may be repeated")
	return cmd
}

func (a *app) importHistory(ctx context.Context, s *session, file string, as []string) error {
	f, err := os.Open(file)
	if err != nil {
		return usagef("%v", err)
	}
	defer f.Close()
	list, err := s.listPoints(ctx)
	if err != nil {
		return err
	}
	im := importer{file: filepath.Base(file), as: make(map[string]string), points: make(map[string]*importedPoint)}
	for _, p := range list {
		if p.Kind == device.KindMeasurement {
			im.points[p.Point] = &importedPoint{Point: p.Point, unit: p.Unit}
		}
	}
	for _, word := range as {
		name, point, named := strings.Cut(word, "=")
		if !named {
			name, point = "", word
		}
		if im.points[point] == nil {
			return usagef("--as %s: the site has no measurement %q", word, point)
		}
		im.as[name] = point
	}
	if err := im.read(f); err != nil {
		return err
	}
	if im.rows == 0 {
		return usagef("%s has no reading of a measurement of this site%s", im.file, strings.TrimSuffix(": "+im.leftOut(), ": "))
	}
	for _, p := range im.found() { // a call without readings is refused where the site keeps none
		if _, err := callOwner(ctx, s, owner.ImportMethod, owner.Import{Point: p.Point}); err != nil {
			return err
		}
	}
	if err := im.upload(ctx, s, f); err != nil {
		a.note("the import is not complete: repeat it, and what the site has already is left out")
		return err
	}
	return a.printImported(&im)
}

// upload reads a checked file once more, and sends its readings.
func (im *importer) upload(ctx context.Context, s *session, f io.ReadSeeker) error {
	progress, end := s.app.progress()
	defer end()
	total := im.rows
	im.rows = 0
	for _, p := range im.found() {
		*p = importedPoint{Point: p.Point, unit: p.unit}
	}
	im.send = func(p *importedPoint, readings []owner.PastReading) error {
		progress("%d %% imported", 100*im.rows/total)
		got, err := callOwner(ctx, s, owner.ImportMethod, owner.Import{Point: p.Point, Readings: readings})
		p.Imported += got.Imported
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return im.read(f)
}

func (a *app) printImported(im *importer) error {
	if a.json {
		return a.printJSON(map[string]any{"points": im.found()})
	}
	var rows [][]string
	for _, p := range im.found() {
		rows = append(rows, []string{p.Point, unit(p.unit), p.From.In(time.Local).Format(time.DateTime), p.To.In(time.Local).Format(time.DateTime), strconv.Itoa(p.Rows), strconv.Itoa(p.Imported)})
	}
	if left := im.leftOut(); left != "" {
		a.note("%s", left)
	}
	return table(a.out, []string{"POINT", "UNIT", "FROM", "TO", "READINGS", "IMPORTED"}, rows)
}

// importer reads a CSV file. It aggregates the readings of a minute. It sends those of whole UTC
// hours together, because a site refuses readings in an hour that it has.
type importer struct {
	file   string // its name
	as     map[string]string
	points map[string]*importedPoint
	send   func(p *importedPoint, readings []owner.PastReading) error // nil to check the file only

	rows     int // of measurements of the site
	noNumber int
	unknown  map[string]int // rows by the names that are no measurement of the site
}

// importedPoint is a point that the file has readings of.
type importedPoint struct {
	Point    string    `json:"point"`
	Rows     int       `json:"readings"`
	Imported int       `json:"imported"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	unit     string
	minutes  []owner.PastReading
}

// found returns the points that have rows, by name.
func (im *importer) found() (all []*importedPoint) {
	for _, name := range slices.Sorted(maps.Keys(im.points)) {
		if p := im.points[name]; p.Rows > 0 {
			all = append(all, p)
		}
	}
	return all
}

// leftOut tells which rows are left out, and "" where all are taken.
func (im *importer) leftOut() string {
	var all []string
	if im.noNumber > 0 {
		all = append(all, counted(im.noNumber, "row")+" without a number")
	}
	names := slices.Sorted(maps.Keys(im.unknown))
	for _, name := range names[:min(len(names), 5)] {
		all = append(all, fmt.Sprintf("%s of %q, which is no measurement of this site (--as %[2]s=POINT)", counted(im.unknown[name], "row"), name))
	}
	if more := len(names) - 5; more > 0 {
		all = append(all, "those of "+counted(more, "other name"))
	}
	if len(all) == 0 {
		return ""
	}
	return "left out: " + strings.Join(all, ", ")
}

// The names that the columns may have: this program's, and those of Home Assistant and InfluxDB.
var importColumns = map[string][]string{
	"time":  {"time", "last_changed", "_time", "timestamp"},
	"point": {"point", "entity_id"},
	"value": {"value", "mean", "state", "_value"},
	"min":   {"min"}, "max": {"max"}, "last": {"last"},
}

// read reads the file from its beginning.
func (im *importer) read(f io.Reader) error {
	im.noNumber, im.unknown = 0, make(map[string]int)
	b := bufio.NewReader(f)
	if mark, _ := b.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) { // of spreadsheets
		b.Discard(len(mark))
	}
	r := csv.NewReader(b)
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	head, err := r.Read()
	if errors.Is(err, io.EOF) {
		return usagef("%s is empty", im.file)
	}
	if err != nil {
		return im.unreadable(err)
	}
	columns := make(map[string]int)
	for what, names := range importColumns {
		columns[what] = -1
		for _, name := range slices.Backward(names) {
			if i := slices.IndexFunc(head, func(h string) bool { return strings.EqualFold(strings.TrimSpace(h), name) }); i >= 0 {
				columns[what] = i
			}
		}
	}
	for _, what := range []string{"time", "value"} {
		if columns[what] < 0 {
			return usagef("%s has no column %s: its first line names the columns, such as time,point,value", im.file, what)
		}
	}
	if columns["point"] < 0 && im.as[""] == "" {
		return usagef("%s has no column point: say with --as POINT of which point its rows are", im.file)
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return im.unreadable(err)
		}
		cell := func(what string) string {
			if i := columns[what]; i >= 0 && i < len(record) {
				return strings.TrimSpace(record[i])
			}
			return ""
		}
		p, x, err := im.row(cell)
		if err != nil {
			line, _ := r.FieldPos(0)
			return usagef("%s:%d: %w", im.file, line, err)
		}
		if p == nil {
			continue
		}
		if err := im.add(p, x); err != nil {
			return err
		}
	}
	for _, p := range im.found() {
		if err := im.flush(p); err != nil {
			return err
		}
	}
	return nil
}

func (im *importer) unreadable(err error) error { return usagef("%s cannot be read: %w", im.file, err) }

// row returns the reading of a row, whose missing cells are "". It returns a nil point for a row
// that is left out.
func (im *importer) row(cell func(string) string) (p *importedPoint, x owner.PastReading, err error) {
	name := cell("point")
	point := name
	if as, ok := im.as[name]; ok {
		point = as
	} else if as, ok := im.as[""]; ok {
		point = as
	}
	if p = im.points[point]; p == nil {
		if len(im.unknown) < 1000 || im.unknown[name] > 0 {
			im.unknown[strings.Clone(name)]++
		}
		return nil, x, nil
	}
	at, err := importTime(cell("time"))
	if err != nil {
		return nil, x, err
	}
	x.Time, x.Count = at, 1
	if x.Mean, err = strconv.ParseFloat(cell("value"), 64); err != nil || math.IsInf(x.Mean, 0) || math.IsNaN(x.Mean) {
		im.noNumber++
		return nil, x, nil
	}
	x.Min, x.Max, x.Last = x.Mean, x.Mean, x.Mean
	for what, to := range map[string]*float64{"min": &x.Min, "max": &x.Max, "last": &x.Last} {
		if text := cell(what); text != "" {
			if *to, err = strconv.ParseFloat(text, 64); err != nil {
				return nil, x, fmt.Errorf("%s is %q, which is no number", what, text)
			}
		}
	}
	switch {
	case at.Before(p.To):
		return nil, x, fmt.Errorf("%s comes after a later time of %s: sort the rows by time", cell("time"), point)
	case at.After(time.Now()):
		return nil, x, fmt.Errorf("%s is in the future", cell("time"))
	}
	if err := x.Summary().Check(); err != nil {
		return nil, x, err
	}
	if p.Rows == 0 {
		p.From = at
	}
	p.To = at
	p.Rows++
	im.rows++
	return p, x, nil
}

// importBatch is how many minutes are sent together, and those of an hour more.
const importBatch = 840

func (im *importer) add(p *importedPoint, x owner.PastReading) error {
	n := len(p.minutes)
	if n > 0 && p.minutes[n-1].Time.Unix()/60 == x.Time.Unix()/60 {
		b := &p.minutes[n-1]
		b.Count++
		b.Min, b.Max, b.Last = min(b.Min, x.Min), max(b.Max, x.Max), x.Last
		b.Mean += (x.Mean - b.Mean) / float64(b.Count)
		if err := b.Summary().Check(); err != nil {
			return usagef("%s: the minute of %s: %w", im.file, b.Time.Format(time.RFC3339), err)
		}
		return nil
	}
	if n >= importBatch && p.minutes[n-1].Time.Unix()/3600 != x.Time.Unix()/3600 {
		if err := im.flush(p); err != nil {
			return err
		}
	}
	p.minutes = append(p.minutes, x)
	return nil
}

// flush sends the collected readings of a point.
func (im *importer) flush(p *importedPoint) error {
	all := p.minutes
	p.minutes = p.minutes[:0]
	if im.send == nil || len(all) == 0 {
		return nil
	}
	return im.send(p, all)
}

// importTime parses a time in one of the forms that programs export.
func importTime(text string) (at time.Time, err error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < 1e11 {
		return time.UnixMilli(int64(n * 1000)), nil
	}
	if at, err = parseLocal(text, time.RFC3339, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04"); err == nil && at.Unix() >= 0 {
		return at, nil
	}
	return at, fmt.Errorf("%q is no time; write RFC 3339, such as 2026-01-31T18:00:00Z", text)
}
