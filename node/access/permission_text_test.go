package access

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/op"

	"pgregory.net/rapid"
)

func TestUnmatched(t *testing.T) {
	kinds := map[string]string{"climate/temperature": "measurement", "fan/speed": "level", "panel/line": "text", "beds": KindAgent}
	for text, want := range map[string][]string{
		"read climate":                             nil,
		"read *, set *, show *, capture *":         nil,
		"read climte":                              {"read climte"},
		"set fan/speed+panel/line+climate":         {"set climate", "set panel/line"},
		"show panel+fan, capture panel":            {"show fan", "capture panel"},
		"use water on fan+pump":                    {"use pump"},
		"ask beds+bed":                             {"ask bed"},
		"ask fan, read beds, ask *":                {"ask fan", "read beds"},
		"a permission cannot be written like this": nil,
	} {
		if got := Unmatched(text, kinds); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"read climate/*, set fan max 10m 10/h":      "",
		"set fan+vent/angle 20..80 max 90s confirm": "",
		"set  vent/angle+fan/*+fan   -30..30":       "set fan+vent/angle -30..30",
		"read *":                                    "",
		"stop":                                      "",
		"use water":                                 "",
		"use water on bed-1":                        "",
		"use b+a on *":                              "use a+b on *",
		"set fan 3/30m":                             "",
		"set fan 3/60m":                             "set fan 3/h",
		"set fan 3/1h":                              "set fan 3/h",
		"set fan max 3600s":                         "set fan max 1h",
		"set fan 1/10h":                             "",
		"set fan 10/15m":                            "",
		"read 10/h":                                 "", // a point of a device called 10
		"set max max 1m":                            "",
		"show door confirm":                         "",
		"capture door/picture":                      "",
		"ask *":                                     "",
		"ask shed/*+shed/tidy, ask *, ask hut/tidy": "ask shed+shed/tidy, ask *, ask hut/tidy",
		"ask beds 3/h confirm":                      "",
		"use ask_agent on beds+air":                 "ask air+beds",
	} {
		if want == "" {
			want = strings.ReplaceAll(text, "climate/*", "climate")
		}
		all, err := ParsePermissions(text)
		if err != nil || FormatPermissions(all) != want {
			t.Errorf("%q is %q (%v), want %q", text, FormatPermissions(all), err, want)
		}
	}
	for text, want := range map[string]string{
		"":                        "a part is empty",
		"read climate,":           "a part is empty",
		"raed climate":            `"raed"`,
		"read":                    "read needs points",
		"use":                     "use needs a tool",
		"use water on":            "use needs ",
		"use Water":               "is not a tool",
		"use wat-er":              "is not a tool",
		"read Climate":            "is not a point",
		"read climate/temp/x/y":   "is not a point",
		"ask":                     "ask needs names",
		"ask beds/one/two":        "is not an agent",
		"ask */one":               "is not an agent",
		"ask Beds":                "is not an agent",
		"ask beds max 1h":         "a part by itself",
		"ask beds 0..1":           "a part by itself",
		"use ask_agent":           "a part by itself",
		"use ask_agent+a on *":    "a part by itself",
		"ask *, ask beds":         "no effect",
		"ask shed, ask shed/tidy": "no effect",
		"read climate+":           "is not a point",
		"set fan pump":            "join several points with + without spaces",
		"stop now":                `"now"`,
		"set fan max":             `"max"`,
		"set fan max ten":         "is not a duration",
		"set fan max 400d":        "is not a duration",
		"set fan max 0s":          "is not a duration",
		"set fan 0/h":             "is not a rate",
		"set fan 1000/h":          "a rate has 1 to 250 calls",
		"set fan 10/hour":         "is not a duration",
		"set fan 80..20":          "is not a range",
		"set fan 20..":            "is not a number",
		"set fan nan..20":         "is not a number",
		"set fan 0..inf":          "is not a number",
		"read *, read climate":    "no effect",
		"read air, read air/x":    "no effect",
		"set *, set fan max 1m":   "no effect",
		manyParts(maxEntries + 1): "at most 32 parts",
	} {
		if _, err := ParsePermissions(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"read air/x, read air, read *, set air", manyParts(maxEntries)} { // from narrow to wide, and as many as a block has
		if _, err := ParsePermissions(text); err != nil {
			t.Error(err)
		}
	}
}

// manyParts writes n parts that do not overlap.
func manyParts(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = "read d" + strconv.Itoa(i)
	}
	return strings.Join(all, ", ")
}

