package expr

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
)

// The reference: expressions are generated as text together with a function that says what
// they are in a world. nil is unknown.
type (
	number  = func(*world) *float64
	boolean = func(*world) *bool
)

func randomNumber(r *rand.Rand) float64 {
	switch r.IntN(40) {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1 - 2*r.IntN(2))
	case 2:
		return 1e300
	}
	return float64(r.IntN(13)-4) / float64(1+r.IntN(2))
}

type generator struct {
	*rand.Rand
	left int // how much more may be generated
}

func (g *generator) pick(words ...string) string { return words[g.IntN(len(words))] }

// chain generates operands that words join, and folds what they mean.
func chain[T any](g *generator, most int, sub func() (string, T), words []string, fold func(word string, a, b T) T) (string, T) {
	text, mean := sub()
	for range g.IntN(most) {
		if g.left--; g.left < 0 {
			break
		}
		word := words[g.IntN(len(words))]
		more, b := sub()
		text, mean = text+" "+word+" "+more, fold(word, mean, b)
	}
	return text, mean
}

func (g *generator) or() (string, boolean) {
	return chain(g, 3, g.and, []string{"or"}, func(_ string, a, b boolean) boolean {
		return func(w *world) *bool {
			x, y := a(w), b(w)
			switch {
			case x != nil && *x:
				return x
			case y != nil && *y:
				return y
			case x == nil || y == nil:
				return nil
			}
			return new(bool)
		}
	})
}

func negate(a boolean) boolean {
	return func(w *world) *bool {
		x := a(w)
		if x == nil {
			return nil
		}
		no := !*x
		return &no
	}
}

// and is off where one operand is off, and unknown where the other is.
func (g *generator) and() (string, boolean) {
	return chain(g, 3, g.not, []string{"and"}, func(_ string, a, b boolean) boolean {
		return func(w *world) *bool {
			for _, x := range []*bool{a(w), b(w)} {
				if x != nil && !*x {
					return x
				}
			}
			if a(w) == nil {
				return nil
			}
			return b(w)
		}
	})
}

func (g *generator) not() (string, boolean) {
	if g.left--; g.left > 0 && g.IntN(5) == 0 {
		text, mean := g.not()
		return "not " + text, negate(mean)
	}
	return g.comparison()
}

func (g *generator) flag(address string) (string, boolean) {
	return address, func(w *world) *bool {
		s := w.sample(address)
		if b, ok := s.value.Any().(bool); ok && s.known {
			return &b
		}
		return nil
	}
}

var relationFuncs = map[string]func(a, b float64) bool{
	"<": func(a, b float64) bool { return a < b }, "<=": func(a, b float64) bool { return a <= b },
	">": func(a, b float64) bool { return a > b }, ">=": func(a, b float64) bool { return a >= b },
	"==": func(a, b float64) bool { return a == b }, "is": func(a, b float64) bool { return a == b }, "!=": func(a, b float64) bool { return a != b },
}

// ordered joins three numbers: b and c may be the same.
func ordered(a, b, c number, holds func(a, b, c float64) bool) boolean {
	return func(w *world) *bool {
		x, y, z := a(w), b(w), c(w)
		if x == nil || y == nil || z == nil {
			return nil
		}
		is := holds(*x, *y, *z)
		return &is
	}
}

func (g *generator) compared(of func() (string, number), relations ...string) (string, boolean) {
	a, x := of()
	relation := g.pick(relations...)
	b, y := of()
	return a + " " + relation + " " + b, ordered(x, y, y, func(p, q, _ float64) bool { return relationFuncs[relation](p, q) })
}

