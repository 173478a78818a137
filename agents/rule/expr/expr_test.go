package expr

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"agentsite/device"
)

// refusals are mistakes. The wrong part is between ‹ and ›; fix is a part of the message.
var refusals = []struct{ text, fix string }{
	{`‹›`, "write such as"},
	{`door/open and‹›`, "ends too early"},
	{`climate/temperature < ‹5›`, "write 5 Cel"},
	{`‹-5› > climate/temperature`, "write -5 Cel"},
	{`climate/temperature < ‹5 °C›`, "write 5 Cel"},
	{`climate/temperature < ‹5°C›`, "write 5 Cel"},
	{`climate/temperature < ‹5 %›`, "same unit"},
	{`meter/total > ‹5 Cel›`, "write 5"},
	{`climate/temperature + ‹2› > 5 Cel`, "write 2 Cel"},
	{`climate/temperature > ‹bed-2/soil›`, "same unit"},
	{`climate/temperature > ‹meter/total›`, "same unit"},
	{`meter/total > ‹climate/temperature›`, "same unit"},
	{`climate/temperature between 5 Cel..‹10›`, "write 10 Cel"},
	{`climate/temperature between ‹10 Cel..5 Cel›`, "smaller first"},
	{`climate/temperature between 5 Cel ‹or› 7 Cel`, ".."},
	{`climate/temperature ‹*› bed-2/soil > 5`, "without a unit"},
	{`5 ‹/› climate/temperature > 5`, "divide by a number without a unit"},
	{`min(climate/temperature, ‹5›) > 5 Cel`, "write 5 Cel"},
	{`min(climate/temperature‹)› > 5 Cel`, "two or more"},
	{`climate/temperature < 7 Cel ‹<› 9 Cel`, "and b < c"},
	{`‹climate/temperature›`, "compare it"},
	{`‹now›`, "compare it"},
	{`door/open and ‹weekday›`, "compare it"},
	{`not ‹5›`, "compare it"},
	{`‹climate/temprature› < 5 Cel`, "did you mean climate/temperature"},
	{`‹bed-2/soil-5› < 5 %`, "write bed-2/soil - 5"},
	{`‹bed-2/soil/2› < 5 %`, "write bed-2/soil / 2"},
	{`‹a/b/c/d› < 5`, "site/device/point"},
	{`‹Bed-2/soil› < 5`, "bed-2"},
	{`‹aaaaaaaaaaaaaaaaaaaaaaaaa/b› < 5`, "at most 24"},
	{`‹temperature› < 5`, "climate/temperature"},
	{`‹now-20m› < 5`, "needs spaces"},
	{`‹foo› == bar`, "device/point"},
	{`door/position == ‹opne›`, "open"},
	{`door/position == ‹"ajar"›`, "half open"},
	{`door/position ‹<› open`, "=="},
	{`‹door/position› between open..closed`, "=="},
	{`door/open == ‹5›`, "such as on"},
	{`door/open == ‹open›`, "such as on"},
	{`door/open ‹>› off`, "=="},
	{`climate/temperature == ‹5m›`, "5 Cel"},
	{`climate/temperature == ‹5:00›`, "such as 5"},
	{`age(door/open) < ‹120›`, "10m"},
	{`age(door/open) < ‹2 h›`, "without a space"},
	{`age(door/open) ‹==› 2m`, ">="},
	{`now ‹is› 22:00`, "between"},
	{`now between ‹22:00..22:00›`, "later end"},
	{`now < ‹20m›`, "22:00"},
	{`now + ‹sunset› < 5:00`, "shifted"},
	{`sunset - ‹5› < 5:00`, "length of time"},
	{`weekday == ‹monday›`, "mon, tue"},
	{`weekday ‹>› fri`, "mon..fri"},
	{`weekday == ‹5›`, "sat"},
	{`month == ‹december›`, "dec"},
	{`month ‹>› oct`, "month between oct..apr"},
	{`date ‹>› dec 24`, "date between dec 24..jan 6"},
	{`date == ‹dec›`, "not known"},
	{`date == ‹feb 30›`, "dec 24"},
	{`date == ‹2026-02-29›`, "2026-12-24"},
	{`date == ‹12:00›`, "dec 24"},
	{`date between ‹dec 24..2027-01-06›`, "year"},
	{`date between ‹2027-01-06..2026-12-24›`, "smaller first"},
	{`month == ‹dec 24›`, "oct"},
	{`‹date›`, "compare it"},
	{`‹month› + 1 == feb`, "calculated"},
	{`not ‹holiday›`, "holidays: ["},
	{`later/point <‹›`, "ends too early"},
	{`later/point < ‹10m›`, "value of a point"},
	{`‹button/press›`, "age(button/press)"},
	{`known(‹button/press›)`, "age(button/press)"},
	{`‹screen/line› == "x"`, "known(screen/line)"},
	{`mean(‹button/press›, 10m) > 5`, "event"},
	{`count(‹door/position›, 10m) > 5`, "on or off"},
	{`mean(climate/temperature‹)› > 5 Cel`, "10m"},
	{`mean(climate/temperature, ‹5›) > 5 Cel`, "10m"},
	{`mean(climate/temperature, ‹25h›) > 5 Cel`, "24h"},
	{`mean(climate/temperature, ‹500ms›) > 5 Cel`, "1s"},
	{`mean(‹5›, 10m) > 5 Cel`, "address"},
	{`‹mena›(climate/temperature, 10m) > 5 Cel`, "mean"},
	{`abs(‹door/open›) > 5`, "calculated"},
	{`age(door/open‹,› 5m) > 5m`, "is missing here"},
	{`(door/open‹›`, ") is missing"},
	{`door/open‹)›`, "cannot stand here"},
	{`door/open ‹lamp/on›`, "missing before it"},
	{`door/open ‹=› on`, "write =="},
	{`month ‹in› oct..apr`, "between"},
	{`door/open ‹===› on`, "write =="},
	{`door/open ‹&&› lamp/on`, "write and"},
	{`door/open ‹&› lamp/on`, "write and"},
	{`door/open ‹||› lamp/on`, "write or"},
	{`‹!›door/open`, "write not"},
	{`door/open ‹<>› on`, "write !="},
	{`door/open ‹AND› lamp/on`, "small letters"},
	{`door/open ‹is not› on`, "write !="},
	{`door/open == ‹not› on`, "before a whole comparison"},
	{`door/position == ‹'›open'`, `write "`},
	{`door/position == ‹"›open`, "second"},
	{`door/position == ‹""›`, "nothing between"},
	{`meter/total > ‹.›5`, "0.5"},
	{`meter/total > ‹5.›`, "write 5"},
	{`meter/total > ‹1,5›`, "point"},
	{`‹-meter/total› < 5`, "0 -"},
	{`‹-›age(door/open) < 5m`, "0 -"},
	{`now > ‹25:00›`, "6:00"},
	{`now > ‹22:0›`, "6:00"},
	{`now > ‹24:00›`, "0:00"},
	{`now > ‹1:2:3›`, "6:00"},
	{`age(door/open) > ‹2401h›`, "2400h"},
	{`age(door/open) > ‹99999999999999999999h›`, "2400h"},
	{`meter/total > ‹1e999›`, "unit"},
	{`meter/total > ‹NaN›`, "not known"},
	{`meter/total > ‹Inf›`, "not known"},
	{`meter/total > ‹1` + strings.Repeat("0", 400) + `›`, "too large"},
	{`door/open ‹#› lamp/on`, "not used"},
	{"door/open ‹ѕ›ensor", "U+0455"},
	{"meter/total > ‹５›", "U+FF15"},
	{"meter/total ‹≤› 5", "write <="},
	{"door\u200b/open", "U+200B"},
	{"door/open\u00a0and lamp/on", "U+00A0"},
	{"door/open \x1b[31m", "U+001B"},
	{"door/open \x00", "U+0000"},
	{"door/open \xff\xfe", "0xFF"},
	{"door/open\u202e", "U+202E"},
	{strings.Repeat("(", 40) + "door/open", "nested deeper"},
	{strings.Repeat("not ", 40) + "door/open", "nested deeper"},
	{strings.Repeat("abs(", 40) + "meter/total", "nested deeper"},
	{"meter/total > 0" + strings.Repeat(" + 1", 200), "more than 128"},
	{strings.Repeat("door/open and ", 100_000) + "door/open", "1024"},
}

