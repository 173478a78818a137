package expr

import (
	"math/rand/v2"
	"testing"
)

// TestNever: a condition is said to be never true, or to be true whenever another is, where one quantity
// makes that sure, and not where others count.
func TestNever(t *testing.T) {
	for text, want := range map[string]bool{
		"now > 22:00 and now < 6:00":                                             true,
		"door/open and now >= 22:00 and 6:00 > now":                              true,
		"now > 6:00 and now < 22:00":                                             false,
		"now > 22:00 or now < 6:00":                                              false,
		"now between 22:00..6:00 and now > 5:59":                                 false,
		"now between 22:00..6:00 and now between 6:00..22:00":                    true,
		"now > sunset and now < 6:00":                                            false,
		"weekday == sat and weekday == sun":                                      true,
		"weekday between fri..mon and weekday == sun":                            false,
		"climate/temperature < 5 Cel and climate/temperature > 7 Cel":            true,
		"climate/temperature <= 5 Cel and climate/temperature >= 5 Cel":          false,
		"climate/temperature < 5 Cel and far/climate/temperature > 7 Cel":        false,
		"climate/temperature < 5 Cel and mean(climate/temperature, 10m) > 7 Cel": false,
		"climate/temperature - 9 Cel > 0 Cel and climate/temperature < 5 Cel":    false,
		"door/position == open and door/position == closed":                      true,
		"door/position == open or door/position == closed":                       false,
		"door/position != open and door/position != closed":                      false,
		"door/open and not door/open":                                            true,
		"door/open == on and lamp/on == off":                                     false,
		"not known(door/open) and not known(lamp/on)":                            false,
		"age(door/open) < 5m and age(door/open) > 10m":                           true,
		"not (climate/temperature < 7 Cel or climate/temperature > 5 Cel)":       true,
		"later/point < 5 and later/point == open":                                false,
	} {
		if p := mustCompile(t, text); p.Never() != want {
			t.Errorf("%s: never is %t", text, !want)
		}
	}
	for _, c := range []struct {
		p, q string
		want bool
	}{
		{"climate/temperature < 5 Cel", "climate/temperature < 7 Cel", true},
		{"climate/temperature < 7 Cel", "climate/temperature < 5 Cel", false},
		{"climate/temperature < 5 Cel and door/open", "climate/temperature < 7 Cel", true},
		{"climate/temperature < 5 Cel", "climate/temperature < 7 Cel and door/open", false},
		{"climate/temperature < 5 Cel", "far/climate/temperature < 7 Cel", false},
	} {
		var uses Uses
		p, err := uses.Compile(c.p, lookup, planNames)
		q, err2 := uses.Compile(c.q, lookup, planNames)
		if err != nil || err2 != nil || p.Implies(q) != c.want {
			t.Errorf("%s and %s: %v, %v, want %t", c.p, c.q, err, err2, c.want)
		}
	}
}

// TestNeverIsSure: a condition that is never true is not true in any world.
func TestNeverIsSure(t *testing.T) {
	r := rand.New(rand.NewPCG(4, rand.Uint64()))
	g := &generator{Rand: r}
	never := 0
	for range rounds(t) {
		text, _ := g.condition()
		p, err := compile(text, lookup)
		if err != nil || !p.Never() {
			continue
		}
		never++
		for range 20 {
			w := randomWorld(r)
			if is, _ := p.Eval(w.of(p)); is == True {
				t.Fatalf("%s\nis true in %+v", text, w)
			}
		}
	}
	if never == 0 && !testing.Short() {
		t.Error("no condition was never true")
	}
}
