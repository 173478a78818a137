package chart

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write testdata anew")

// zone has a change of its clock in the night to 25 October 2026, as in Berlin.
func zone(t *testing.T) *time.Location {
	t.Helper()
	z, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("the system has no time zones")
	}
	return z
}

// series returns steps of a length since from, each from the value at a part of the time, with
// a band. NaN is a gap.
func series(name, unit string, from time.Time, length time.Duration, steps int, band float64, value func(part float64) float64) Series {
	s := Series{Name: name, Unit: unit, Length: length, Summary: []string{"min 1", "mean 2", "max 3", "last 2.5"}}
	for i := range steps {
		if v := value(float64(i) / float64(steps)); !math.IsNaN(v) {
			s.Steps = append(s.Steps, Step{from.Add(time.Duration(i) * length), v - band, v, v + band})
		}
	}
	return s
}

func TestDraw(t *testing.T) {
	from := time.Date(2026, 11, 21, 17, 43, 0, 0, zone(t))
	sine := func(low, high float64) func(float64) float64 {
		return func(part float64) float64 { return low + (high-low)*(1+math.Sin(part*4*math.Pi))/2 }
	}
	gap := func(part float64) float64 {
		if part > 0.4 && part < 0.6 || part > 0.8 && part < 0.81 {
			return math.NaN()
		}
		return 40 + 30*part
	}
	step := func(part float64) float64 { return math.Round(part) * 5 }
	day := func(name, unit string, band float64, value func(float64) float64) Series {
		return series(name, unit, from, 5*time.Minute, 288, band, value)
	}
	for _, tt := range []struct {
		name   string
		length time.Duration
		height int
		ascii  bool
		all    []Series
	}{
		{"sine", 24 * time.Hour, 10, false, []Series{day("greenhouse/temperature", "°C", 0.8, sine(18.2, 23.9))}},
		{"ascii", 24 * time.Hour, 10, true, []Series{day("greenhouse/temperature", "°C", 0.8, sine(18.2, 23.9))}},
		{"several", 24 * time.Hour, 6, false, []Series{
			day("a/step", "V", 0.1, step), day("b/gap", "%", 1.5, gap), {Name: "c/none", Unit: "lx"}, day("d/flat", "°C", 0, func(float64) float64 { return 21.5 }),
		}},
		{"negative", 24 * time.Hour, 8, false, []Series{day("a/below", "°C", 0.2, sine(-18, -3)), day("b/through", "A", 0, sine(-0.04, 0.04))}},
		{"magnitudes", 24 * time.Hour, 6, false, []Series{
			day("a/huge", "1", 0, sine(-4e300, 6e300)), day("b/tiny", "1", 1e-9, sine(2e-8, 9e-8)), day("c/pressure", "Pa", 3, sine(101200, 101350)),
			day("d/offset", "1", 0, sine(1e9, 1e9+4000)), day("e/smallest", "1", 0, func(float64) float64 { return math.SmallestNonzeroFloat64 }),
		}},
		{"states", 24 * time.Hour, 6, false, []Series{
			{Name: "greenhouse/heater", Summary: []string{"on 5 h 12 min", "3 times"}, Spans: []Span{
				{from.Add(-time.Hour), from.Add(3 * time.Hour), "on", true}, {from.Add(3 * time.Hour), from.Add(7 * time.Hour), "on", false},
				{from.Add(7 * time.Hour), from.Add(9 * time.Hour), "on", true}, {from.Add(9 * time.Hour), from.Add(9*time.Hour + 5*time.Minute), "on", false},
				{from.Add(9*time.Hour + 5*time.Minute), from.Add(20 * time.Hour), "on", true}, {from.Add(22 * time.Hour), from.Add(48 * time.Hour), "on", false},
			}},
			{Name: "valve/position", Spans: []Span{
				{from, from.Add(6 * time.Hour), "shut", false}, {from.Add(6 * time.Hour), from.Add(7 * time.Hour), "moving", false}, {from.Add(7 * time.Hour), from.Add(24 * time.Hour), "wide open for ever", false},
			}},
			{Name: "door/bell", Spans: []Span{{from.Add(2 * time.Hour), from.Add(2 * time.Hour), "rings", false}, {from.Add(23 * time.Hour), from.Add(23 * time.Hour), "rings", false}}},
			day("d/flat", "°C", 0, func(float64) float64 { return 21.5 }),
		}},
		{"one", 24 * time.Hour, 8, false, []Series{series("a/one", "°C", from.Add(18*time.Hour), 5*time.Minute, 1, 0, func(float64) float64 { return 21 })}},
		{"coarse", 3 * time.Minute, 8, false, []Series{series("a/start", "°C", from, time.Minute, 3, 0.2, func(part float64) float64 { return 20 + 3*part })}},
		{"week", 7 * 24 * time.Hour, 8, false, []Series{series("a/week", "°C", from, time.Hour, 168, 1, sine(-5, 20))}},
		{"year", 365 * 24 * time.Hour, 8, false, []Series{series("a/year", "°C", from, 24*time.Hour, 365, 4, sine(-5, 20))}},
	} {
		for _, width := range []int{80, 120} {
			lines := Draw(tt.all, Options{From: from, To: from.Add(tt.length), Width: width, Height: tt.height, ASCII: tt.ascii})
			got := strings.Join(lines, "\n") + "\n"
			file := filepath.Join("testdata", fmt.Sprintf("%s.%d", tt.name, width))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s (-update writes it anew): got\n%s\nwant\n%s", file, got, want)
			}
		}
	}
}