func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		before, rest, marked := strings.Cut(c.text, "‹")
		wrong, after, _ := strings.Cut(rest, "›")
		text := before + wrong + after
		p, err := compile(text, lookup)
		var e *Error
		if p != nil || !errors.As(err, &e) {
			t.Errorf("%.80s is accepted", text)
			continue
		}
		checkError(t, e)
		if !strings.Contains(e.Msg, c.fix) {
			t.Errorf("%s\nwants %q", e, c.fix)
		}
		if marked && (e.Offset != len(before) || e.Len != len(wrong)) {
			t.Errorf("%s\nis at %d, length %d; want %d, %d", e, e.Offset, e.Len, len(before), len(wrong))
		}
	}
}

// checkError requires what every error keeps.
func checkError(t testing.TB, e *Error) {
	t.Helper()
	if e.Msg == "" || len(e.Msg) > 700 || strings.ContainsFunc(e.Msg, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("the message is %q", e.Msg)
	}
	lines := strings.Split(e.Error(), "\n")
	if e.Offset < 0 || e.Len < 0 || e.Offset+e.Len > len(e.Text) || len(e.Text) > maxText {
		t.Fatalf("the place is %d, length %d, of %d", e.Offset, e.Len, len(e.Text))
	}
	if len(lines) != 3 && (len(lines) != 1 || e.Text != "") {
		t.Fatalf("%d lines: %q", len(lines), e.Error())
	}
	for _, line := range lines[1:] {
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || len([]rune(line)) > 160 {
			t.Errorf("the line is %q", line)
		}
	}
	if len(lines) == 3 && !strings.HasSuffix(lines[2], "^") {
		t.Errorf("the place is not marked: %q", lines[2])
	}
}