func (g *generator) comparison() (string, boolean) {
	unit := g.pick("Cel", "%", "")
	numbers := func() (string, number) { return g.sum(unit) }
	switch kind := g.IntN(14); {
	case g.left <= 0 || kind == 0:
		return g.flag(g.pick("door/open", "lamp/on"))
	case kind == 1:
		text, mean := g.or()
		return "(" + text + ")", mean
	case kind == 2:
		return g.text()
	case kind == 3:
		address := g.pick("climate/temperature", "door/open", "screen/line")
		return "known(" + address + ")", func(w *world) *bool { is := w.sample(address).known; return &is }
	case kind == 4:
		return g.weekday()
	case kind == 5: // ages, with constants mostly
		if g.IntN(2) == 0 {
			return g.compared(g.lengthSum, "<", "<=", ">", ">=")
		}
		a, x := g.age()
		b, y := g.length()
		if relation := g.pick("<", "<=", ">", ">="); g.IntN(2) == 0 {
			return a + relation + b, ordered(x, y, y, func(p, q, _ float64) bool { return relationFuncs[relation](p, q) })
		}
		c, z := g.length()
		if y0, z0 := *y(nil), *z(nil); y0 > z0 {
			b, c, y, z = c, b, z, y
		}
		return a + " between " + b + ".." + c, ordered(x, y, z, func(p, q, r float64) bool { return q <= p && p <= r })
	case kind == 6:
		return g.compared(g.clock, "<", "<=", ">", ">=")
	case kind == 7:
		a, x := g.clock()
		b, y := g.clock()
		c, z := g.clock()
		if b == c {
			return g.flag("door/open")
		}
		return a + " between " + b + g.pick("..", " and ") + c, ordered(x, y, z, func(p, q, r float64) bool {
			return math.Mod(p-q+dayLength, dayLength) < math.Mod(r-q+dayLength, dayLength)
		})
	case kind == 8:
		a, x := numbers()
		b, y := g.literal(unit)
		c, z := g.literal(unit)
		if *y(nil) > *z(nil) {
			b, c, y, z = c, b, z, y
		}
		if g.IntN(2) == 0 {
			b, y = numbers()
			b = "(" + b + ")"
		}
		return a + " between " + b + g.pick("..", " and ") + c, ordered(x, y, z, func(p, q, r float64) bool { return q <= p && p <= r })
	}
	return g.compared(numbers, "<", "<=", ">", ">=", "==", "!=", "is")
}

const dayLength = 24 * 3600e9

func (g *generator) text() (string, boolean) {
	relation := g.pick("==", "is", "!=")
	word := g.pick("open", "closed", `"closed"`, "off", `"half open"`)
	a, b := "door/position", word
	if g.IntN(4) == 0 {
		a, b = b, a
	}
	return a + " " + relation + " " + b, func(w *world) *bool {
		s := w.sample("door/position")
		text, ok := s.value.Any().(string)
		if !ok || !s.known {
			return nil
		}
		is := (text == strings.Trim(word, `"`)) == (relation != "!=")
		return &is
	}
}

func (g *generator) weekday() (string, boolean) {
	names := []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} // as time.Weekday counts
	from, length := g.IntN(7), g.IntN(7)
	text := "weekday between " + names[from] + ".." + names[(from+length)%7]
	if length == 0 {
		text = "weekday " + g.pick("is ", "== ") + names[from]
	}
	return text, func(w *world) *bool {
		t, known := w.clock()
		if !known {
			return nil
		}
		is := (int(t.Weekday())-from+7)%7 <= length
		return &is
	}
}

func constant(n float64) number { return func(*world) *float64 { return &n } }

// literal is a number with a unit, somehow written.
func (g *generator) literal(unit string) (string, number) {
	n := float64(g.IntN(13)-4) / float64(1+g.IntN(2))
	text := strconv.FormatFloat(n, 'f', -1, 64)
	if unit != "" {
		text += g.pick(" ", "", "  ") + unit
	}
	return text, constant(n)
}

func (g *generator) length() (string, number) {
	n := time.Duration(1+g.IntN(900)) * time.Second
	return device.FormatDuration(n), constant(float64(n))
}

func (g *generator) age() (string, number) {
	address := g.pick("climate/temperature", "button/press", "door/open", "screen/line")
	return "age(" + address + ")", func(w *world) *float64 {
		n := float64(w.sample(address).age)
		if n < 0 {
			return nil
		}
		return &n
	}
}

// lift makes a function of two numbers one of two numbers that may be unknown.
func lift(a, b number, f func(a, b float64) float64) number {
	return func(w *world) *float64 {
		x, y := a(w), b(w)
		if x == nil || y == nil {
			return nil
		}
		n := f(*x, *y)
		if n-n != 0 { // NaN or Inf
			return nil
		}
		return &n
	}
}

func foldNumbers(word string, a, b number) number {
	return lift(a, b, map[string]func(a, b float64) float64{
		"+": func(a, b float64) float64 { return a + b }, "-": func(a, b float64) float64 { return a - b },
		"*": func(a, b float64) float64 { return a * b }, "/": func(a, b float64) float64 { return a / b },
		"min": math.Min, "max": math.Max,
	}[word])
}