// TestTimeAxis draws the night in which clocks go back, and ranges without a round time to label.
func TestTimeAxis(t *testing.T) {
	z := zone(t)
	at := time.Date(2026, 10, 25, 0, 0, 0, 0, z)
	for _, tt := range []struct {
		from   time.Time
		length time.Duration
		plot   int
		want   string
	}{
		{at, 6 * time.Hour, 60, "00:00   01:00               02:00     03:00     04:00"},
		{at.Add(10 * time.Second), 20 * time.Second, 60, "00:00:10   00:00:15       00:00:20       00:00:25"},
		{at.Add(time.Minute), 100 * 365 * 24 * time.Hour, 30, "    2050           2100"},
		{at.Add(time.Minute), 1 << 62, 30, "  2050       2100      2150"},
		{at.Add(30 * time.Second), 0, 30, "00:00:30"},
	} {
		if axis, got := timeAxis(tt.from, tt.from.Add(tt.length), tt.plot); strings.TrimRight(got, " ") != tt.want || width(axis) != tt.plot {
			t.Errorf("%v: %q, want %q", tt.length, got, tt.want)
		}
	}
}

// TestWidth: whatever the series and the width, no line is wider than it may be.
func TestWidth(t *testing.T) {
	z := zone(t)
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-100, 100), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 1e-300, 21.5}))
		seconds := rapid.OneOf(rapid.Int64Range(-10, 100_000), rapid.Int64Range(-1e9, 1e9))
		length := func(label string) time.Duration {
			return time.Duration(seconds.Draw(t, label)) * time.Second
		}
		from := time.Unix(rapid.Int64Range(-1e9, 1e10).Draw(t, "from"), 0).In(z)
		o := Options{From: from, To: from.Add(length("span")), Width: rapid.IntRange(-10, 300).Draw(t, "width"), Height: rapid.IntRange(-10, 100).Draw(t, "height"), ASCII: rapid.Bool().Draw(t, "ascii")}
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Series {
			step := rapid.Custom(func(t *rapid.T) Step {
				v := number.Draw(t, "v")
				if rapid.Bool().Draw(t, "flat") {
					return Step{from.Add(length("at")), v, v, v}
				}
				return Step{from.Add(length("at")), number.Draw(t, "min"), v, number.Draw(t, "max")}
			})
			var spans []Span
			if rapid.Bool().Draw(t, "spans") {
				spans = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Span {
					return Span{from.Add(length("from")), from.Add(length("to")), rapid.String().Draw(t, "row"), rapid.Bool().Draw(t, "off")}
				}), 0, 20).Draw(t, "of")
			}
			return Series{Spans: spans, Name: rapid.String().Draw(t, "name"), Unit: rapid.String().Draw(t, "unit"), Length: length("length"),
				Steps: rapid.SliceOfN(step, 0, 50).Draw(t, "steps"), Summary: rapid.SliceOfN(rapid.String(), 0, 5).Draw(t, "summary")}
		}), 0, 4).Draw(t, "all")
		limit := min(max(o.Width, MinWidth), MaxWidth)
		for _, line := range Draw(all, o) {
			if n := width(line); n > limit {
				t.Fatalf("%d wide, where %d fit: %q", n, limit, line)
			}
			if o.ASCII && strings.ContainsFunc(line, func(r rune) bool { return r > 127 }) {
				t.Fatalf("not ASCII: %q", line)
			}
		}
	})
}