func TestCaret(t *testing.T) {
	_, err := compile(`climate/temperature < 5`, lookup)
	const want = "climate/temperature is in Cel: write 5 Cel\n  climate/temperature < 5\n                        ^"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	_, err = compile(strings.Repeat("door/open and ", 30)+"door/opne"+strings.Repeat(" and door/open", 30), lookup)
	lines := strings.Split(err.Error(), "\n")
	runes, mark := []rune(lines[1]), strings.Index(lines[2], "^")
	if got := string(runes[mark : mark+strings.Count(lines[2], "^")]); got != "door/opne" {
		t.Errorf("marked: %s\n%v", got, err)
	}
}

var (
	monday = time.Date(2026, 11, 23, 21, 30, 0, 0, time.UTC)
	known  = func(v device.Value, age time.Duration) sample { return sample{v, age, true} }
)

func TestEval(t *testing.T) {
	w := &world{t: monday, windows: map[string]float64{"mean bed-2/soil 10m0s": 30}, samples: map[string]sample{
		"climate/temperature": known(device.Number(4), 30*time.Second),
		"bed-2/soil":          {device.Number(20), 20 * time.Minute, false},
		"door/open":           known(device.Bool(true), time.Minute),
		"door/position":       known(device.Text("off"), time.Minute),
		"meter/total":         known(device.Number(0), time.Hour),
		"later/point":         known(device.Number(7), time.Second),
	}}
	for _, c := range []struct {
		text  string
		want  Truth
		next  time.Duration
		cause string
	}{
		{"climate/temperature < 5 Cel and age(climate/temperature) < 2m", True, 90 * time.Second, ""},
		{"age(climate/temperature) <= 2m", True, 90*time.Second + 1, ""},
		{"2m >= age(climate/temperature)", True, 90*time.Second + 1, ""},
		{"age(climate/temperature) > 10s", True, 0, ""},
		{"age(climate/temperature) between 10s..30s", True, minNext, ""},
		{"age(climate/temperature) + 1s < 2m", True, time.Second, ""},
		{"age(bed-2/soil) > 10m", True, 0, ""},
		{"age(lamp/on) > 10m", Unknown, 0, "lamp/on"},
		{"bed-2/soil < 50 %", Unknown, 0, "bed-2/soil"},
		{"known(bed-2/soil) or not known(lamp/on)", True, 0, ""},
		{"bed-2/soil < 50 % and climate/temperature > 5 Cel", False, 0, ""},
		{"bed-2/soil < 50 % or climate/temperature < 5 Cel", True, 0, ""},
		{"not (bed-2/soil < 50 % or lamp/on)", Unknown, 0, "bed-2/soil"},
		{"climate/temperature / meter/total > 5 Cel", Unknown, 0, "a division by zero"},
		{"mean(bed-2/soil, 10m) > 25 %", True, 10 * time.Second, ""},
		{"least(bed-2/soil, 10m) > 25 %", Unknown, 10 * time.Second, "bed-2/soil"},
		{"door/position is off and door/position == \"off\" and door/position != half", False, 0, ""},
		{"door/open", True, 0, ""},
		{"door/open != off", True, 0, ""},
		{"later/point > 5 Cel", Unknown, 0, "later/point"},
		{"later/point == open or later/point", Unknown, 0, "later/point"},
		{"later/point * 2 + mean(later/point, 10m) > 5 m", Unknown, 10 * time.Second, "later/point"},
		{"known(later/point)", True, 0, ""},
		{"now between 22:00..6:00", False, 30 * time.Minute, ""},
		{"now between 21:30..6:00", True, 150 * time.Minute, ""},
		{"now >= 21:30", True, 150 * time.Minute, ""},
		{"21:45 > now", True, 15 * time.Minute, ""},
		{"now > 21:30", False, minNext, ""},
		{"now > sunset - 20m", True, 150 * time.Minute, ""},
		{"now > sunset + 5h", False, 150 * time.Minute, ""}, // 19:46:11 + 5 h is tomorrow
		{"now between 21:00..sunset + 5h", True, 150 * time.Minute, ""},
		{"sunset > 19:00", True, 150 * time.Minute, ""},
		{"now - 10m > 21:00", True, time.Second, ""},
		{"weekday == mon and weekday between fri..mon and not weekday between tue..sun", True, 150 * time.Minute, ""},
	} {
		text := strings.Replace(c.text, "!= half", "!= off", 1)
		p := mustCompile(t, text)
		if got, next := p.Eval(w.of(p)); got != c.want || next != c.next {
			t.Errorf("%s is %v, next %v; want %v, %v", text, got, next, c.want, c.next)
		}
		if cause := p.Cause(w.of(p)); cause != c.cause {
			t.Errorf("%s: the cause is %q, want %q", text, cause, c.cause)
		}
	}
	for text, want := range map[string]string{"now > 5:00": "the time of day", "weekday is mon": "the time of day", "sunset > 5:00": "the time of day"} {
		p := mustCompile(t, text)
		if got, next := p.Eval((&world{}).of(p)); got != Unknown || next != time.Minute || p.Cause((&world{}).of(p)) != want {
			t.Errorf("%s is %v, next %v, because of %q", text, got, next, p.Cause((&world{}).of(p)))
		}
	}
	p, polar := mustCompile(t, "sunset > 5:00"), &world{t: monday, noSun: true}
	if cause := p.Cause(polar.of(p)); cause != "sunset" {
		t.Errorf("the cause is %q", cause)
	}
}

