package main

import (
	"cmp"
	"context"
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
	"agentsite/device/ucum"
	"agentsite/node/acts"

	"github.com/spf13/cobra"
)

func (a *app) historyImportCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use: "import FILE", Args: exactly("FILE"),
		Short: "Import past readings from a CSV file",
		Long: `Import past readings of measurements from a CSV file: one of "history --step 1m --csv", one that
Home Assistant or InfluxDB exported, or any whose first line names the columns time, point and
value. With columns min, max and last, a row is a summary. Times are RFC 3339, a date and a time
here or in --zone, or seconds, milliseconds, microseconds or nanoseconds since 1970; the values
of a point are in the order of time and in the site's unit. The hour that a clock has twice at
the end of summer time is read in the order of the rows.

The whole file is checked before anything is imported; --dry-run does no more than that. Hours
of which the site has readings stay as they are, so that an import that was interrupted can be
repeated. Rows without a number, or with one outside the point's range, and those of anything
but the site's measurements, are left out and counted. The site keeps minutes, and only hours
from the time when it keeps no minutes any more.`,
		Example: "  agentsite history import greenhouse.csv\n  agentsite history import past.csv --as sensor.out=outside/temperature",
		RunE: a.asOwner(func(ctx context.Context, s *session, args []string) error {
			return a.importHistory(ctx, s, args[0], o)
		}),
		ValidArgsFunction: oneFile,
	}
	cmd.Flags().StringArrayVar(&o.as, "as", nil,
		"NAME=POINT: the rows of NAME are readings of POINT; POINT alone: all rows are; may be repeated")
	cmd.Flags().Var(&o.zone, "zone", "the zone of times without one, such as Europe/Berlin or +01:00; this machine's without it")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "say what would be imported, and import nothing")
	return cmd
}

// zoneName returns the name of the zone of times without one.
func (im *importer) zoneName() string {
	if im.zone == time.Local {
		return "this machine's zone"
	}
	return im.zone.String()
}

// importOptions are the flags of the command.
type importOptions struct {
	as   []string
	zone zoneFlag
	dry  bool
}

func (a *app) importHistory(ctx context.Context, s *session, file string, o importOptions) error {
	f, err := os.Open(file)
	if err != nil {
		return usagef("%v", err)
	}
	defer f.Close()
	list, err := s.listPoints(ctx)
	if err != nil {
		return err
	}
	im := newImporter(file, list, cmp.Or(o.zone.Location, time.Local))
	for _, word := range o.as {
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
		if _, err := callOwner(ctx, s, acts.ImportAct, acts.Import{Point: p.Point, Dry: o.dry}); err != nil {
			return err
		}
	}
	if err := im.upload(ctx, s, f, o.dry); err != nil {
		if !o.dry {
			a.note("the import is not complete: repeat it, and what the site has already is left out")
		}
		return err
	}
	return a.printImported(im, o.dry)
}

// newImporter returns the importer of a file for the measurements among points.
func newImporter(file string, points []point, zone *time.Location) *importer {
	im := &importer{
		file: filepath.Base(file), as: make(map[string]string), points: make(map[string]*importedPoint), zone: zone,
	}
	for _, p := range points {
		if p.Kind == device.KindMeasurement {
			of := &importedPoint{Point: p.Point, unit: p.Unit, min: math.Inf(-1), max: math.Inf(1)}
			if p.Min != nil && p.Max != nil {
				of.min, of.max = *p.Min, *p.Max
			}
			im.points[p.Point] = of
		}
	}
	return im
}