// TestWordsAndBack: whatever can be granted can be said, and means the same again.
func TestWordsAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []Permission
		for range 1 + rapid.IntRange(0, 3).Draw(t, "") {
			p := drawPermission(fromRapid(t))
			if p.check() != nil {
				t.Fatalf("%+v: %v", p, p.check())
			}
			if !slices.ContainsFunc(all, func(before Permission) bool { return before.hides(p) }) {
				all = append(all, p)
			}
		}
		again, err := ParsePermissions(FormatPermissions(all))
		if err != nil || !reflect.DeepEqual(all, again) {
			t.Fatalf("%+v is %q is %+v (%v)", all, FormatPermissions(all), again, err)
		}
	})
}

func FuzzPermission(f *testing.F) {
	f.Add("ask beds+air 1/h confirm, read climate/*, set fan max 10m 10/h, use water on bed-1 -1..1 confirm, stop")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParsePermissions(text)
		if err != nil {
			return
		}
		again, err := ParsePermissions(FormatPermissions(all))
		if err != nil || !reflect.DeepEqual(all, again) {
			t.Fatalf("%q is %q: %v", text, FormatPermissions(all), err)
		}
	})
}

func TestDefaultLength(t *testing.T) {
	for text, days := range map[string]int{"read *": 90, "use list_points on *": 90, "read *, set fan": 7, "stop": 7, "ask *": 7} {
		if got := DefaultLength(words(t, text)); got != time.Duration(days)*24*time.Hour {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestUntil(t *testing.T) {
	zone := time.FixedZone("here", 2*3600)
	now := time.Date(2026, 3, 4, 15, 0, 0, 0, zone) // a Wednesday
	for text, want := range map[string]string{
		"never": "0001-01-01T00:00:00Z", "7d": "2026-03-11T15:00:00+02:00", "90s": "2026-03-04T15:01:30+02:00",
		"wed": "2026-03-05T00:00:00+02:00", "fri": "2026-03-07T00:00:00+02:00", "Tuesday": "2026-03-11T00:00:00+02:00",
		"today": "2026-03-05T00:00:00+02:00", "Tomorrow": "2026-03-06T00:00:00+02:00",
		"2026-12-24": "2026-12-25T00:00:00+02:00", "2026-12-24T18:00:00Z": "2026-12-24T18:00:00Z",
	} {
		if got, err := ParseUntil(text, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s is %s (%v), want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
	for text, want := range map[string]string{
		"": "is not an end", "fr": "is not an end", "friends": "is not an end", "soon": "is not an end", "24.12.2026": "is not an end",
		"2026-03-03": "is past", "2026-03-04T12:59:59Z": "is past",
	} {
		if _, err := ParseUntil(text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestEndSecond: a permission that ends within a second ends at the next whole one, and not before
// it began.
func TestEndSecond(t *testing.T) {
	for text, want := range map[string]int64{
		"1970-01-01T00:01:00Z": 60, "1970-01-01T00:01:00.000000001Z": 61, "1970-01-01T00:01:00.999Z": 61, "0001-01-01T00:00:00Z": 0,
	} {
		at, err := time.Parse(time.RFC3339Nano, text)
		if got := EndSecond(at); err != nil || got != want {
			t.Errorf("%s: %d, want %d (%v)", text, got, want, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		k, s := keys(2), shelf{}
		b := s.open(t, k[0].ID())
		wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
		now, _ := b.Now()
		time.Sleep(now.Truncate(time.Second).Add(time.Second + 100*time.Millisecond).Sub(now))
		token, err := b.AddToken("brief", grant(t, "read fan", k[1], k[0]).Bytes(), soon(b, time.Millisecond))
		wants(t, err, "")
		_, err = b.Bearer(token)
		wants(t, err, "")
		time.Sleep(900 * time.Millisecond)
		_, err = b.Bearer(token)
		wants(t, err, "has ended")
	})
}

// TestWordsOfTools: a word of a permission covers every tool, but explain_point, for which the permission to read
// the point is enough.
func TestWordsOfTools(t *testing.T) {
	for _, tool := range op.Tools {
		covered := slices.ContainsFunc(actions, func(a action) bool { return slices.Contains(a.tools, tool.Name) })
		if covered == (tool.Name == op.ExplainPoint.Name) {
			t.Errorf("%s is covered by a word: %v", tool.Name, covered)
		}
	}
}