func (g *generator) lengthSum() (string, number) {
	return chain(g, 3, func() (string, number) {
		if g.IntN(2) == 0 {
			a, x := g.age()
			b, y := g.primary("")
			if g.IntN(3) == 0 {
				return a + " * " + b, foldNumbers("*", x, y)
			}
			return a, x
		}
		return g.length()
	}, []string{"+", "-"}, foldNumbers)
}

func (g *generator) sum(unit string) (string, number) {
	return chain(g, 3, func() (string, number) { return g.product(unit) }, []string{"+", "-"}, foldNumbers)
}

func (g *generator) product(unit string) (string, number) {
	a, x := g.primary(unit)
	switch g.left--; {
	case g.left <= 0 || g.IntN(3) > 0:
		return a, x
	case unit != "" || g.IntN(2) == 0:
		word := g.pick("*", "/")
		b, y := g.primary("")
		if word == "*" && g.IntN(2) == 0 {
			return b + " * " + a, foldNumbers(word, y, x)
		}
		return a + " " + word + " " + b, foldNumbers(word, x, y)
	}
	same := g.pick("%", "Cel")
	a, x = g.primary(same)
	b, y := g.primary(same)
	return a + " / " + b, foldNumbers("/", x, y)
}

func (g *generator) primary(unit string) (string, number) {
	points := map[string][]string{"Cel": {"climate/temperature", "far/climate/temperature"}, "%": {"bed-2/soil", "lamp/level"}, "": {"meter/total"}}[unit]
	switch g.left--; g.IntN(8) {
	case 0, 1:
		return g.literal(unit)
	case 2:
		if g.left > 0 {
			text, mean := g.sum(unit)
			return "(" + text + ")", mean
		}
	case 3:
		if g.left > 0 {
			f := g.pick("min", "max")
			text, mean := chain(g, 3, func() (string, number) { return g.sum(unit) }, []string{","}, func(_ string, a, b number) number { return foldNumbers(f, a, b) })
			more, last := g.sum(unit)
			return f + "(" + text + " , " + more + ")", foldNumbers(f, mean, last)
		}
	case 4:
		text, mean := g.sum(unit)
		return "abs(" + text + ")", lift(mean, mean, func(a, _ float64) float64 { return math.Abs(a) })
	case 5:
		f, length := g.pick("mean", "least", "greatest", "change"), windowLengths[g.IntN(len(windowLengths))]
		if unit == "" && g.IntN(2) == 0 {
			f, points = "count", []string{"button/press", "door/open", "climate/temperature"}
		}
		address := g.pick(points...)
		return fmt.Sprintf("%s(%s, %s)", f, address, device.FormatDuration(length)), func(w *world) *float64 {
			n, ok := w.windows[windowKey(f, address, length)]
			if !ok || n-n != 0 {
				return nil
			}
			return &n
		}
	}
	address := g.pick(points...)
	return address, func(w *world) *float64 {
		s := w.sample(address)
		n, ok := s.value.Any().(float64)
		if !ok || !s.known || n-n != 0 {
			return nil
		}
		return &n
	}
}

// clock is a time of day; now in half of the cases.
func (g *generator) clock() (string, number) {
	of := func(which func(*world) (time.Time, bool)) number {
		return func(w *world) *float64 {
			t, known := which(w)
			if !known {
				return nil
			}
			wall, err := time.Parse("15:04:05.999999999", t.Format("15:04:05.999999999"))
			if err != nil {
				panic(err)
			}
			n := float64(wall.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)))
			return &n
		}
	}
	text, mean := "now", of((*world).clock)
	switch g.IntN(6) {
	case 0:
		text, mean = "sunrise", of(func(w *world) (time.Time, bool) { rise, _, known := w.sun(); return rise, known })
	case 1:
		text, mean = "sunset", of(func(w *world) (time.Time, bool) { _, set, known := w.sun(); return set, known })
	case 2:
		minutes := g.IntN(24 * 60)
		text, mean = fmt.Sprintf("%d:%02d", minutes/60, minutes%60), constant(float64(minutes)*60e9)
	}
	if g.IntN(4) > 0 {
		return text, mean
	}
	sign := g.pick("+", "-")
	more, by := g.length()
	if g.IntN(3) == 0 {
		more, by = g.age()
	}
	return text + " " + sign + " " + more, lift(foldNumbers(sign, mean, by), constant(0), func(n, _ float64) float64 {
		return math.Mod(math.Mod(n, dayLength)+dayLength, dayLength)
	})
}