// upload reads a checked file once more, and sends its readings.
func (im *importer) upload(ctx context.Context, s *session, f io.ReadSeeker, dry bool) error {
	show, end := s.app.progress()
	defer end()
	total := im.rows
	im.send = func(p *importedPoint, readings []acts.PastReading) error {
		show("%d %% imported", 100*im.rows/total)
		got, err := callOwner(ctx, s, acts.ImportAct, acts.Import{Point: p.Point, Readings: readings, Dry: dry})
		p.Imported += got.Imported
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return im.read(f)
}

func (a *app) printImported(im *importer, dry bool) error {
	var rows [][]string
	twice, there := 0, 0
	for _, p := range im.found() {
		twice, there = twice+p.twice, there+p.Rows-p.Imported
		rows = append(rows, []string{p.Point, ucum.Symbol(p.unit), p.From.In(time.Local).Format(time.DateTime),
			p.To.In(time.Local).Format(time.DateTime), strconv.Itoa(p.Rows), strconv.Itoa(p.Imported)})
	}
	if im.unit != "" {
		a.note("times that are numbers were read as %s since 1970", im.unit)
	}
	if twice > 0 {
		a.note("%s in an hour that the clock had twice (%s): read in the order of the file", counted(twice, "row"), im.zoneName())
	}
	if there > 0 {
		a.note("%s not imported: the site has readings in the same hour, which stay", counted(there, "reading"))
	}
	if left := im.leftOut(); left != "" {
		a.note("%s", left)
	}
	if a.json {
		return a.printJSON(struct {
			Points []*importedPoint `json:"points"`
			Left   []*leftOut       `json:"left_out,omitzero"`
			Dry    bool             `json:"dry_run,omitzero"`
		}{im.found(), im.left, dry})
	}
	last := "IMPORTED"
	if dry {
		last = "WOULD BE IMPORTED"
	}
	return table(a.out, []string{"POINT", "UNIT", "FROM", "TO", "READINGS", last}, rows)
}

// importer reads a CSV file. It aggregates the readings of a minute. It sends those of whole UTC
// hours together, because a site refuses readings in an hour that it has.
type importer struct {
	file   string // its name
	as     map[string]string
	points map[string]*importedPoint
	zone   *time.Location                                            // of times without one
	send   func(p *importedPoint, readings []acts.PastReading) error // nil to check the file only

	rows    int // of measurements of the site
	line    int
	left    []*leftOut     // by reason
	unknown map[string]int // rows by the names that are no measurement of the site
	unit    string         // in which numbers count the time; "" for none
	comma   rune           // between columns
	decimal byte           // of the numbers so far; 0 for none
}

// importedPoint is a point that the file has readings of.
type importedPoint struct {
	Point string `json:"point"`
	progress
	unit     string
	min, max float64
}

// progress is how far the rows of a point were read.
type progress struct {
	Rows     int           `json:"readings"`
	Imported int           `json:"imported"`
	From     time.Time     `json:"from"`
	To       time.Time     `json:"to"`
	step     time.Duration // between the last two times that differ
	repeats  bool          // two rows had the same time before that
	twice    int           // rows in hours that the clock had twice
	minutes  []acts.PastReading
}

// leftOut are rows that are left out for one reason.
type leftOut struct {
	Why      string   `json:"why"`
	Rows     int      `json:"rows"`
	Examples []string `json:"examples"`
}

// maxExamples bounds the examples of a reason.
const maxExamples = 3

// leave counts a row that is left out.
func (im *importer) leave(value, format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	i := slices.IndexFunc(im.left, func(l *leftOut) bool { return l.Why == why })
	if i < 0 {
		i = len(im.left)
		im.left = append(im.left, &leftOut{Why: why})
	}
	l := im.left[i]
	if l.Rows++; len(l.Examples) < maxExamples {
		l.Examples = append(l.Examples, fmt.Sprintf("line %d: %.40q", im.line, value))
	}
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
	var all, examples []string
	for _, l := range im.left {
		all, examples = append(all, counted(l.Rows, "row")+" "+l.Why), append(examples, l.Examples...)
	}
	names := slices.Sorted(maps.Keys(im.unknown))
	for _, name := range names[:min(len(names), 5)] {
		all = append(all, fmt.Sprintf("%s of %.60q, which is no measurement of this site (--as %.60[2]s=POINT)",
			counted(im.unknown[name], "row"), name))
	}
	if more := len(names) - 5; more > 0 {
		all = append(all, "those of "+counted(more, "other name"))
	}
	if len(all) == 0 {
		return ""
	}
	text := "left out: " + strings.Join(all, ", ")
	if len(examples) > 0 {
		text += "; such as " + strings.Join(examples, ", ")
	}
	return text
}

// row returns the reading of a row. It returns a nil point for a row that is left out.
func (im *importer) row(c cells) (p *importedPoint, x acts.PastReading, err error) {
	name := c.name()
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
	x.Count = 1
	if x.Mean, err = im.number(c.of("value")); errors.Is(err, errNoNumber) || math.IsInf(x.Mean, 0) || math.IsNaN(x.Mean) {
		im.leave(c.of("value"), "without a number")
		return nil, x, nil
	} else if err != nil {
		return nil, x, err
	}
	x.Min, x.Max, x.Last = x.Mean, x.Mean, x.Mean
	for what, to := range map[string]*float64{"min": &x.Min, "max": &x.Max, "last": &x.Last} {
		if text := c.of(what); text != "" {
			if *to, err = im.number(text); errors.Is(err, errNoNumber) {
				return nil, x, fmt.Errorf("%s is %.60q, which is no number", what, text)
			} else if err != nil {
				return nil, x, err
			}
		}
	}
	for _, n := range []float64{x.Mean, x.Min, x.Max, x.Last} { // live readings outside are faults
		if n < p.min || n > p.max {
			im.leave(c.of("value"), "outside %v..%v %s of %s", p.min, p.max, ucum.Symbol(p.unit), point)
			return nil, x, nil
		}
	}
	at, err := im.parseTime(c.time())
	if err != nil {
		return nil, x, err
	}
	if x.Time, err = p.choose(c.time(), at); err != nil {
		return nil, x, err
	}
	if x.Time.After(time.Now()) {
		return nil, x, fmt.Errorf("%.60s is in the future", c.time())
	}
	if err := x.Summary().Check(); err != nil {
		return nil, x, err
	}
	p.took(x.Time)
	im.rows++
	return p, x, nil
}

// took counts a row of the point.
func (p *progress) took(at time.Time) {
	if p.Rows == 0 {
		p.From = at
	} else if d := at.Sub(p.To); d > 0 {
		p.step = d
	} else {
		p.repeats = true
	}
	p.To = at
	p.Rows++
}

// importBatch is how many minutes are sent together, and those of an hour more.
const importBatch = 840

func (im *importer) add(p *importedPoint, x acts.PastReading) error {
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
