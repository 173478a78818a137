package expr

import (
	"errors"
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

func count(n *node) int {
	if n == nil {
		return 0
	}
	return 1 + count(n.a) + count(n.b) + count(n.c)
}

// FuzzCompile: no text panics, an error is printable, and a program is bounded and evaluates.
func FuzzCompile(f *testing.F) {
	for _, c := range refusals {
		f.Add(c.text[:min(len(c.text), 1500)], uint64(1))
	}
	f.Add(complicated, uint64(2))
	g := &generator{Rand: rand.New(rand.NewPCG(3, 3))}
	for i := range uint64(100) {
		text, _ := g.condition()
		f.Add(text, i)
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		p, err := compile(text, lookup)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T", err)
			}
			checkError(t, e)
			return
		}
		if !utf8.ValidString(text) || len(text) > maxText || count(p.root) > maxNodes || len(p.uses.Points) > maxNodes || len(p.uses.Windows) > maxNodes {
			t.Fatalf("%d nodes, %d points", count(p.root), len(p.uses.Points))
		}
		nothing := new(world)
		p.Eval(nothing.of(p))
		p.Cause(nothing.of(p))
		r := rand.New(rand.NewPCG(seed, seed))
		for range 3 {
			w := randomWorld(r)
			got, next := p.Eval(w.of(p))
			if cause := p.Cause(w.of(p)); (cause != "") != (got == Unknown) || next != 0 && next < minNext {
				t.Fatalf("%v, next %v, cause %q", got, next, cause)
			}
		}
	})
}

// TestUnseenPoints: without a plan every name is accepted, and nothing that it decides is known.
func TestUnseenPoints(t *testing.T) {
	any := func(string) (Point, bool) { return Point{}, true }
	g := &generator{Rand: rand.New(rand.NewPCG(4, rand.Uint64()))}
	for range rounds(t) / 10 {
		text, _ := g.condition()
		if _, err := compile(text, lookup); err != nil {
			continue
		}
		if _, err := compile(text, any); err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
	}
}