func TestProgram(t *testing.T) {
	const text = "mean(bed-2/soil, 10m) < 5 % and count(button/press, 1m) > 0 or mean(bed-2/soil, 600s) > lamp/level and now > sunset"
	p := mustCompile(t, text)
	if got := fmt.Sprint(p.Points(), p.Windows(), p.UsesClock(), p.UsesSun(), p.String() == text); got != "[bed-2/soil button/press lamp/level] [{0 mean 10m0s} {1 count 1m0s}] true true true" {
		t.Error(got)
	}
	p = mustCompile(t, "door/open\n\tand lamp/on")
	if p.UsesClock() || p.UsesSun() || len(p.Windows()) != 0 {
		t.Error("it uses more than it says")
	}
}

const complicated = `climate/temperature < 5 Cel and age(climate/temperature) < 2m and not (door/position == open or bed-2/soil between 10 % .. 20 %)
	and (now between sunset - 20m..6:00 or weekday between sat..sun) and max(mean(bed-2/soil, 10m), lamp/level * 2) >= abs(change(lamp/level, 24h)) + 1 %`

func complicatedWorld() *world {
	return &world{t: monday.In(zones[0]), windows: map[string]float64{"mean bed-2/soil 10m0s": 30, "change lamp/level 24h0m0s": 1}, samples: map[string]sample{
		"climate/temperature": known(device.Number(4), time.Second), "door/position": known(device.Text("closed"), 0),
		"bed-2/soil": known(device.Number(30), 0), "lamp/level": known(device.Number(30), 0)}}
}

// fixed is an Env that costs nothing.
type fixed struct{ t, rise, set time.Time }

func (f *fixed) Reading(i int) (device.Value, time.Duration, bool) {
	if i == 1 {
		return device.Text("closed"), 0, true
	}
	return device.Number(4), time.Second, true
}
func (f *fixed) Window(int) (float64, bool)        { return 30, true }
func (f *fixed) Clock() (time.Time, bool)          { return f.t, true }
func (f *fixed) Sun() (time.Time, time.Time, bool) { return f.rise, f.set, true }

func newFixed() *fixed {
	t := monday.In(zones[0])
	return &fixed{t, t.Add(-12 * time.Hour), t.Add(-3 * time.Hour)}
}

func TestEvalAllocatesNothing(t *testing.T) {
	p := mustCompile(t, complicated)
	if got, next := p.Eval(complicatedWorld().of(p)); got != True {
		t.Fatalf("it is %v, next %v", got, next)
	}
	e := newFixed()
	if n := testing.AllocsPerRun(100, func() { p.Eval(e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEval(b *testing.B) {
	for name, text := range map[string]string{"simple": "climate/temperature < 5 Cel and age(climate/temperature) < 2m", "complicated": complicated} {
		p, e := mustCompile(b, text), newFixed()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Eval(e)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := compile(complicated, lookup); err != nil {
			b.Fatal(err)
		}
	}
}
